"""FXCM's stream as its specification names the tests: budget, back-off, ticks, publication."""

from __future__ import annotations

import unittest
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from prometheus_client import REGISTRY

from collector.backoff_controller import BackoffController, backoff_diag
from collector.clock import ManualClock
from collector.exchanges.fxcm.backoff_settings import BackoffSettings
from collector.exchanges.fxcm.quota_settings import HistoryTarget, QuotaSettings
from collector.exchanges.ticks import PriceTick
from collector.publication import payloads
from collector.publication.gate import GateVerdict, Mark, Ruling
from collector.publication.redis_link import RedisLink
from collector.publication.supervisor import QUEUES, AsyncStreamSupervisor
from collector.streams.last_prices import LastPrices
from collector.streams.publisher import HeartbeatMessage
from collector.streams.tick_health import PollBounds, TickHealthMonitor, changes
from tests.support.fxcm.history_quota import HistoryQuota
from tests.support.until import until

if TYPE_CHECKING:
    from collector.publication.message import Publication

OTHERS = ("GBP/USD", "USD/JPY", "AUD/USD", "USD/CHF", "NZD/USD")
TYPES = ("fxcm_history", "redis")
UNSPACED = replace(QuotaSettings(), min_interval_by_tf={})


def calls(quota: HistoryQuota, count: int) -> int:
    """How many of `count` calls are allowed, for pairs without priority, in turn."""
    return sum(
        quota.allow_call(OTHERS[number % len(OTHERS)], "m1").allowed for number in range(count)
    )


