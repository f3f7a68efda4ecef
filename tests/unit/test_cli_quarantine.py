"""`collector quarantine` on a lake with refused rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from collector.cli.main import run
from collector.market.answer import Rejected
from collector.store.store import Store
from tests.support.bars import BTC, at

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.delenv("COLLECTOR_DATA", raising=False)
    rows = [Rejected("ohlc", at(slot), (at(slot), 2.0, 1.0)) for slot in range(3)]
    Store(tmp_path / "data").quarantine(BTC, rows, fence=3, known_at=at(5))


def test_rows_are_listed_with_reason_and_what_was_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["quarantine", "binance", "BTC/USDT", "--timeframe", "1m"]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["symbol", "tf", "time", "(UTC)", "reason", "seen", "row"]
    assert len(rows) == 3
    assert "2024-01-01 00:00:00" in rows[0]
    assert f"[{at(0)}, 2.0, 1.0]" in rows[0]
    assert run(["quarantine", "kraken"]) == 0
    assert capsys.readouterr().out == "nothing was refused\n"


def test_a_list_goes_on_after_an_earlier_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["quarantine", "binance", "--limit", "2", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert [item["ts"] for item in first["items"]] == [at(0), at(1)]
    assert run(["quarantine", "binance", "--cursor", first["next_cursor"], "--json"]) == 0
    rest = json.loads(capsys.readouterr().out)
    assert ([item["ts"] for item in rest["items"]], rest["next_cursor"]) == ([at(2)], None)


@pytest.mark.parametrize(
    "arguments",
    [["binanse"], ["binance", "--timeframe", "7x"], ["binance", "--cursor", "x"], ["binance", ""]],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["quarantine", *arguments]) == 2
    assert capsys.readouterr().err.startswith("E_USAGE: ")
