"""What the files for Prometheus and Grafana ask for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client import Metric

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "monitoring" / "grafana" / "dashboards" / "collector.json"
_OURS = re.compile(r"\b(?:collector|circuit|fxcm)_\w+")
_SELECTED = re.compile(r"\b((?:collector|circuit|fxcm)_\w+)\{([^}]*)\}")
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}


def dashboard() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    return made


def of_dashboard() -> Iterator[str]:
    """Every query of the dashboard, and what its variables are filled from."""
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in dashboard()["templating"]["list"]:
        if isinstance(variable["query"], dict):
            yield re.sub(r"label_values\(([^,]+),.*", r"\1", variable["query"]["query"])


def of_alerts() -> Iterator[str]:
    document = yaml.safe_load((ROOT / "monitoring" / "alerts.yml").read_text("utf-8"))
    for group in document["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def of_autoscaler() -> Iterator[str]:
    document = yaml.safe_load((ROOT / "kubernetes" / "prometheus-adapter.yaml").read_text("utf-8"))
    for rule in document["rules"]["external"]:
        yield from (rule["seriesQuery"], rule["metricsQuery"])


def every_query() -> list[str]:
    return [*of_dashboard(), *of_alerts(), *of_autoscaler()]


def metrics_in(queries: Iterable[str]) -> set[str]:
    """The names of our metrics in them."""
    return {name for query in queries for name in _OURS.findall(query)}


def labels_in(queries: Iterable[str]) -> dict[str, set[str]]:
    """The labels by which each metric is chosen."""
    found: dict[str, set[str]] = {}
    for query in queries:
        for name, inside in _SELECTED.findall(query):
            found.setdefault(name, set()).update(re.findall(r"(\w+)\s*[=!]", inside))
    return found


def names_of(family: Metric) -> set[str]:
    """What a query may call a family by."""
    suffixes = _SUFFIXES.get(family.type, ("",))
    return {f"{family.name}{suffix}" for suffix in suffixes}


def as_promql(query: str) -> str:
    """A query of Grafana's with its variables filled in."""
    return query.replace("$__rate_interval", "5m").replace("$exchange", ".*")