class HistoryQuotaTest(unittest.TestCase):
    def setUp(self) -> None:
        self.clock = ManualClock()

    def quota(self, settings: QuotaSettings = UNSPACED) -> HistoryQuota:
        return HistoryQuota(settings, self.clock)

    def test_sliding_windows_limit_calls(self) -> None:
        quota = self.quota(
            replace(
                UNSPACED,
                max_calls_per_min=10,
                max_calls_per_hour=25,
                priority_targets=frozenset(),
                priority_reserve_per_min=0,
                priority_reserve_per_hour=0,
            )
        )
        assert calls(quota, 4) == 4
        self.clock.advance(30)
        assert calls(quota, 10) == 6
        denied = quota.allow_call("GBP/USD", "m1")
        assert (denied.reason, denied.wait_seconds) == ("minute_quota", 30.0)
        self.clock.advance(29.999)
        assert not quota.allow_call("GBP/USD", "m1").allowed
        self.clock.advance(0.001)
        assert calls(quota, 10) == 4  # the first four have left the minute, the six have not
        self.clock.advance(60)
        assert calls(quota, 10) == 10
        self.clock.advance(60)
        assert calls(quota, 10) == 1
        denied = quota.allow_call("GBP/USD", "m1")
        assert denied.reason == "hour_quota"
        assert denied.wait_seconds == 3600 - 180  # the first four were made 180 s ago
        self.clock.advance(denied.wait_seconds)
        assert calls(quota, 10) == 4

    def test_priority_reserve_blocks_non_priority(self) -> None:
        quota = self.quota(replace(UNSPACED, max_calls_per_min=10, priority_reserve_per_min=2))
        assert calls(quota, 8) == 8
        denied = quota.allow_call("GBP/USD", "m1")
        assert (denied.reason, denied.wait_seconds) == ("priority_reserve", 60.0)
        assert quota.throttle_state == "ok"  # nothing is spent that was not to be kept
        assert quota.allow_call("XAU/USD", "m1").allowed
        assert quota.allow_call("GBP/USD", "m1").reason == "priority_reserve"
        assert quota.allow_call("EURUSD", "5m").allowed  # however it is spelled
        assert quota.allow_call("XAU/USD", "m5").reason == "minute_quota"
        shown = quota.snapshot()
        assert shown["priority"]["calls_60s"] == 2
        assert shown["priority"]["targets"] == ["EURUSD:1m", "EURUSD:5m", "XAUUSD:1m", "XAUUSD:5m"]
        assert shown["priority"]["reserve_per_min"] == 2

    def test_a_reserve_that_was_used_is_kept_no_longer(self) -> None:
        quota = self.quota(replace(UNSPACED, max_calls_per_min=10, priority_reserve_per_min=2))
        for symbol in ("XAU/USD", "EUR/USD"):
            assert quota.allow_call(symbol, "m1").allowed
        assert calls(quota, 20) == 8
        assert quota.snapshot()["last_denied_reason"] == "minute_quota"

    def test_the_reserve_of_the_hour_is_kept_as_well(self) -> None:
        quota = self.quota(replace(UNSPACED, max_calls_per_hour=20, priority_reserve_per_hour=12))
        assert calls(quota, 20) == 14  # up to the threshold of 0.7 they are all alike
        assert quota.snapshot()["last_denied_reason"] == "priority_reserve"
        assert quota.allow_call("XAU/USD", "m1").allowed

    def test_min_interval_and_skipped_snapshot(self) -> None:
        quota = self.quota(replace(QuotaSettings(), max_calls_per_min=20))
        for _ in range(3):
            assert quota.allow_call("GBP/USD", "m1").allowed  # nobody is spaced below 0.45
        assert calls(quota, 20) < 20
        denied = quota.allow_call("GBP/USD", "m1")
        assert (denied.reason, denied.wait_seconds) == ("min_interval", 2.5)
        assert quota.allow_call("GBP/USD", "m5").allowed  # its own pair
        assert quota.allow_call("GBP/USD", "m5").wait_seconds == 7.0
        for _ in range(2):
            assert quota.allow_call("XAU/USD", "m1").allowed  # priority keeps no distance
        shown = quota.snapshot()
        assert shown["throttle_state"] == "ok"
        assert shown["last_denied_reason"] == "min_interval"
        by_pair = {(each["symbol"], each["tf"]): each for each in shown["skipped_polls"]}
        assert by_pair["GBPUSD", "5m"] == {
            "symbol": "GBPUSD",
            "tf": "5m",
            "count": 1,
            "last_reason": "min_interval",
            "by_reason": {"min_interval": 1},
        }
        assert ("XAUUSD", "1m") not in by_pair
        self.clock.advance(2.5)
        assert quota.allow_call("GBP/USD", "m1").allowed

    def test_a_quota_that_refuses_is_critical_until_the_load_falls(self) -> None:
        quota = self.quota(replace(UNSPACED, max_calls_per_min=10, priority_reserve_per_min=0))
        assert calls(quota, 2) == 2
        self.clock.advance(20)
        assert calls(quota, 6) == 6
        self.clock.advance(20)
        assert calls(quota, 2) == 2
        assert quota.snapshot()["throttle_state"] == "ok"  # full, but nobody was refused
        assert not quota.allow_call("GBP/USD", "m1").allowed
        assert quota.throttle_state == "critical"
        self.clock.advance(20)
        assert (quota.load_ratio, quota.throttle_state) == (0.8, "warn")
        self.clock.advance(20)
        assert (quota.load_ratio, quota.throttle_state) == (0.2, "ok")

    def test_the_next_slot_is_when_the_next_call_fits(self) -> None:
        quota = self.quota(replace(UNSPACED, max_calls_per_min=10, priority_reserve_per_min=0))
        assert quota.next_slot_seconds == 0.0
        assert calls(quota, 10) == 10
        self.clock.advance(12.5)
        assert quota.next_slot_seconds == 47.5
        self.clock.advance(47.5)
        assert quota.next_slot_seconds == 0.0

    def test_a_busy_market_stays_within_the_budget_and_feeds_its_priorities(self) -> None:
        """Ten minutes of 22 instruments that are polled every three seconds."""
        quota = self.quota(QuotaSettings())
        pairs = [
            HistoryTarget(symbol, tf)
            for symbol in (*(f"FX{number}" for number in range(20)), "XAUUSD", "EURUSD")
            for tf in ("1m", "5m")
        ]
        for second in range(0, 600, 3):
            for pair in pairs:
                quota.allow_call(pair.symbol, pair.tf)
            shown = quota.snapshot()
            assert shown["calls_60s"] <= 120
            assert shown["calls_3600s"] <= 2400
            assert shown["priority"]["calls_60s"] > 0, second
            self.clock.advance(3)


