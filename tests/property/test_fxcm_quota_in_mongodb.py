"""FXCM's budget in the connector's grant statement against the pure HistoryQuota.

The same requests at the same times: the same decisions, reasons and waits, and the same report.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymongo import ReturnDocument

from collector.connectors.connector import Connector, Limits
from collector.connectors.grant import Ask, answer_projection, grant_filter, grant_pipeline
from collector.connectors.grant_window import Want
from collector.connectors.history_budget import history_budget
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.exchanges.fxcm.limits import hour_window, minute_window, spacing
from collector.exchanges.fxcm.quota_settings import HistoryTarget, LoadThresholds, QuotaSettings
from collector.mongo.client import Database
from tests.support.examples import examples
from tests.support.fxcm.call_log import CallLog, Counting
from tests.support.fxcm.history_quota import HistoryQuota
from tests.support.fxcm.kept import with_windows

if TYPE_CHECKING:
    from collector.exchanges.quirks.record import VenueWindow

START_MS = 1_800_000_000_000
PAIRS = [
    HistoryTarget(symbol, tf) for symbol in ("XAUUSD", "GBPUSD", "TSLA.US") for tf in ("1m", "5m")
]
SHARE = st.floats(-0.2, 1.2) | st.sampled_from([0.0, 0.45, 0.7, 0.9, 1.0])
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 500, 2_500, 7_000, 30_000, 59_999, 60_000, 61_000, 900_000])
        | st.integers(0, 5_000),
        st.sampled_from(PAIRS),
    ),
    min_size=1,
    max_size=40,
)


@st.composite
def quotas(draw: st.DrawFn) -> QuotaSettings:
    # Few calls are kept in fine grains and many in coarse ones: the hour may be either.
    per_min, per_hour = draw(st.integers(1, 8)), draw(st.integers(1, 20) | st.just(200))
    return replace(
        QuotaSettings(),
        max_calls_per_min=per_min,
        max_calls_per_hour=per_hour,
        priority_reserve_per_min=draw(st.integers(0, per_min - 1)),
        priority_reserve_per_hour=draw(st.integers(0, per_hour - 1)),
        priority_targets=frozenset(draw(st.sets(st.sampled_from(PAIRS), max_size=3))),
        thresholds=LoadThresholds(draw(SHARE), draw(SHARE), draw(SHARE), draw(SHARE)),
    )


@dataclass
class SetClock:
    """A clock that shows what the statement is told."""

    now_ms: int = START_MS

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


def window(given: VenueWindow) -> Window:
    return Window(given.unit, given.limit, given.period_ms, given.priority_reserve)


def limits(quota: QuotaSettings) -> Limits:
    own = minute_window(quota)
    return Limits(
        own.limit,
        own.period_ms,
        windows=(window(hour_window(quota)),),
        priority_reserve=own.priority_reserve,
        reserve_threshold=quota.thresholds.reserve,
        spacing=spacing(quota),
    )


def counting(of: Window) -> Counting:
    return Counting((of.bins + 1) * of.bin_ms, of.bin_ms)


async def compare(database: Database, quota: QuotaSettings, steps: list[Any]) -> None:
    registry, clock = ConnectorRegistry(database), SetClock()
    collection = database.raw["connectors"]
    await collection.delete_many({})
    connector, _ = await registry.ensure("fxcm", limits(quota))
    pure = HistoryQuota(with_windows(quota), clock, CallLog(*map(counting, connector.all_windows)))
    for number, (wait_ms, pair) in enumerate(steps):
        clock.now_ms += wait_ms
        nonce, want = str(number), connector.ranked(Want(key=str(pair)))
        answer = await collection.find_one_and_update(
            grant_filter(connector),
            grant_pipeline(connector, Ask([want], nonce), clock.now_ms),
            projection=answer_projection(nonce, 1),
            return_document=ReturnDocument.AFTER,
        )
        decision = pure.allow_call(*pair)
        assert (answer["limiter"].get("nonce") == nonce) is decision.allowed
        if not decision.allowed:
            assert decision.reason is not None
            state = Connector.from_document({**connector.document, **answer})
            denial = state.denial(Want(key=str(pair)), clock.now_ms)
            assert denial.reason == decision.reason
            assert denial.retry_at_ms - clock.now_ms == round(decision.wait_seconds * 1000)
            await registry.register_skip("fxcm", str(pair), denial.reason, at_ms=clock.now_ms)
        shown = history_budget(await registry.get("fxcm"), clock.now_ms)
        assert shown == pure.snapshot()


def test_mongodb_decides_as_the_pure_quota_does(mongo_uri: str, database_name: str) -> None:
    with asyncio.Runner() as runner:
        database = Database(mongo_uri, database_name)
        runner.run(database.read_server_clock())

        @settings(
            max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow]
        )
        @given(quotas(), STEPS)
        def check(quota: QuotaSettings, steps: list[Any]) -> None:
            runner.run(compare(database, quota, steps))

        try:
            check()
        finally:
            runner.run(database.raw.client.drop_database(database_name))
            runner.run(database.close())
