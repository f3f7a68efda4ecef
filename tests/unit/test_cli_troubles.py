"""Troubles on the command line: lines, the board of `up`, and its lines in a pipe."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

from bson import ObjectId
from rich.console import Console

from collector.cli.board import board, one_line
from collector.cli.trouble_lines import TroubleChanges, trouble_line, trouble_lines
from collector.jobs.job import Job
from collector.operations.shown.job import shown_job
from collector.operations.shown.status import shown_trouble
from collector.operations.troubles import Trouble, TroubleKind

NOW = 1_735_732_800_000
MINUTE = 60_000
DATE = datetime(2025, 1, 1, tzinfo=UTC)
DOWN = shown_trouble(
    Trouble(
        TroubleKind.UNREACHABLE,
        "the last 5 requests failed: no\nroute",
        "collector connector show binance",
        "binance",
        NOW - 8 * MINUTE,
        40,
    )
)
FULL = shown_trouble(Trouble(TroubleKind.DISK, "no space left", "make room"))


def job(symbol: str = "BTC/USDT", **fields: Any) -> dict[str, Any]:
    document = {
        "_id": ObjectId(),
        "exchange_id": "binance",
        "type": "ohlcv_backfill",
        "symbol": symbol,
        "timeframe": "1m",
        "status": "active",
        "state": "idle",
        "priority": 70,
        "next_run_at": NOW,
        "created_at": DATE,
        "updated_at": DATE,
    }
    return shown_job(Job.from_document({**document, **fields}))


def drawn(*args: Any, **options: Any) -> list[str]:
    console = Console(file=StringIO(), width=200)
    console.print(board(*args, **options))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def test_a_trouble_is_one_line_with_its_age_its_jobs_and_what_helps() -> None:
    assert trouble_line(DOWN, NOW) == (
        "binance: unreachable for 8 min, 40 jobs: the last 5 requests failed: no route "
        "-> collector connector show binance"
    )
    assert trouble_line(FULL, NOW) == "disk: no space left -> make room"


def test_no_troubles_are_no_lines() -> None:
    assert trouble_lines([], NOW) == []


def test_a_log_has_what_began_and_what_ended_once() -> None:
    changes = TroubleChanges()
    assert changes.lines([], NOW) == []
    [began] = changes.lines([DOWN], NOW)
    assert began.startswith("! binance: unreachable")
    assert changes.lines([DOWN], NOW + MINUTE) == []
    began, over = changes.lines([FULL], NOW)
    assert began.startswith("! disk")
    assert over == "over at 2025-01-01 12:00:00: binance: unreachable"


def test_nothing_is_over_because_mongodb_cannot_be_asked() -> None:
    changes = TroubleChanges()
    changes.lines([DOWN], NOW)
    away = {**FULL, "kind": "mongodb", "reason": "no answer"}
    [began] = changes.lines([away], NOW)
    assert began.startswith("! mongodb")
    assert changes.lines([DOWN], NOW) == ["over at 2025-01-01 12:00:00: mongodb"]
    assert changes.lines([], NOW) == ["over at 2025-01-01 12:00:00: binance: unreachable"]


def test_the_board_shows_troubles_first_then_exchanges_and_how_many_more() -> None:
    jobs = [job(f"C{number}/USDT") for number in range(20)]
    lines = drawn(jobs, (), 0.0, NOW, troubles=[DOWN], in_all=250)
    assert lines[0] == "1 trouble:"
    assert "binance: unreachable for 8 min" in lines[1]
    assert lines[2].split()[:2] == ["exchange", "symbol"]
    assert lines[3].split()[:2] == ["binance", "C0/USDT"]
    assert any(line.startswith("235 more: collector job list") for line in lines)


def test_what_failed_stands_above_and_what_is_done_below() -> None:
    jobs = [
        job("DONE/USDT", cursor={"since_ms": 1, "done": True}),
        job("FINE/USDT"),
        job("BAD/USDT", state="failed"),
    ]
    lines = drawn(jobs, (), 0.0, NOW)
    assert [line.split()[1] for line in lines[1:4]] == ["BAD/USDT", "FINE/USDT", "DONE/USDT"]


def test_a_line_in_a_pipe_names_the_troubles() -> None:
    line = one_line([job()], (), 0.0, [DOWN, FULL])
    assert line.endswith("! binance: unreachable, disk")
    assert "0 of 0" not in line
