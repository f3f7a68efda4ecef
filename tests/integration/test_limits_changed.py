"""What is on record of grants, reports and refusals, when limits change and answers overtake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.connector_fields import FIRST_BLOCK_MS
from collector.connectors.lateness import ENOUGH_ANSWERS
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.errors import RateLimited
from collector.operations.connected_jobs import remove_connector
from tests.support.aged_limiter import age_limiter
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database

LONG = 3_600_000
ALGORITHMS = ("sliding_window", "fixed_window")


@pytest.fixture
async def limiter(database: Database) -> AsyncIterator[Limiter]:
    async with Limiter(database) as limiter:
        yield limiter


@pytest.fixture
def registry(database: Database) -> ConnectorRegistry:
    return ConnectorRegistry(database)


async def granted_in_all(registry: ConnectorRegistry, limiter: Limiter) -> int:
    """Spends all there is."""
    while True:
        try:
            await limiter.acquire("x")
        except RateLimited:
            total: int = (await registry.get("x")).document["granted_total"]
            return total


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_changing_notes_changes_no_count(
    registry: ConnectorRegistry, limiter: Limiter, algorithm: Any
) -> None:
    await registry.ensure("x", Limits(10, LONG, algorithm=algorithm))
    for _ in range(4):
        await limiter.acquire("x")
    before = (await registry.get("x")).document["limiter"]
    for number in range(5):
        await registry.change_limits("x", {"notes": f"note {number}"})
    assert (await registry.get("x")).document["limiter"] == before
    assert await granted_in_all(registry, limiter) == 10


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_changing_limits_five_times_counts_grants_once(
    registry: ConnectorRegistry, limiter: Limiter, algorithm: Any
) -> None:
    await registry.ensure("x", Limits(100, LONG, algorithm=algorithm))
    for _ in range(4):
        await limiter.acquire("x")
    for limit in (50, 200, 30, 20, 10):
        await registry.change_limits("x", {"rate_limit": limit})
    assert await granted_in_all(registry, limiter) == 10


@pytest.mark.parametrize(("first", "then"), [ALGORITHMS, ALGORITHMS[::-1]])
async def test_another_algorithm_counts_what_was_granted(
    registry: ConnectorRegistry, limiter: Limiter, first: Any, then: Any
) -> None:
    await registry.ensure("x", Limits(10, LONG, algorithm=first))
    for _ in range(4):
        await limiter.acquire("x")
    await registry.change_limits("x", {"algorithm": then})
    await registry.change_limits("x", {"algorithm": first})
    await registry.change_limits("x", {"algorithm": then})
    assert await granted_in_all(registry, limiter) == 10


@pytest.mark.parametrize(("first", "then"), [ALGORITHMS, ALGORITHMS[::-1]])
async def test_a_connector_that_is_deleted_and_made_again_remembers_its_grants(
    database: Database, registry: ConnectorRegistry, limiter: Limiter, first: Any, then: Any
) -> None:
    await registry.ensure("x", Limits(10, LONG, algorithm=first))
    for _ in range(4):
        await limiter.acquire("x")
    await remove_connector(database, "x")
    await registry.ensure("x", Limits(10, LONG, algorithm=then))
    assert await granted_in_all(registry, limiter) == 10


WEIGHT = Window("weight", 100, 60_000)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([[Window("weight", 100, 61_000)]], id="longer"),
        pytest.param([[Window("weight", 100, 61_000)], [WEIGHT]], id="longer and back"),
        pytest.param([[], [WEIGHT]], id="removed and put back"),
        pytest.param([[], [Window("weight", 100, 90_000)]], id="removed and put back longer"),
        pytest.param([[Window("requests", 5_000, 60_000)], [WEIGHT]], id="another unit between"),
        pytest.param([[Window("weight", 900, 1_000)], [WEIGHT]], id="a short one between"),
        pytest.param([[], [], [WEIGHT]], id="removed, changed and put back"),
    ],
)
async def test_no_change_of_a_window_gives_its_budget_twice(
    registry: ConnectorRegistry, limiter: Limiter, algorithm: Any, changes: list[list[Window]]
) -> None:
    await registry.ensure("x", Limits(10_000, LONG, algorithm=algorithm, windows=(WEIGHT,)))
    for _ in range(10):
        await limiter.acquire("x", weight=10)
    for windows in changes:
        await registry.change_limits("x", {"windows": windows})
    with pytest.raises(RateLimited):
        await limiter.acquire("x")


async def test_a_grant_while_a_window_is_removed_does_not_forget_what_it_had_counted(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(10_000, LONG, windows=(WEIGHT,)))
    for _ in range(10):
        await limiter.acquire("x", weight=10)
    await registry.change_limits("x", {"windows": []})
    await limiter.acquire("x")
    await registry.change_limits("x", {"windows": [WEIGHT]})
    with pytest.raises(RateLimited):
        await limiter.acquire("x")


async def test_what_was_granted_while_a_window_was_removed_counts_when_another_one_knows_it(
    database: Database, registry: ConnectorRegistry, limiter: Limiter
) -> None:
    short = Window("weight", 200, 30_000)
    await registry.ensure("x", Limits(10_000, LONG, windows=(WEIGHT, short)))
    await limiter.acquire("x", weight=40)
    # What was granted in the very bin of the removal counts as granted before it and after it.
    await age_limiter(database, 5_000)
    await registry.change_limits("x", {"windows": [short]})
    await limiter.acquire("x", weight=50)
    await registry.change_limits("x", {"windows": [WEIGHT, short]})
    await limiter.acquire("x", weight=10)
    with pytest.raises(RateLimited):
        await limiter.acquire("x")


async def test_a_change_of_limits_keeps_the_measured_margin_of_each_window(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    windows = (Window("weight", 100_000, 2_000), Window("weight", 100_000, 60_000))
    await registry.ensure("x", Limits(10_000, 1_000, windows=windows))
    await answer_late(limiter, ENOUGH_ANSWERS)

    async def margins() -> dict[int, int]:
        connector = await registry.get("x")
        judged = connector.lateness.margin
        return {w.period_ms: judged(at, w).judged_ms for at, w in enumerate(connector.all_windows)}

    async def measured() -> bool:
        fixed = {window.period_ms: window.fixed_margin_ms for window in windows}
        return not (await margins()).items() & fixed.items()

    await until(measured, "the margins are measured")
    before = await margins()
    await registry.change_limits("x", {"rate_limit": 10_000})
    assert await margins() == before
    await registry.change_limits("x", {"windows": windows[::-1]})
    assert await margins() == before
    await limiter.acquire("x")
    await registry.change_limits("x", {"windows": [windows[0], Window("weight", 9, 61_000)]})
    assert await margins() == {1_000: before[1_000], 2_000: before[2_000], 61_000: before[60_000]}


async def answer_late(limiter: Limiter, count: int) -> None:
    """Requests of which the slowest take a quarter of a second."""
    for number in range(count):
        token = await limiter.acquire("x", patience=60.0)
        limiter.sent("x", token, 1)
        late = 0.25 * number / count
        limiter.answered("x", token, limiter.clock.monotonic() + late)


async def test_charges_of_late_requests_survive_a_change_of_windows(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(10_000, LONG, windows=(WEIGHT,)))
    for weight, late in ((1, 0), (60, 59)):
        token = await limiter.acquire("x", weight=weight)
        limiter.sent("x", token, weight)
        limiter.answered("x", token, limiter.clock.monotonic() + late)
    await registry.change_limits(
        "x", {"windows": [Window("requests", 5_000, 1_000), Window("weight", 100, 61_000)]}
    )
    with pytest.raises(RateLimited):
        await limiter.acquire("x")


async def test_the_window_that_is_shown_fits_the_new_limits(
    database: Database, registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(100, LONG))
    for _ in range(20):
        await limiter.acquire("x")
    changed = await registry.change_limits("x", {"rate_limit": 5, "rate_limit_period_ms": 1_000})
    shown = changed.document
    assert shown["rate_limit_usage"] <= 5
    assert shown["rate_limit_reset_at"] <= database.server_clock.now_ms() + 2_000


async def test_the_fixed_window_that_is_shown_is_the_one_that_decides(
    database: Database, registry: ConnectorRegistry, limiter: Limiter
) -> None:
    """A charge begins a window, too, and then the next grant is not the window's first moment."""
    await registry.ensure("x", Limits(3, LONG, algorithm="fixed_window"))
    await limiter.acquire("x")
    over_ms = database.server_clock.now_ms() - LONG - 1_000
    shown_ms = over_ms + LONG // 2
    await database.connectors.update_one(
        {"exchange_id": "x"},
        {
            "$set": {
                "limiter.windows.0.start": over_ms,
                "rate_limit_window_start": shown_ms,
                "rate_limit_reset_at": shown_ms + LONG,
                "rate_limit_usage": 3,
            }
        },
    )
    await granted_in_all(registry, limiter)
    shown = (await registry.get("x")).document
    begun_ms = shown["limiter"]["windows"][0]["start"]
    assert begun_ms > over_ms
    assert shown["rate_limit_usage"] == 3
    assert shown["rate_limit_window_start"] == begun_ms
    assert shown["rate_limit_reset_at"] == begun_ms + LONG


