"""Tokens on a real mongod."""

from __future__ import annotations

import asyncio
import math
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.token import Token
from collector.connectors.window import Window
from collector.errors import CostNeverFits, NotFound, RateLimited

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database

LONG = 3_600_000


@pytest.fixture
async def limiter(database: Database) -> AsyncIterator[Limiter]:
    async with Limiter(database) as limiter:
        yield limiter


@pytest.fixture
def registry(database: Database) -> ConnectorRegistry:
    return ConnectorRegistry(database)


async def spend(limiter: Limiter, count: int, **options: Any) -> tuple[int, list[RateLimited]]:
    """Wants `count` tokens at once: how many came, and the denials."""
    answers = await asyncio.gather(
        *(limiter.acquire("x", **options) for _ in range(count)), return_exceptions=True
    )
    denials = [answer for answer in answers if isinstance(answer, RateLimited)]
    others = [a for a in answers if isinstance(a, BaseException) and not isinstance(a, RateLimited)]
    assert not others
    return count - len(denials), denials


@pytest.mark.parametrize("algorithm", ["sliding_window", "fixed_window"])
async def test_never_more_than_the_limit(
    registry: ConnectorRegistry, limiter: Limiter, algorithm: Any
) -> None:
    await registry.ensure("x", Limits(20, LONG, algorithm=algorithm))
    granted, denials = await spend(limiter, 50)
    assert granted == 20
    assert {denial.reason for denial in denials} == {"hour_quota"}
    assert all(0 < (denial.retry_after_ms or 0) <= LONG * 1.1 for denial in denials)
    document = (await registry.get("x")).document
    assert document["rate_limit_usage"] == 20
    assert document["granted_total"] == 20
    assert document["rate_limit_reset_at"] - document["rate_limit_window_start"] == LONG


@pytest.mark.parametrize("algorithm", ["sliding_window", "fixed_window"])
async def test_the_budget_comes_back_when_the_window_is_over(
    registry: ConnectorRegistry, limiter: Limiter, algorithm: Any
) -> None:
    await registry.ensure("x", Limits(5, 1_000, algorithm=algorithm))
    assert (await spend(limiter, 8))[0] == 5
    # The patient ones wait inside the limiter for as long as it says.
    assert (await spend(limiter, 3, patience=60.0))[0] == 3


async def test_a_denial_writes_nothing(
    database: Database, registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(1, LONG))
    await limiter.acquire("x")
    ours = {"ns": f"{database.raw.name}.connectors"}
    oplog = database.raw.client["local"]["oplog.rs"]
    before = await oplog.count_documents(ours)
    for _ in range(10):
        assert (await spend(limiter, 20))[0] == 0
    assert await oplog.count_documents(ours) == before


async def test_denials_are_counted_with_the_next_grant(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(1, LONG))
    await spend(limiter, 4)
    assert (await registry.get("x")).document["denied_total"] == 0
    await registry.change_limits("x", {"rate_limit": 10})
    await limiter.acquire("x")
    assert (await registry.get("x")).document["denied_total"] == 3


async def test_weight_windows_count_weight_and_requests_count_one(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(100, LONG, windows=(Window("weight", 10, 60_000),)))
    granted, denials = await spend(limiter, 5, weight=3)
    assert granted == 3
    assert denials[0].reason == "minute_quota"
    assert (await spend(limiter, 2, weight=1))[0] == 1
    assert (await registry.get("x")).document["rate_limit_usage"] == 4


async def test_a_small_request_does_not_overtake_inside_one_command(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(100, LONG, windows=(Window("weight", 5, 60_000),)))
    heavy, light = await asyncio.gather(
        limiter.acquire("x", weight=4), limiter.acquire("x", weight=2), return_exceptions=True
    )
    assert not isinstance(heavy, BaseException)
    assert isinstance(light, RateLimited)


async def test_a_request_that_can_never_fit_is_told_never(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(100, LONG, windows=(Window("weight", 5, 60_000),)))
    with pytest.raises(CostNeverFits, match="weight 6 can never pass a window of 5 weight"):
        await limiter.acquire("x", weight=6)
    await limiter.acquire("x", weight=5)


async def test_others_leave_the_reserve_to_priority_callers(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(10, LONG, priority_reserve=2))
    assert (await spend(limiter, 7))[0] == 7
    granted, denials = await spend(limiter, 5)
    assert granted == 1
    assert {denial.reason for denial in denials} == {"priority_reserve"}
    assert (await spend(limiter, 5, priority=True))[0] == 2


async def test_priority_callers_go_first_in_one_command(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(3, LONG))
    answers = await asyncio.gather(
        *(limiter.acquire("x") for _ in range(3)),
        *(limiter.acquire("x", priority=True) for _ in range(2)),
        return_exceptions=True,
    )
    assert [isinstance(answer, RateLimited) for answer in answers] == [
        False,
        True,
        True,
        False,
        False,
    ]


async def test_a_pause_acts_on_the_next_token_and_resume_lifts_it(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(100, LONG))
    await limiter.acquire("x")
    await registry.pause("x")
    with pytest.raises(RateLimited) as denial:
        await limiter.acquire("x")
    assert denial.value.reason == "paused"
    await registry.resume("x")
    await limiter.acquire("x")


