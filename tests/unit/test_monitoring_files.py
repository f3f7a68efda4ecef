"""Grafana's dashboard and the autoscaler's query: PromQL that holds, on metrics that exist.

A live fleet is asked for the same names in `tests/acceptance/test_metrics_live.py`.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.support import monitoring
from tests.unit.docs.test_metrics import exposed

if TYPE_CHECKING:
    from pathlib import Path

PROVISIONING = monitoring.ROOT / "monitoring" / "grafana" / "provisioning"


def test_every_query_is_about_metrics_that_exist() -> None:
    known = exposed()
    histograms = {f"{name}{end}" for name in known for end in ("_bucket", "_count", "_sum")}
    asked = monitoring.metrics_in(monitoring.every_query())
    assert len(asked) > 30
    assert asked - known - histograms == set()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_every_query_of_the_dashboard_is_promql(tmp_path: Path) -> None:
    queries = [monitoring.as_promql(each) for each in monitoring.every_query()]
    rules = [{"record": f"asked:{at}", "expr": each} for at, each in enumerate(queries)]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    ended = subprocess.run(["promtool", "check", "rules", path], capture_output=True, check=False)
    assert ended.returncode == 0, (ended.stdout + ended.stderr).decode()


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = monitoring.dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells


def test_it_works_with_any_prometheus_that_grafana_has() -> None:
    for panel in monitoring.dashboard()["panels"]:
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${source}"


def test_compose_mounts_what_grafana_is_provisioned_with() -> None:
    compose = yaml.safe_load((monitoring.ROOT / "docker-compose.yml").read_text("utf-8"))
    mounted = dict(volume.split(":")[:2] for volume in compose["services"]["grafana"]["volumes"])
    provider = yaml.safe_load((PROVISIONING / "dashboards" / "collector.yml").read_text("utf-8"))
    source = yaml.safe_load((PROVISIONING / "datasources" / "prometheus.yml").read_text("utf-8"))
    folder = provider["providers"][0]["options"]["path"]
    assert mounted["./monitoring/grafana/dashboards"] == folder
    assert mounted["./monitoring/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert source["datasources"][0]["url"] == "http://prometheus:9090"


def test_the_autoscaler_asks_for_the_metric_that_the_adapter_makes() -> None:
    folder = monitoring.ROOT / "kubernetes"
    scaler = yaml.safe_load((folder / "autoscaler.yaml").read_text("utf-8"))["spec"]
    rules = yaml.safe_load((folder / "prometheus-adapter.yaml").read_text("utf-8"))["rules"]
    [metric] = [each["external"]["metric"]["name"] for each in scaler["metrics"]]
    assert [rule["name"]["as"] for rule in rules["external"]] == [metric]
    documents = yaml.safe_load_all((folder / "collector.yaml").read_text("utf-8"))
    kinds = {(each["kind"], each["metadata"]["name"]) for each in documents}
    assert (scaler["scaleTargetRef"]["kind"], scaler["scaleTargetRef"]["name"]) in kinds
