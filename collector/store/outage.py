"""A lake that cannot be written: logged when it begins and when it is over, counted always."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import logs, metrics

if TYPE_CHECKING:
    from collector.clock import Clock

_log = logs.get("collector.store")


class Outage:
    """Counts and logs what could not be written for one exchange."""

    def __init__(self, clock: Clock, exchange_id: str) -> None:
        self._clock = clock
        self._exchange_id = exchange_id
        self._since: float | None = None

    def failed(self, error: str) -> None:
        """A write failed that may succeed later."""
        metrics.STORE_ERRORS.labels(self._exchange_id).inc()
        if self._since is None:
            self._since = self._clock.monotonic()
            _log.warning("store_unavailable", exchange=self._exchange_id, error=error)

    def succeeded(self) -> None:
        """A write succeeded."""
        if self._since is not None:
            seconds, self._since = self._clock.monotonic() - self._since, None
            _log.warning("store_back", exchange=self._exchange_id, seconds_away=round(seconds, 1))
