"""The session lease: one holder, fenced, passed on when it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.clock import SystemClock
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.session_lease import SessionLeases, SessionTerms, shown_session
from collector.exchanges.exclusive import SessionState
from collector.operations import connectors
from tests.support.until import until

if TYPE_CHECKING:
    from collector.connectors.session_lease import SessionLease, ShownSession
    from collector.mongo.client import Database

LONG = SessionTerms(ttl_ms=60_000, logout_ms=60_000)
SHORT = SessionTerms(ttl_ms=60, logout_ms=240)


@pytest.fixture(autouse=True)
async def connector(database: Database) -> None:
    await connectors.ensure(database, "fxcm")


def leases(database: Database, name: str, terms: SessionTerms = LONG) -> SessionLeases:
    return SessionLeases(database, name, SystemClock(), terms)


async def shown(database: Database) -> ShownSession:
    connector = await ConnectorRegistry(database).get("fxcm")
    found = shown_session(connector, await database.now_ms())
    assert found is not None
    return found


async def taken(leases: SessionLeases) -> SessionLease:
    lease = await leases.take("fxcm")
    assert lease is not None
    return lease


async def test_of_many_workers_one_gets_the_session(database: Database) -> None:
    names = [f"worker-{number}" for number in range(20)]
    found = await asyncio.gather(*(leases(database, name).take("fxcm") for name in names))
    [lease] = [each for each in found if each is not None]
    assert lease.worker_id == (await shown(database)).holder


async def test_a_session_that_is_held_is_not_given_away(database: Database) -> None:
    await taken(leases(database, "ann"))
    assert await leases(database, "bob").take("fxcm") is None
    assert await leases(database, "ann").take("fxcm") is None


async def test_a_released_session_is_free_at_once_and_wakes_the_others(database: Database) -> None:
    ann = leases(database, "ann")
    lease = await taken(ann)
    before = (await ConnectorRegistry(database).get("fxcm")).document["wake"]
    await ann.release(lease, "drained")
    after = await ConnectorRegistry(database).get("fxcm")
    assert after.document["wake"] != before
    assert (await shown(database)).reason == "drained"
    assert (await taken(leases(database, "bob"))).fence == lease.fence + 1


async def test_a_successor_waits_for_the_lease_and_a_logout(database: Database) -> None:
    lease = await taken(leases(database, "ann", SHORT))
    bob = leases(database, "bob", SHORT)

    async def it_has_ended() -> bool:
        return (await shown(database)).lease_until is None

    await until(it_has_ended, "the lease has ended")
    document = (await ConnectorRegistry(database).get("fxcm")).document["session"]
    assert document["free_at"] - document["lease_until"] == SHORT.logout_ms
    next_one = await until(lambda: bob.take("fxcm"), "bob has the session")
    now_ms = (await database.read_server_clock()).timestamp() * 1000
    assert now_ms >= document["free_at"]
    assert next_one.fence == lease.fence + 1


async def test_a_renewed_lease_lasts_longer(database: Database) -> None:
    ann = leases(database, "ann")
    lease = await taken(ann)
    until_ms = (await shown(database)).lease_until
    (renewed,), lost = await ann.renew([lease])
    assert lost == []
    assert renewed.trusted_until > lease.trusted_until
    assert ((await shown(database)).lease_until or 0) >= (until_ms or 0)


async def test_a_holder_whose_fence_has_passed_changes_nothing(database: Database) -> None:
    ann = leases(database, "ann", SHORT)
    stale = await taken(ann)
    bob = leases(database, "bob")
    fresh = await until(lambda: bob.take("fxcm"), "bob has the session")
    await bob.report(fresh, SessionState.STREAM, "data arrives")
    assert await ann.renew([stale]) == ([], [stale])
    await ann.report(stale, SessionState.DISCONNECTED, "of the past")
    await ann.release(stale, "of the past")
    found = await shown(database)
    assert (found.state, found.holder, found.reason) == ("STREAM", "bob", "data arrives")


async def test_a_state_keeps_the_moment_of_its_last_change(database: Database) -> None:
    ann = leases(database, "ann")
    lease = await taken(ann)
    await ann.report(lease, SessionState.STREAM, "data arrives")
    first = await shown(database)
    await until(lambda: database.server_clock.now_ms() > first.since + 5, "time has passed")
    await ann.report(lease, SessionState.STREAM, "more of it")
    again = await shown(database)
    assert (again.state, again.since, again.reason) == ("STREAM", first.since, "more of it")
    await ann.report(lease, SessionState.IDLE, "the market is closed")
    assert (await shown(database)).since > first.since


async def test_the_state_of_a_holder_that_is_gone_is_not_shown_on(database: Database) -> None:
    ann = leases(database, "ann", SHORT)
    lease = await taken(ann)
    await ann.report(lease, SessionState.STREAM, "data arrives")

    async def it_has_ended() -> ShownSession | None:
        found = await shown(database)
        return found if found.holder is None else None

    found = await until(it_has_ended, "the lease has ended")
    document = (await ConnectorRegistry(database).get("fxcm")).document["session"]
    assert (found.state, found.since) == ("DISCONNECTED", document["lease_until"])


async def test_a_deleted_connector_has_no_session_to_take(database: Database) -> None:
    await database.connectors.update_one({"exchange_id": "fxcm"}, {"$set": {"status": "deleted"}})
    assert await leases(database, "ann").take("fxcm") is None


async def test_why_a_machine_cannot_log_in_is_shown_unless_another_one_has(
    database: Database,
) -> None:
    ann, bob = leases(database, "ann"), leases(database, "bob")
    await bob.report_unable("fxcm", "no Python 3.7")
    assert (await shown(database)).reason == "no Python 3.7"
    lease = await taken(ann)
    await bob.report_unable("fxcm", "no Python 3.7")
    found = await shown(database)
    assert (found.holder, found.fence) == ("ann", lease.fence)


async def test_what_a_holder_knows_is_shown_beside_the_state_and_ends_with_its_lease(
    database: Database,
) -> None:
    ann = leases(database, "ann")
    lease = await taken(ann)
    assert (await shown(database)).diag is None
    diag = {"backoff": {"fxcm_history": {"active": True, "sleep_seconds": 5.0}}}
    await ann.diagnose(lease, diag)
    assert (await shown(database)).diag == diag
    await ann.release(lease, "drained")
    assert (await shown(database)).diag is None
    later = await taken(leases(database, "bob"))
    await ann.diagnose(lease, diag)  # somebody else has it by now
    assert ((await shown(database)).fence, (await shown(database)).diag) == (later.fence, None)
