"""The compose file and Prometheus' files agree with the program they start and scrape.

That they are well-formed is for `make check` (compose-spec's schema, hadolint) and promtool.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

import collector.metrics
from api import figures
from collector.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OURS = [name for name, service in COMPOSE["services"].items() if service.get("build")]


def setting_names(model: type[BaseModel] = Settings, prefix: str = "COLLECTOR_") -> set[str]:
    names = set()
    for name, field in model.model_fields.items():
        full = prefix + name.upper()
        names.add(full)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names |= setting_names(field.annotation, f"{full}__")
    return names


def test_there_is_a_service_for_every_part() -> None:
    assert set(COMPOSE["services"]) == {
        *("mongo", "redis", "migrate", "api", "worker", "prometheus"),
    }
    assert OURS == ["migrate", "api", "worker"]


@pytest.mark.parametrize("service", OURS)
def test_every_variable_is_a_setting(service: str) -> None:
    given = set(COMPOSE["services"][service]["environment"])
    assert given <= setting_names()


def test_workers_can_be_scaled() -> None:
    worker = COMPOSE["services"]["worker"]
    assert "container_name" not in worker
    assert "ports" not in worker


def test_no_port_is_open_to_the_world() -> None:
    for service in COMPOSE["services"].values():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")


def test_no_secret_has_a_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for name in ("MONGO_PASSWORD", "MONGO_KEY", "API_KEYS"):
        assert set(re.findall(rf"\$\{{{name}[^}}]*\}}", text)) == {
            f"${{{name}:?set it in .env}}",
        }


def test_alerts_ask_for_metrics_that_exist() -> None:
    asked = re.findall(r"\bcollector_\w+", (ROOT / "monitoring" / "alerts.yml").read_text())
    sources = (Path(str(module.__file__)).read_text() for module in (collector.metrics, figures))
    known = " ".join(sources)
    for name in asked:
        assert name in known or name.removeprefix("collector_") in known, name


def test_promtool_accepts_the_files() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        assert not os.environ.get("CI"), "promtool is missing"
        pytest.skip("promtool is not installed: Prometheus' files were not checked")
    folder = ROOT / "monitoring"
    for arguments in (["config", "--syntax-only", "prometheus.yml"], ["rules", "alerts.yml"]):
        done = subprocess.run(
            [promtool, "check", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
