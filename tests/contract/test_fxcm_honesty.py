"""The stand-in behaves as FXCM's SDK does, wherever that can be seen without an account.

Both run the same script: the real SDK on Python 3.7, the stand-in on our own Python.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from collector.exchanges.fxcm.bars import TIMEFRAMES
from tests.support.fxcm import behaviour

# The first run installs the SDK.
pytestmark = pytest.mark.timeout(600)

SCRIPT = Path(behaviour.__file__)


def behaviour_of(python: Path, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [python, SCRIPT], cwd=folder, capture_output=True, check=True, timeout=300
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.fixture(scope="session")
def real(fxcm_real_python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return behaviour_of(fxcm_real_python, tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="session")
def fake(fxcm_python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return behaviour_of(fxcm_python, tmp_path_factory.mktemp("fake"))


@pytest.mark.parametrize("subject", ["constants", "listeners", "history", "refused login"])
def test_the_stand_in_does_what_the_sdk_does(
    real: dict[str, Any], fake: dict[str, Any], subject: str
) -> None:
    assert fake[subject] == real[subject]


@pytest.mark.parametrize("name", behaviour.ENUMERATIONS)
def test_enumerations_have_the_sdks_names_numbers_and_texts(
    real: dict[str, Any], fake: dict[str, Any], name: str
) -> None:
    members = fake["enumerations"][name]
    assert members
    # The stand-in has those of a request's many fields that a subscription needs.
    known = real["enumerations"][name]
    expected = {each: known.get(each) for each in members} if "Params" in name else known
    assert members == expected


def test_timeframes_are_known_or_refused_alike(real: dict[str, Any], fake: dict[str, Any]) -> None:
    assert fake["timeframes"] == real["timeframes"]
    assert all(real["timeframes"][name] is None for name in TIMEFRAMES)
