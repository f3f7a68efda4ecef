"""The rules by which facts become troubles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from collector.connectors.connector import Connector
from collector.history.inbox import NetworkDamage
from collector.jobs.failing import FailingJobs
from collector.jobs.lag import stale_before_ms
from collector.operations.troubles import (
    LateJobs,
    Trouble,
    TroubleFacts,
    TroubleKind,
    no_database,
    troubles,
)

NOW = 1_735_732_800_000
MINUTE = 60_000
WORKER = {"_id": "w", "host": "one", "disk": {"free_bytes": 2**40, "total_bytes": 2**41}}
GIB = 2**30


def connector(exchange_id: str = "binance", **fields: Any) -> Connector:
    document = {
        "exchange_id": exchange_id,
        "status": "active",
        "rate_limit": 20,
        "rate_limit_period_ms": 1000,
    }
    return Connector.from_document({**document, **fields})


def facts(**fields: Any) -> TroubleFacts:
    well = TroubleFacts(NOW, [connector()], {"binance": 40}, [WORKER])
    return replace(well, **fields)


def failing(code: str = "bad_request", **fields: Any) -> FailingJobs:
    made = FailingJobs("binance", code, "it fails", NOW - MINUTE, 2, "6743f0", gave_up=True)
    return replace(made, **fields)


def kinds(found: list[Trouble]) -> list[str]:
    return [each.kind.value for each in found]


def failed_in_a_row(count: int) -> dict[str, Any]:
    return {"failing": {"count": count, "since": NOW - 8 * MINUTE, "reason": "refused"}}


def test_a_collector_that_works_has_no_trouble() -> None:
    assert troubles(facts()) == []


def test_a_collector_without_jobs_needs_no_worker() -> None:
    assert troubles(TroubleFacts(NOW)) == []


def test_three_failed_requests_in_a_row_are_a_trouble_whatever_the_circuit_does() -> None:
    reached = facts(connectors=[connector(circuit=failed_in_a_row(2))])
    assert troubles(reached) == []
    [found] = troubles(facts(connectors=[connector(circuit=failed_in_a_row(3))]))
    assert (found.kind, found.exchange_id) == (TroubleKind.UNREACHABLE, "binance")
    assert (found.since_ms, found.jobs) == (NOW - 8 * MINUTE, 40)
    assert "refused" in found.reason
    assert found.help == "collector connector show binance"


def test_a_damaged_network_explains_why_its_job_fails() -> None:
    damage = NetworkDamage("riemann", "_history/riemann/x.parquet", "its digest", NOW - MINUTE)
    job = failing("store_error", exchange_id="_history/riemann", gave_up=False)
    [found] = troubles(facts(damaged=[damage], failing=[job]))
    assert (found.kind, found.exchange_id) == (TroubleKind.DAMAGED, "_history/riemann")
    assert (found.since_ms, found.help) == (NOW - MINUTE, "collector repair")
    assert "_history/riemann/x.parquet" in found.reason
    assert kinds(troubles(facts(failing=[job]))) == ["retrying"]


@pytest.mark.parametrize(
    "fields",
    [{"status": "paused"}, {"status": "deleted"}],
)
def test_an_exchange_that_an_operator_stopped_has_no_trouble(fields: dict[str, Any]) -> None:
    stopped = connector(circuit=failed_in_a_row(9), **fields)
    late = [LateJobs("binance", NOW - 60 * MINUTE, 3, "1m")]
    assert troubles(facts(connectors=[stopped], stale=late, overdue=late)) == []


def test_a_blocked_exchange_shows_the_reason_and_the_way_out() -> None:
    banned = connector(
        blocked_until=NOW + MINUTE, blocked_at=NOW - MINUTE, blocked_reason="418 I'm a teapot"
    )
    [found] = troubles(facts(connectors=[banned]))
    assert (found.kind, found.since_ms) == (TroubleKind.BLOCKED, NOW - MINUTE)
    assert "418" in found.reason
    assert "collector connector unblock binance" in found.help


def test_a_tripped_gate_is_a_trouble_of_its_own_only_when_some_requests_succeed() -> None:
    tripped = {"state": "TRIPPED", "tripped_until": NOW + MINUTE, "transition": {"at": NOW - 9}}
    assert kinds(troubles(facts(connectors=[connector(circuit=tripped)]))) == ["circuit"]
    unreachable = connector(circuit={**tripped, **failed_in_a_row(30)})
    assert kinds(troubles(facts(connectors=[unreachable]))) == ["unreachable"]


def test_without_workers_the_cause_is_reported_and_not_what_follows_from_it() -> None:
    late = [LateJobs("binance", NOW - 60 * MINUTE, 3, "1m")]
    [found] = troubles(facts(workers=[], overdue=late, stale=late))
    assert (found.kind, found.jobs) == (TroubleKind.NO_WORKER, 40)
    assert found.since_ms == NOW - 60 * MINUTE


def test_an_unreachable_exchange_is_not_stale_and_its_retries_are_no_trouble_more() -> None:
    down = connector(circuit=failed_in_a_row(5))
    late = [LateJobs("binance", NOW - 60 * MINUTE, 3, "1m")]
    retried = failing("exchange_unavailable", gave_up=False)
    found = troubles(facts(connectors=[down], stale=late, overdue=late, failing=[retried]))
    assert kinds(found) == ["unreachable"]


def test_one_job_that_keeps_failing_is_shown_by_its_id() -> None:
    [found] = troubles(facts(failing=[failing("unexpected", jobs=1, gave_up=False)]))
    assert (found.kind, found.help) == (TroubleKind.RETRYING, "collector job show 6743f0")


def test_failed_jobs_are_listed_and_a_refused_key_is_named() -> None:
    found = troubles(facts(failing=[failing(), failing("key_refused", reason="may trade")]))
    assert kinds(found) == ["key_refused", "failed"]
    assert found[1].help == "collector job list --exchange binance --state failed"
    assert found[0].reason == "may trade"


def test_writes_that_fail_are_a_disk_trouble_of_all_exchanges_together() -> None:
    full = [
        failing("store_unavailable", gave_up=False, reason="No space left on device"),
        failing("store_unavailable", gave_up=False, exchange_id="kraken", jobs=3),
    ]
    [found] = troubles(facts(failing=full))
    assert (found.kind, found.exchange_id, found.jobs) == (TroubleKind.DISK, None, 5)
    assert "No space left" in found.reason


def test_redis_is_away_for_the_workers_that_say_so() -> None:
    away = {**WORKER, "redis": {"since": NOW - MINUTE, "error": "ConnectionError"}}
    other = {**away, "_id": "v", "redis": {"since": NOW - 9, "error": "ConnectionError"}}
    [found] = troubles(facts(workers=[away, other, {**WORKER, "_id": "u", "redis": None}]))
    assert (found.kind, found.since_ms) == (TroubleKind.REDIS, NOW - MINUTE)
    assert found.reason == "nothing can be published from one (ConnectionError)"


@pytest.mark.parametrize(
    ("free", "total", "expected"),
    [
        (1 * GIB, 100 * GIB, ["disk"]),
        (1 * GIB, 2 * GIB, []),  # small, and half empty
        (40 * GIB, 1000 * GIB, []),  # a small share of much
    ],
)
def test_little_room_on_a_workers_disk_is_reported_before_it_is_full(
    free: int, total: int, expected: list[str]
) -> None:
    worker = {**WORKER, "disk": {"free_bytes": free, "total_bytes": total}}
    assert kinds(troubles(facts(workers=[worker]))) == expected


def test_due_jobs_that_no_worker_takes_are_overdue() -> None:
    late = [LateJobs("kraken", NOW - 10 * MINUTE, 7)]
    [found] = troubles(facts(overdue=late))
    assert (found.kind, found.jobs) == (TroubleKind.OVERDUE, 7)
    assert "no connector" in found.reason


def test_stale_series_of_an_exchange_are_one_trouble() -> None:
    late = [
        LateJobs("binance", NOW - 10 * MINUTE, 7, "1m"),
        LateJobs("binance", NOW - 90 * MINUTE, 2, "1h"),
    ]
    [found] = troubles(facts(stale=late))
    assert (found.kind, found.jobs, found.since_ms) == (TroubleKind.STALE, 9, NOW - 90 * MINUTE)
    assert "1h, 1m" in found.reason


@pytest.mark.parametrize(("timeframe", "minutes"), [("1m", 5), ("15m", 15), ("1h", 60)])
def test_a_series_is_stale_when_a_bar_has_been_missing_for_a_while(
    timeframe: str, minutes: int
) -> None:
    assert NOW - stale_before_ms(timeframe, "binance", NOW) == minutes * MINUTE


def test_a_drifting_clock_is_a_trouble_as_long_as_it_is_measured() -> None:
    clock = {"drift_ms": 30_000, "doubt_ms": 20, "measured_at": NOW - MINUTE, "since": NOW - 9}
    [found] = troubles(facts(connectors=[connector(clock=clock)]))
    assert (found.kind, found.since_ms) == (TroubleKind.CLOCK_DRIFT, NOW - 9)
    assert "30.0 s ahead" in found.reason
    old = {**clock, "measured_at": NOW - 60 * MINUTE}
    assert troubles(facts(connectors=[connector(clock=old)])) == []
    assert troubles(facts(connectors=[connector(clock={**clock, "since": None})])) == []


def test_the_most_urgent_comes_first() -> None:
    found = troubles(
        facts(
            connectors=[connector(circuit=failed_in_a_row(3)), connector("kraken")],
            failing=[failing("store_unavailable", gave_up=False), failing(exchange_id="kraken")],
            active={"binance": 1, "kraken": 2},
        )
    )
    assert kinds(found) == ["disk", "unreachable", "failed"]


def test_every_trouble_has_a_reason_and_something_that_helps() -> None:
    found = [
        no_database("MongoDB cannot be reached"),
        *troubles(facts(workers=[])),
        *troubles(facts(overdue=[LateJobs("binance", 1, 1)], failing=[failing()])),
    ]
    assert all(each.reason and each.help for each in found)
