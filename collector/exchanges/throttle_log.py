"""The log lines of a budget for history, few enough that a day of throttling fills no disk."""

from __future__ import annotations

import logging
from typing import Any

EVERY_MS = 12_000
QUOTAS = frozenset({"minute_quota", "hour_quota"})
"""Reasons that mean that a whole window is spent. The others only spread calls."""


class ThrottleLog:
    """One `throttle` line a series in 12 s, and a `guard` line when the reason is a new one.

    A quota that is spent is a warning; what only spreads calls is not. A series is named by its
    key, `XAUUSD:1m`.
    """

    def __init__(self, exchange_id: str) -> None:
        self._name = exchange_id.upper()
        self._log = logging.getLogger(f"collector.{exchange_id}.history")
        self._throttled: dict[str, int] = {}
        self._guarded: dict[tuple[str, str], int] = {}
        self._reasons: dict[str, str] = {}

    def allowed(self, key: str) -> None:
        self._reasons.pop(key, None)

    def denied(self, key: str, reason: str, wait_seconds: float, now_ms: int) -> None:
        level = logging.WARNING if reason in QUOTAS else logging.INFO
        symbol, _, tf = key.rpartition(":")
        is_new = self._reasons.get(key) != reason
        self._reasons[key] = reason
        if is_new and _is_due(self._guarded, (key, reason), now_ms):
            guard = "History quota guard triggered symbol=%s tf=%s reason=%s wait=%.2f"
            self._log.log(level, guard, symbol, tf, reason, wait_seconds)
        if _is_due(self._throttled, key, now_ms):
            throttle = "%s history throttle (%s) symbol=%s tf=%s wait=%.2f"
            self._log.log(level, throttle, self._name, reason, symbol, tf, wait_seconds)


def _is_due(written: dict[Any, int], key: Any, now_ms: int) -> bool:
    last = written.get(key)
    if last is not None and now_ms - last < EVERY_MS:
        return False
    written[key] = now_ms
    return True
