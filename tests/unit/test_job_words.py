"""Why a job does not do its work, and what to do about it, in words."""

from __future__ import annotations

from typing import Any

import pytest
from bson import ObjectId

import collector.exchanges.fxcm.failures
import collector.store.port  # noqa: F401 - both define errors of their own
from collector.errors import CollectorError
from collector.jobs.job import Job
from collector.operations.job_words import ADVICE, advice_words, reason_words

ERROR = {"last_error": "it did not work"}


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
        "next_run_at": 0,
    }
    return Job.from_document({**document, **fields})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, ""),
        ({"waiting_for": "window"}, "the exchange's budget is spent"),
        ({"waiting_for": "minute_quota"}, "minute_quota"),
        (
            {"waiting_for": "retry", "attempt": 4, "stats": {"last_error": "502"}},
            "try 4 failed: 502",
        ),
        (
            {"state": "failed", "status": "paused", "stats": {"last_error": "no such market"}},
            "no such market",
        ),
        ({"status": "paused", "waiting_for": "delisted"}, "its symbol was delisted"),
        (
            {"status": "paused", "cursor": {"done": True}, "stats": {"last_error": None}},
            "",
        ),
    ],
)
def test_a_job_has_a_reason_when_it_does_not_work(fields: dict[str, Any], reason: str) -> None:
    assert reason_words(job(**fields)) == reason


def codes(kind: type[CollectorError]) -> set[str]:
    return {getattr(kind, "code", "")}.union(*(codes(each) for each in kind.__subclasses__()))


def test_every_code_with_advice_exists() -> None:
    assert ADVICE.keys() <= codes(CollectorError)


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({}, None),
        ({"stats": {**ERROR, "last_error_code": "bad_request"}}, None),
        ({"attempt": 2, "stats": {**ERROR, "last_error_code": "store_swapped"}}, "by itself"),
        ({"attempt": 2, "stats": {**ERROR, "last_error_code": "new_code"}}, "by itself"),
        ({"state": "failed", "stats": {**ERROR, "last_error_code": "bad_request"}}, "delete it"),
        ({"state": "failed", "stats": ERROR}, "run it again"),
        ({"attempt": 1, "stats": ERROR, "cursor": {"done": True}}, None),
    ],
)
def test_a_failing_job_has_advice(fields: dict[str, Any], advice: str | None) -> None:
    given = advice_words(job(**fields))
    assert given is None if advice is None else advice in str(given)
