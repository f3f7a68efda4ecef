"""How often a run tries a page, and what a worker makes of the error that ended it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bson import ObjectId

from collector.backoff import Backoff
from collector.errors import ExchangeBlocked, ExchangeRefused, ExchangeUnavailable
from collector.jobs.job import Job
from workers.reactions import Reactions
from workers.tries import Tries

AWAY = ExchangeUnavailable("502")
HOUR_MS = 3_600_000


def test_pauses_double_from_a_fifth_of_a_second_with_full_jitter() -> None:
    tries = Tries(most=9)
    assert [tries.pause(AWAY, n, 0.999) for n in range(1, 9)] == pytest.approx(
        [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5], rel=0.01
    )
    assert tries.pause(AWAY, 4, 0.0) == 0.0


def test_the_last_try_is_followed_by_none() -> None:
    assert Tries(most=5).pause(AWAY, 4, 0.5) is not None
    assert Tries(most=5).pause(AWAY, 5, 0.5) is None
    assert Tries(most=1).pause(AWAY, 1, 0.5) is None


def test_what_the_exchange_asks_for_is_kept_to() -> None:
    soon = ExchangeUnavailable("503", retry_after_ms=3_000)
    late = ExchangeUnavailable("503", retry_after_ms=60_000)
    assert Tries().pause(soon, 1, 0.5) == 3.0
    assert Tries().pause(late, 1, 0.5) is None, "a minute is for the job to wait"


def job(**fields: Any) -> Job:
    document = {
        "_id": ObjectId(),
        "exchange_id": "x",
        "type": "ohlcv_backfill",
        "status": "active",
        "state": "running",
        "priority": 1,
        "next_run_at": 0,
        "attempt": 3,
        **fields,
    }
    return Job.from_document(document)


def reaction(error: Exception, given: Job, *, moved: bool = False, now_ms: int = 0) -> Any:
    reactions = Reactions(Backoff(5, 600, jitter=0), lasting_after_ms=24 * HOUR_MS)
    return reactions.to(error, given, moved=moved, now_ms=now_ms, spread=0.5)


def test_failures_in_a_row_are_counted_from_the_last_progress() -> None:
    assert reaction(AWAY, job()).next_run_in_ms == 20_000
    assert reaction(AWAY, job(), moved=True).next_run_in_ms == 5_000
    assert reaction(AWAY, job(), moved=True).attempt == 1


def test_the_length_of_a_ban_is_the_exchanges_and_not_the_jobs() -> None:
    banned = ExchangeBlocked("simulated", "418", retry_after_ms=HOUR_MS)
    assert reaction(banned, job()).next_run_in_ms == 20_000, "an operator may end the ban early"
    busy = ExchangeUnavailable("503", retry_after_ms=HOUR_MS)
    assert reaction(busy, job()).next_run_in_ms == HOUR_MS


def test_a_refusal_becomes_lasting_when_it_has_been_the_same_for_a_day() -> None:
    refused = ExchangeRefused("404 page not found", kind="404")
    since = {"kind": "404", "since": HOUR_MS}
    young = reaction(refused, job(refused=since), now_ms=24 * HOUR_MS)
    assert (young.transition.name, young.refusal) == ("retry", "404")
    old = reaction(refused, job(refused=since), now_ms=25 * HOUR_MS)
    assert old.transition.name == "fail"
    assert old.error == "404 page not found (nothing else for 24 h)"


def test_another_refusal_or_progress_begins_anew() -> None:
    refused = ExchangeRefused("403", kind="403")
    since = {"kind": "404", "since": 0}
    assert reaction(refused, job(refused=since), now_ms=99 * HOUR_MS).transition.name == "retry"
    same = replace(job(), document={"refused": {"kind": "403", "since": 0}})
    assert reaction(refused, same, moved=True, now_ms=99 * HOUR_MS).transition.name == "retry"