def controller(clock: ManualClock, spread: float = 0.5) -> BackoffController:
    policy = BackoffSettings().fxcm_history
    return BackoffController("fxcm_history", policy, clock, lambda: spread)


def test_backoff_state_toggle() -> None:
    clock = ManualClock(1_764_936_001_000)
    backoff = controller(clock)
    assert not backoff.paused
    assert backoff.fail(OSError("gone")) == 5.0
    assert (backoff.paused, backoff.remaining_seconds) == (True, 5.0)
    clock.advance(5)
    assert not backoff.paused  # it may be tried again, and is active until that has worked
    assert backoff.state.active
    assert backoff.fail("NetworkError") == 10.0
    assert backoff_diag([backoff]) == {
        "fxcm_history": {
            "active": True,
            "sleep_seconds": 10.0,
            "last_error_type": "NetworkError",
            "fail_count": 2,
            "last_error_ts": "2025-12-05T12:00:06Z",
        }
    }
    backoff.success()
    assert (backoff.paused, backoff.remaining_seconds) == (False, 0.0)
    assert backoff_diag([backoff]) == {
        "fxcm_history": {
            "active": False,
            "sleep_seconds": 5.0,
            "last_error_type": None,
            "fail_count": 0,
            "last_error_ts": None,
        }
    }
    assert backoff.fail(OSError()) == 5.0  # from the beginning


def shown(name: str, kind: str) -> float:
    return REGISTRY.get_sample_value(name, {"type": kind}) or 0.0


def test_backoff_is_measured_by_its_type() -> None:
    names = ("fxcm_backoff_events_total", "fxcm_backoff_sleep_seconds_sum")
    before = {(name, kind): shown(name, kind) for name in names for kind in TYPES}
    history = controller(ManualClock())
    assert (history.fail("NetworkError"), history.fail("NetworkError")) == (5.0, 10.0)
    history.success()
    policy = BackoffSettings().redis
    BackoffController("redis", policy, ManualClock(), lambda: 0.5).fail(ConnectionError())
    grown = {key: shown(*key) - value for key, value in before.items()}
    assert grown == pytest.approx(
        {
            ("fxcm_backoff_events_total", "fxcm_history"): 2,
            ("fxcm_backoff_events_total", "redis"): 1,
            ("fxcm_backoff_sleep_seconds_sum", "fxcm_history"): 15.0,
            ("fxcm_backoff_sleep_seconds_sum", "redis"): 5.0,
        }
    )


def test_backoff_caps_at_max() -> None:
    for settings, ceiling in (
        (BackoffSettings().fxcm_history, 180.0),
        (BackoffSettings().redis, 60.0),
    ):
        for spread in (0.0, 0.5, 0.999):
            backoff = BackoffController("redis", settings, ManualClock(), lambda s=spread: s)
            delays = [backoff.fail("redis") for _ in range(2000)]
            assert max(delays) <= ceiling
            assert delays[-1] >= ceiling * 0.85
            assert delays[:3] == sorted(delays[:3])


def test_backoff_jitter_spreads_both_ways() -> None:
    assert controller(ManualClock(), 0.0).fail("redis") == 4.25
    assert controller(ManualClock(), 1.0).fail("redis") == 5.75


def test_tick_health_drives_state() -> None:
    monitor = TickHealthMonitor()
    silences = (None, 0.5, 4.9, 12.0, 12.1, 30.0, 30.1, 61.0)
    states = [monitor.observe(silence, is_open=True).prices for silence in silences]
    assert states == ["ok", "ok", "ok", "ok", "lag", "lag", "stale", "stale"]
    assert monitor.health.history == "active"
    closed = monitor.observe(61.0, is_open=False)
    assert (closed.prices, closed.history) == ("stale", "paused")
    assert closed.cadence.m1 >= 20
    assert closed.cadence.m5 >= 20
    assert closed.cadence.reason == "market_closed"
    opened = monitor.observe(1.0, is_open=True)
    assert (opened.prices, opened.history) == ("ok", "active")


