"""`collector add EXCHANGE '*/USDT'`: what is said and asked before anything is added."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from collector.cli.actions.streams import _confirmed, cost_lines
from collector.cli.failures import UsageMistake
from collector.operations.streams import SeriesRequest

WANTED = SeriesRequest("binance", ["*/USDT"], ["1m"])
COST = {
    "symbols": [f"C{n}/USDT" for n in range(412)],
    "series": 412,
    "existing": 3,
    "unknown": 0,
    "bars": 1_648_000,
    "requests": 1_648,
    "seconds": 99.0,
    "seconds_ahead": 0.0,
    "requests_per_day": 593_280,
    "share_per_day": 0.069,
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Markets:
    async def estimate(self, wanted: SeriesRequest) -> dict[str, Any]:
        assert wanted is WANTED
        return COST


def fleet() -> Any:
    return SimpleNamespace(markets=Markets())


def test_count_requests_and_time_are_said() -> None:
    assert cost_lines("binance", COST) == [
        "binance: 412 markets (C0/USDT, C1/USDT, C2/USDT, C3/USDT, C4/USDT, C5/USDT, ...), "
        "412 series, 3 of them are there already",
        "history: 1,648,000 bars at most, 1,648 requests, 1 min or more at this budget",
        "afterwards: 593,280 requests a day, 6.9% of the budget",
    ]


def test_what_is_not_known_and_what_comes_before_is_said() -> None:
    one = {**COST, "symbols": ["A/USDT"], "requests": 1, "unknown": 2, "seconds_ahead": 59.6}
    first, history, _, unknown, ahead = cost_lines("binance", one)
    assert first.startswith("binance: 1 market (A/USDT), ")
    assert " 1 request, " in history
    assert unknown.startswith("2 series whose first bar is not known")
    assert ahead == "backfills that are under way need 1 min before that"


async def test_without_a_terminal_a_pattern_needs_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(UsageMistake, match="--yes"):
        await _confirmed(fleet(), WANTED, yes=False)
    await _confirmed(fleet(), WANTED, yes=True)
    out, err = capsys.readouterr()
    assert out == "", "standard output is for the answer"
    assert err.count("412 markets") == 2, "the cost is shown in both cases"


async def test_a_person_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    await _confirmed(fleet(), WANTED, yes=False)
    for declined in ("n\n", "\n"):
        monkeypatch.setattr("sys.stdin", Terminal(declined))
        with pytest.raises(typer.Exit) as ended:
            await _confirmed(fleet(), WANTED, yes=False)
        assert ended.value.exit_code == 1
        assert "nothing was added" in capsys.readouterr().err
