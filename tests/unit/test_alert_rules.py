"""The alert rules: every trouble has one, every rule is tested, and each test passes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.operations.troubles import TroubleKind

MONITORING = Path(__file__).parents[2] / "monitoring"


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((MONITORING / "alerts.yml").read_text("utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def covered(*, fires: bool) -> set[str]:
    document = yaml.safe_load((MONITORING / "alerts_test.yml").read_text("utf-8"))
    cases = [case for test in document["tests"] for case in test["alert_rule_test"]]
    return {case["alertname"] for case in cases if bool(case["exp_alerts"]) == fires}


def test_every_trouble_has_a_rule() -> None:
    found = {rule["labels"].get("trouble") for rule in rules()}
    for rule in rules():
        found |= set("".join(re.findall(r'kind=~"([^"]+)"', rule["expr"])).split("|"))
    assert set(TroubleKind) <= found


def test_every_rule_is_tested_to_fire_and_to_be_silent() -> None:
    names = {rule["alert"] for rule in rules()}
    assert covered(fires=True) == names
    assert covered(fires=False) == names


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_the_tests_of_the_rules_pass() -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None
    path = MONITORING / "alerts_test.yml"
    ended = subprocess.run([promtool, "test", "rules", path], capture_output=True, check=False)
    assert ended.returncode == 0, (ended.stdout + ended.stderr).decode()
