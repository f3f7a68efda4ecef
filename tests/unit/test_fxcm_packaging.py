"""FXCM's SDK: the same versions wherever they are named, and its image beside the others."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from collector.exchanges.fxcm.failures import HOW_TO_INSTALL
from tests.support.dockerfile import stages

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRA = [Requirement(each) for each in PROJECT["optional-dependencies"]["fxcm"]]
SDK, WORKER = stages((ROOT / "Dockerfile.fxcm").read_text())
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
SERVICE: dict[str, Any] = SERVICES["worker-fxcm"]


def pins(text: str) -> set[str]:
    return set(re.findall(r"\b[a-z]+==[\d.]+\d", text))


@pytest.mark.parametrize("text", [HOW_TO_INSTALL, (ROOT / "Dockerfile.fxcm").read_text()])
def test_the_sdk_and_what_it_needs_have_one_version_everywhere(text: str) -> None:
    assert pins(text) == {f"{each.name}{each.specifier}" for each in EXTRA}
    assert "forexconnect" in {each.name for each in EXTRA}


def test_the_extra_installs_nothing_beside_the_program() -> None:
    for each in EXTRA:
        assert each.marker is not None
        assert not each.marker.evaluate({"python_version": "3.11"})
        assert each.marker.evaluate({"python_version": "3.7"})


def test_the_image_is_ours_with_a_python_3_7_that_was_tried() -> None:
    assert re.fullmatch(r"python:3\.7\.\d+-slim-bookworm AS sdk", SDK[0].rest)
    assert WORKER[0].rest == f"collector:{PROJECT['version']}" == SERVICES["worker"]["image"]
    words = {step.word: step for step in WORKER}
    assert words["ENV"].pairs == {"COLLECTOR_FXCM_PYTHON": "/usr/local/bin/python3.7"}
    assert "import forexconnect" in words["RUN"].rest
    assert WORKER[-1].word == "USER"
    assert WORKER[-1].rest == "10001"


def test_its_worker_runs_only_when_it_is_asked_for_and_has_a_place_for_the_sdks_files() -> None:
    assert SERVICE["profiles"] == ["fxcm"]
    assert SERVICE["build"]["dockerfile"] == "Dockerfile.fxcm"
    assert SERVICE["environment"]["COLLECTOR_WORKER__EXCHANGES"] == '["fxcm"]'
    assert any(each.startswith("/home/collector/.collector/fxcm:") for each in SERVICE["tmpfs"])
