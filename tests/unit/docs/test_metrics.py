"""What the programs count, against the table in docs/operations.md."""

from __future__ import annotations

import re

from prometheus_client.metrics import MetricWrapperBase

import collector.metrics
from tests.unit.docs.pages import ROOT, page, rows, section, words

GAUGE = re.compile(r'\bgauge\(\s*"([a-z_]+)"')
FAMILY = re.compile(r'GaugeMetricFamily\(\s*"([a-z_]+)"')


def exposed() -> set[str]:
    """By the names a scrape shows."""
    found = set()
    for metric in vars(collector.metrics).values():
        if isinstance(metric, MetricWrapperBase):
            [family] = metric.describe()
            found.add(f"{family.name}_total" if family.type == "counter" else family.name)
    figures = (ROOT / "api" / "figures.py").read_text("utf-8")
    of_connectors = {f"collector_{name}" for name in GAUGE.findall(figures)}
    return found | of_connectors | set(FAMILY.findall(figures))


def test_every_metric_is_in_the_table_and_every_row_is_a_metric() -> None:
    table = rows(section(page("operations.md"), "## Metrics"))
    assert {name for names, *_ in table for name in words(names)} == exposed()