async def test_a_report_that_was_overtaken_does_not_lower_the_count(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(100, LONG, windows=(Window("weight", 50, 60_000),)))
    await limiter.acquire("x")
    await registry.report_usage("x", "weight", 60_000, used=48, sent_ms=2_000)
    await registry.report_usage("x", "weight", 60_000, used=3, sent_ms=1_000)
    before = (await registry.get("x")).document["granted_total"]
    assert await granted_in_all(registry, limiter) == before + 2
    await registry.report_usage("x", "weight", 60_000, used=40, sent_ms=3_000)
    assert await granted_in_all(registry, limiter) == before + 12


async def server_ms(database: Database) -> int:
    """As a token tells it: the server's own word, no estimate."""
    return round((await database.read_server_clock()).timestamp() * 1000)


async def blocked_for(database: Database, registry: ConnectorRegistry) -> int:
    until = (await registry.get("x")).document["blocked_until"]
    return int(until - await server_ms(database))


async def test_one_burst_of_refusals_is_one_refusal(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(100, 5_000))
    sent = await server_ms(database)
    for _ in range(8):
        await registry.block("x", "418", ban=True, sent_ms=sent)
    assert await blocked_for(database, registry) <= FIRST_BLOCK_MS
    # One that was sent after the block was told means it.
    await registry.block("x", "418", ban=True, sent_ms=await server_ms(database) + 1_000)
    assert await blocked_for(database, registry) > FIRST_BLOCK_MS + 20_000