def test_one_dead_symbol_among_live_ones_makes_prices_lag() -> None:
    prices, monitor = LastPrices(), TickHealthMonitor()
    prices.follow(("XAU/USD", "EUR/USD"), 0.0)
    for second in range(41):
        prices.take(PriceTick("EUR/USD", 1.1, 1.2, 100.0 + second, 100.0 + second), second)
    health = [
        monitor.observe(prices.silence(at), is_open=True, longest=prices.longest_silence(at))
        for at in (30.0, 30.5)
    ]
    assert [each.prices for each in health] == ["ok", "lag"]
    assert health[-1].cadence.m1 == 2.0, "the others say that the market moves"
    prices.follow(("EUR/USD",), 40.0)
    assert prices.longest_silence(41.0) == 1.0


def test_adaptive_poll_boundaries() -> None:
    monitor = TickHealthMonitor()
    polls = [monitor.observe(13.0, is_open=True).cadence for _ in range(6)]
    assert [each.m1 for each in polls] == [4.0, 8.0, 16.0, 20.0, 20.0, 20.0]
    assert [each.m5 for each in polls] == [6.0, 12.0, 20.0, 20.0, 20.0, 20.0]
    back = [monitor.observe(1.0, is_open=True).cadence for _ in range(3)]
    assert [(each.m1, each.m5) for each in back] == [(4.0, 6.0), (2.0, 3.0), (2.0, 3.0)]
    at_once = monitor.observe(61.0, is_open=False).cadence
    assert (at_once.m1, at_once.m5) == (20.0, 20.0)


def test_every_change_of_a_poll_is_logged_with_its_reason() -> None:
    monitor = TickHealthMonitor(PollBounds(m1=3.0, m5=10.0))
    before = monitor.health.cadence
    after = monitor.observe(13.0, is_open=True).cadence
    assert changes(before, after) == (
        "TickHealth: m1 poll 3.0 -> 6.0 (reason=idling)",
        "TickHealth: m5 poll 10.0 -> 20.0 (reason=idling)",
    )
    assert changes(after, after) == ()


class RedisThatFails:
    """A Redis that refuses its first messages."""

    def __init__(self, failures: int) -> None:
        self._failures = failures
        self.published = 0

    async def admit(self, publication: Publication) -> Ruling:
        if self._failures:
            self._failures -= 1
            raise ConnectionError("refused")
        self.published += 1
        return Ruling(GateVerdict.ADMITTED, 1, Mark(1, 2))

    async def close(self) -> None:
        return


async def test_redis_outage_is_in_the_heartbeat_and_publishing_resumes() -> None:
    """The supervisor lives on, and the first message that Redis takes ends the back-off."""
    clock, redis = ManualClock(), RedisThatFails(2)
    paused = BackoffController("redis", BackoffSettings().redis, clock, lambda: 0.5)

    async def rest(seconds: float) -> None:
        assert 0 < seconds <= 60
        shown = backoff_diag([paused])["redis"]
        assert (shown["active"], shown["last_error_type"]) == (True, "ConnectionError")
        clock.advance(seconds)

    link = RedisLink(redis, paused, rest)
    message = HeartbeatMessage("fxcm", 1, {"state": "STREAM", "ts": 1.0})

    async def deliver(each: HeartbeatMessage) -> bool:
        return await link.publish(payloads.heartbeat(each)) is not None

    supervisor = AsyncStreamSupervisor(dict.fromkeys(QUEUES, deliver), link, clock)
    async with supervisor.running():
        supervisor.put("heartbeat", message, "fxcm")
        await until(lambda: redis.published, "the heartbeat is published")
        await until(lambda: not supervisor.shown()["queue_depth_total"], "it is processed")
        shown = supervisor.shown()
        assert (shown["total_enqueued"], shown["total_processed"]) == (1, 1)
        assert shown["tasks"]["heartbeat"]["state"] == "running"
    assert backoff_diag([paused])["redis"]["active"] is False