async def test_a_pause_with_an_end_ends_by_itself(
    database: Database, registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(100, LONG))
    await registry.pause("x", until_ms=database.server_clock.now_ms() + LONG)
    with pytest.raises(RateLimited) as denial:
        await limiter.acquire("x")
    assert denial.value.reason == "paused"
    assert LONG / 2 < (denial.value.retry_after_ms or 0) < 2 * LONG
    await registry.pause("x", until_ms=database.server_clock.now_ms() + 100)
    await limiter.acquire("x", patience=60.0)


async def test_a_block_is_never_shortened_and_outlives_resume(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(100, LONG))
    await registry.block("x", "418", for_ms=LONG)
    connector = await registry.block("x", "429", for_ms=1)
    assert connector.document["blocked_reason"] == "418"
    await registry.resume("x")
    with pytest.raises(RateLimited) as denial:
        await limiter.acquire("x")
    assert denial.value.reason == "blocked"


async def test_a_block_ends_by_itself(registry: ConnectorRegistry, limiter: Limiter) -> None:
    await registry.ensure("x", Limits(100, LONG))
    await registry.block("x", "418", for_ms=100)
    await limiter.acquire("x", patience=60.0)


async def test_what_the_exchange_counted_wins_when_it_is_more(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(100, LONG, windows=(Window("weight", 50, 60_000),)))
    await limiter.acquire("x")
    await registry.report_usage("x", "weight", 60_000, used=48, sent_ms=1)
    granted, denials = await spend(limiter, 5)
    assert granted == 2
    assert denials[0].reason == "minute_quota"
    document = (await registry.get("x")).document
    assert document["reported_usage"]["used"] == 48
    assert document["rate_limit_usage"] == 3


async def test_a_clock_that_steps_back_grants_nothing_twice(
    database: Database, registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(5, 60_000))
    assert (await spend(limiter, 9))[0] == 5
    # As if the grants had been made by a server whose clock was ten minutes ahead.
    ahead = 600_000
    await database.connectors.update_one(
        {"exchange_id": "x"},
        [
            {
                "$set": {
                    "limiter.clock": {"$add": ["$limiter.clock", ahead]},
                    "limiter.windows": {
                        "$map": {
                            "input": "$limiter.windows",
                            "in": {
                                "$mergeObjects": ["$$this", {"t": {"$add": ["$$this.t", ahead]}}]
                            },
                        }
                    },
                }
            }
        ],
    )
    # The first to notice puts it right: the grants are dated now and drain in one period.
    granted, denials = await spend(limiter, 3)
    assert granted == 0
    assert 50_000 < (denials[0].retry_after_ms or 0) <= 70_000
    connector = await registry.get("x")
    now = database.server_clock.now_ms()
    assert connector.document["limiter"]["clock"] <= now + 1000


async def test_changing_limits_forgets_no_grant(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(10, LONG, windows=(Window("weight", 20, 60_000),)))
    await spend(limiter, 6, weight=2)
    await registry.change_limits(
        "x",
        {
            "rate_limit": 8,
            "rate_limit_period_ms": 2 * LONG,
            "windows": [Window("requests", 100, 5_000), Window("weight", 20, 60_000)],
        },
    )
    # 6 of 8 requests and 12 of 20 weight are spent.
    assert (await spend(limiter, 1, weight=9))[0] == 0
    assert (await spend(limiter, 5, weight=1))[0] == 2
    await registry.change_limits("x", {"algorithm": "fixed_window", "rate_limit": 9})
    assert (await spend(limiter, 5))[0] == 1


async def test_one_trip_serves_everyone_who_waits(
    database: Database, registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(1000, LONG))
    calls = 0
    ask = database.connectors.find_one_and_update

    async def counting(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return await ask(*args, **options)

    database.connectors.find_one_and_update = counting  # type: ignore[method-assign]
    assert (await spend(limiter, 128))[0] == 128
    assert calls == 1


async def test_tokens_that_were_too_many_to_spend_in_time_come_fewer_at_a_time(
    registry: ConnectorRegistry, limiter: Limiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await registry.ensure("x", Limits(1000, 60_000))
    good_until = chain(repeat(0.0, 24), repeat(math.inf))
    monkeypatch.setattr(Token, "good_until", property(lambda _: next(good_until)))
    tokens = await asyncio.gather(*(limiter.acquire("x") for _ in range(24)))
    assert max(token.together for token in tokens) <= 12
    assert (await registry.get("x")).document["granted_total"] == 48


async def test_a_cancelled_caller_hurts_nobody_else(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(3, 1_000))
    await spend(limiter, 3)
    waiting = [asyncio.create_task(limiter.acquire("x", patience=60.0)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert not any(isinstance(answer, Exception) for answer in answers[1:])


async def test_an_unknown_exchange_is_said_to_be_unknown(limiter: Limiter) -> None:
    with pytest.raises(NotFound, match="no connector 'nowhere'"):
        await limiter.acquire("nowhere")


async def test_the_global_limiter_stands_over_all_exchanges(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(100, LONG))
    await registry.ensure("y", Limits(100, LONG))
    await registry.ensure_global(Limits(3, LONG))
    async with Limiter(database, use_global=True) as limiter:
        await limiter.acquire("x")
        await limiter.acquire("y")
        await limiter.acquire("x")
        with pytest.raises(RateLimited, match="all exchanges"):
            await limiter.acquire("y")
