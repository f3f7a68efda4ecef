"""How a moment is put into words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from bson import ObjectId
from rich.console import Console

from collector.cli.actions.status import facts_of, one_line, overview
from collector.cli.connector_words import status_words, used_words
from collector.cli.job_words import state_words
from collector.cli.output import cell, to_json
from collector.connectors.connector import Connector
from collector.jobs.counting import Counts, JobCount
from collector.jobs.history import BackfillCount
from collector.jobs.job import Job
from collector.jobs.lag import Reached
from collector.operations.census import Census, lag_of, state_name
from collector.operations.shown.connector import shown_connector
from collector.operations.shown.job import shown_job
from collector.operations.shown.status import shown_status

NOW = 1_735_732_800_000
MINUTE = 60_000
HOUR = 3_600_000
DATE = datetime(2025, 1, 1, 12, tzinfo=UTC)


def connector(**fields: Any) -> Connector:
    document = {
        "exchange_id": "binance",
        "status": "active",
        "rate_limit": 20,
        "rate_limit_period_ms": 1000,
        "limiter": {"windows": [{"t": NOW, "cur": 5, "bins": []}]},
        "creation_date": DATE,
        "updated_at": DATE,
    }
    return Connector.from_document({**document, **fields})


def job(**fields: Any) -> Job:
    document = {
        "_id": ObjectId(),
        "exchange_id": "binance",
        "type": "ohlcv_backfill",
        "symbol": "BTC/USDT",
        "timeframe": "1m",
        "status": "active",
        "state": "idle",
        "priority": 70,
        "next_run_at": NOW,
        "lock": {"locked_by": "w", "lock_until": NOW, "lease_token": "secret"},
        "created_at": DATE,
        "updated_at": DATE,
    }
    return Job.from_document({**document, **fields})


COUNTS = Counts(
    NOW,
    jobs=tuple(
        JobCount("binance", "active", state, count)
        for state, count in (("running", 1), ("queued", 2), ("failed", 1))
    ),
    backfills=(BackfillCount("binance", "1m", 2, 1, 750, 1000, 250),),
    reached=(Reached("binance", "1m", NOW - 3 * MINUTE),),
)
FULL = Census(
    at_ms=NOW,
    counts=COUNTS,
    connectors=[connector()],
    workers=[{"_id": "w1", "host": "here", "pid": 7}],
)


def drawn(census: Census) -> str:
    screen = Console(width=160, file=StringIO())
    screen.print(overview(shown_status(census, [])))
    return screen.file.getvalue()  # type: ignore[attr-defined]


def test_status_tells_budget_jobs_history_workers_and_lag() -> None:
    shown = drawn(FULL)
    for words in (
        "5/20 requests (25%)",
        "3 bars of 1m",
        "jobs: 4 (1 failed, 2 queued, 1 running)",
        "backfills: 1 of 2 done, 75.0% of 1,000 bars",
        "workers: 1 alive (here:7)",
        "at 2025-01-01 12:00:00 UTC",
    ):
        assert words in shown
    assert "75.0%" in one_line(shown_status(FULL, []), 10.0)


def test_silent_series_are_told_beside_the_lag() -> None:
    silent = replace(FULL, counts=replace(COUNTS, reached=(Reached("binance", "1m", NOW, 2),)))
    assert "0 bars of 1m, 2 unconfirmed" in drawn(silent)


def test_empty_states_are_words() -> None:
    empty = Census(NOW, Counts(NOW), [], [])
    shown = drawn(empty)
    assert "no connectors yet: collector connector add binance" in shown
    assert "workers: none alive" in shown
    assert "no jobs yet" in drawn(replace(empty, connectors=[connector()]))


def test_facts_are_plain_json() -> None:
    facts = facts_of(shown_status(FULL, []))
    assert facts["jobs"] == {"running": 1, "queued": 2, "failed": 1}
    assert facts["connectors"][0]["usage"][0]["used"] == 5
    assert facts["connectors"][0]["lag"] == {"bars": 3, "timeframe": "1m", "unconfirmed": 0}
    [worker] = facts["workers"]
    assert (worker["id"], worker["host"], worker["pid"]) == ("w1", "here", 7)
    assert "limiter" not in facts["connectors"][0]
    assert "\n" not in to_json(facts)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "active"),
        ({"status": "paused"}, "paused"),
        ({"status": "paused", "paused_until": NOW + 2 * HOUR}, "paused, ends in 2 h"),
        ({"status": "paused", "paused_until": NOW - 1}, "active"),
        (
            {"blocked_until": NOW + 90_000, "blocked_reason": "418"},
            "blocked (418), ends in 1 min",
        ),
    ],
)
def test_a_stop_is_told_with_its_end(fields: dict[str, Any], words: str) -> None:
    assert status_words(shown_connector(connector(**fields), NOW), NOW) == words


def test_the_fullest_window_is_shown() -> None:
    two = connector(windows=[{"unit": "weight", "limit": 10, "period_ms": 60_000}])
    assert used_words(shown_connector(two, NOW)) == "5/20 requests (25%)"


def test_one_word_for_status_and_state() -> None:
    assert state_name("paused", "idle") == "paused"
    assert state_name("paused", "success") == "success"
    for fields, words in (
        ({"state": "idle", "waiting_for": "retry"}, "idle (retry)"),
        ({"status": "paused", "state": "failed"}, "failed"),
        ({"status": "deleted"}, "deleted"),
        ({"status": "paused", "state": "success", "cursor": {"done": True}}, "done"),
    ):
        assert state_words(shown_job(job(**fields))) == words


def test_a_job_never_tells_its_lease_token() -> None:
    facts = shown_job(job())
    assert facts["lock"] == {"locked_by": "w", "lock_until": NOW}
    assert "secret" not in to_json(facts)
    assert '"created_at": "2025-01-01T12:00:00.000Z"' in to_json(facts)


def test_lag_counts_closed_bars() -> None:
    assert lag_of("1m", NOW, NOW + 59_999).bars == 0
    assert lag_of("1m", NOW, NOW + 180_000).bars == 3
    assert lag_of("1h", NOW + HOUR, NOW).bars == 0


def test_text_from_elsewhere_cannot_move_the_cursor() -> None:
    assert cell("a\x1b[2Jb\n[red]c").plain == "a [2Jb [red]c"
    assert cell(None).plain == "-"