async def test_a_longer_time_that_the_exchange_names_counts_in_a_burst_too(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(100, 5_000))
    sent = await server_ms(database)
    await registry.block("x", "429", for_ms=1_000, sent_ms=sent)
    await registry.block("x", "418", for_ms=120_000, ban=True, sent_ms=sent)
    await registry.block("x", "429", for_ms=1_000, sent_ms=sent)
    blocked = await registry.get("x")
    assert blocked.document["blocked_reason"] == "418"
    assert 110_000 < await blocked_for(database, registry) <= 120_000


async def test_a_time_that_the_exchange_names_counts_from_its_answer(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(100, 5_000))
    now_ms = await server_ms(database)
    stored = {"blocked_at": now_ms - 50_000, "blocked_until": now_ms + 10_000}
    await database.connectors.update_one({"exchange_id": "x"}, {"$set": stored})
    # Sent before the block was stored, answered late.
    await registry.block("x", "429", for_ms=60_000, sent_ms=now_ms - 55_000)
    assert await blocked_for(database, registry) > 50_000


async def test_a_passed_limit_without_a_time_costs_one_period(
    database: Database, registry: ConnectorRegistry
) -> None:
    windows = (Window("weight", 6_000, 60_000),)
    await registry.ensure("x", Limits(100, 300_000, windows=windows))
    sent = await server_ms(database)
    await registry.block("x", "429", sent_ms=sent)
    assert 50_000 < await blocked_for(database, registry) <= 60_000
    # Again right after it was over: twice as long.
    ended = {"blocked_until": sent - 10, "blocked_at": sent - 60_010}
    await database.connectors.update_one({"exchange_id": "x"}, {"$set": ended})
    await registry.block("x", "429", sent_ms=sent)
    assert 100_000 < await blocked_for(database, registry) <= 120_000


async def test_an_operator_may_lift_a_block(
    registry: ConnectorRegistry, limiter: Limiter, database: Database
) -> None:
    await registry.ensure("x", Limits(100, 5_000))
    await registry.block("x", "418", ban=True)
    lifted = await registry.unblock("x")
    assert (lifted.document["blocked_until"], lifted.document["blocked_reason"]) == (0, None)
    await limiter.acquire("x")
    # What was lifted is no reason for a longer one.
    await registry.block("x", "418", ban=True)
    assert await blocked_for(database, registry) <= FIRST_BLOCK_MS


async def test_a_worker_that_seldom_asks_learns_the_shortest_latency_with_its_next_grant(
    database: Database, registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(10_000, LONG))
    await answer_late(limiter, 1)
    least = {"lateness.least.now": {"took_ms": 0.5, "token_ms": 0.25}}
    await database.connectors.update_one({"exchange_id": "x"}, {"$set": least})
    await limiter.acquire("x")
    known = limiter._lane("x").way.flying
    assert (known.lateness.least_ms, known.lateness.token_ms) == (0.5, 0.25)
