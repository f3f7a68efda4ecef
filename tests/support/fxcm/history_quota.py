"""HistoryQuota: FXCM's history is requested within a budget, without waiting inside.

A call that does not fit is refused with a reason and a wait; the caller skips that poll and goes on
with ticks and heartbeat. What the heartbeat shows of the budget is `snapshot`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from collector.exchanges.fxcm.quota_settings import HistoryTarget, QuotaSettings
from collector.exchanges.throttle_log import QUOTAS, ThrottleLog
from tests.support.fxcm.call_log import CallLog
from tests.support.fxcm.quota_rule import Decision, Reason, Use, is_loaded, load, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.clock import Clock

ThrottleState = Literal["ok", "warn", "critical"]

SHOWN_SKIPS = 10
# A poller that still runs into the quota is refused again long before.
_DENIAL_LASTS_MS = 60_000


@dataclass(frozen=True, slots=True)
class Skip:
    """The polls of one pair that were left out."""

    count: int = 0
    last_reason: str = ""
    by_reason: Mapping[str, int] = field(default_factory=dict)

    def again(self, reason: str) -> Skip:
        counted = {**self.by_reason, reason: self.by_reason.get(reason, 0) + 1}
        return Skip(self.count + 1, reason, counted)


class HistoryQuota:
    def __init__(self, settings: QuotaSettings, clock: Clock, calls: CallLog | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._calls = calls or CallLog()
        self._last_call: dict[HistoryTarget, int] = {}
        self._skips: dict[HistoryTarget, Skip] = {}
        self._last_denied: Reason | None = None
        self._quota_denied_ms: int | None = None
        self._log = ThrottleLog("fxcm")

    def allow_call(self, symbol: str, tf: str) -> Decision:
        """An allowed call is counted at once; a refused one is registered as skipped."""
        pair, now_ms = HistoryTarget.of(symbol, tf), self._now_ms()
        decision = self._decide(pair, now_ms)
        if decision.reason is None:
            self._calls.record(now_ms, priority=self._has_priority(pair))
            self._last_call[pair] = now_ms
            self._log.allowed(str(pair))
        else:
            self._last_denied = decision.reason
            if decision.reason in QUOTAS:
                self._quota_denied_ms = now_ms
            self.register_skip(symbol, tf, decision.reason)
            self._log.denied(str(pair), decision.reason, decision.wait_seconds, now_ms)
        return decision

    def register_skip(self, symbol: str, tf: str, reason: str) -> None:
        """A poll that was left out. Callers register those that never came to `allow_call`."""
        pair = HistoryTarget.of(symbol, tf)
        self._skips[pair] = self._skips.get(pair, Skip()).again(str(reason))

    @property
    def load_ratio(self) -> float:
        now_ms = self._now_ms()
        return load(*self._use(now_ms), self._settings)

    @property
    def throttle_state(self) -> ThrottleState:
        """`warn` and `critical` only follow a call that a quota has refused, by the load now."""
        denied_ms, now_ms = self._quota_denied_ms, self._now_ms()
        if denied_ms is None or now_ms - denied_ms >= _DENIAL_LASTS_MS:
            return "ok"
        use, settings = self._use(now_ms), self._settings
        if is_loaded(*use, settings, settings.thresholds.critical):
            return "critical"
        return "warn" if is_loaded(*use, settings, settings.thresholds.warn) else "ok"

    @property
    def next_slot_seconds(self) -> float:
        """When a pair without priority that has not called for long may call; 0 is now."""
        return self._wait_seconds(self._now_ms(), priority=False, interval_ends_ms=0)

    def snapshot(self) -> dict[str, Any]:
        """The budget as the heartbeat carries it, in `context.history`."""
        minute, hour = self._use(self._now_ms())
        return {
            "calls_60s": minute.calls,
            "calls_3600s": hour.calls,
            "limit_60s": self._settings.max_calls_per_min,
            "limit_3600s": self._settings.max_calls_per_hour,
            "load_ratio": round(self.load_ratio, 4),
            "throttle_state": self.throttle_state,
            "next_slot_seconds": self.next_slot_seconds,
            "last_denied_reason": self._last_denied,
            "priority": {
                "targets": sorted(map(str, self._settings.priority_targets)),
                "reserve_per_min": self._settings.priority_reserve_per_min,
                "reserve_per_hour": self._settings.priority_reserve_per_hour,
                "calls_60s": minute.priority,
                "calls_3600s": hour.priority,
            },
            "skipped_polls": self._most_skipped(),
        }

    def _most_skipped(self) -> list[dict[str, Any]]:
        ordered = sorted(self._skips.items(), key=lambda each: (-each[1].count, each[0]))
        return [
            {
                "symbol": pair.symbol,
                "tf": pair.tf,
                "count": skip.count,
                "last_reason": skip.last_reason,
                "by_reason": dict(skip.by_reason),
            }
            for pair, skip in ordered[:SHOWN_SKIPS]
        ]

    def _decide(self, pair: HistoryTarget, now_ms: int) -> Decision:
        priority = self._has_priority(pair)
        interval_ends_ms = 0
        if pair in self._last_call:
            interval_ms = round(self._settings.min_interval(pair) * 1000)
            interval_ends_ms = self._last_call[pair] + interval_ms
        reason = self._refusal(now_ms, priority, interval_ends_ms)
        if reason is None:
            return Decision()
        return Decision(reason, self._wait_seconds(now_ms, priority, interval_ends_ms))

    def _wait_seconds(self, now_ms: int, priority: bool, interval_ends_ms: int) -> float:
        """Refused and then allowed, it stays allowed: windows only empty while no call is made."""
        if self._refusal(now_ms, priority, interval_ends_ms) is None:
            return 0.0
        moments = self._calls.changes_after(now_ms)
        if interval_ends_ms > now_ms:
            moments = sorted({*moments, interval_ends_ms})
        first = bisect_left(
            moments,
            True,
            key=lambda moment: self._refusal(moment, priority, interval_ends_ms) is None,
        )
        return (moments[first] - now_ms) / 1000

    def _refusal(self, now_ms: int, priority: bool, interval_ends_ms: int) -> Reason | None:
        minute, hour = self._use(now_ms)
        too_soon = now_ms < interval_ends_ms
        return refusal(minute, hour, self._settings, priority=priority, too_soon=too_soon)

    def _use(self, now_ms: int) -> tuple[Use, Use]:
        return self._calls.minute(now_ms), self._calls.hour(now_ms)

    def _has_priority(self, pair: HistoryTarget) -> bool:
        return pair in self._settings.priority_targets

    def _now_ms(self) -> int:
        return round(self._clock.monotonic() * 1000)
