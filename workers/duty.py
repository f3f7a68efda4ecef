"""A duty of a worker goes on, whatever happens to it.

An error in one round is counted and followed by a pause; a row of them is logged when it begins and
when it is over. Only what makes all work wrong ends the process.
"""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING

from collector import logs, metrics
from collector.errors import DatabaseUnavailable, SchemaMismatch
from collector.mongo.client import OUTAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDS_THE_PROCESS = (SchemaMismatch,)

_log = logs.get("workers")


class Duty:
    """The account of one duty's failures."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._logged = False
        self.failures = 0
        """In a row."""

    @contextmanager
    def tolerated(self) -> Iterator[None]:
        """Around one round of the duty: lets out nothing but what ends the process."""
        try:
            yield
        except ENDS_THE_PROCESS:
            raise
        except Exception as error:  # noqa: BLE001 - that is what it is for
            self.failures += 1
            self._log_once(error)
        else:
            self._recovered()

    def pause(self) -> float:
        """Seconds to wait before the next round; 0 when the last one went well."""
        return OUTAGE.delay(self.failures, random.random())

    def _log_once(self, error: Exception) -> None:
        metrics.DUTY_FAILURES.labels(self._name).inc()
        # An outage of MongoDB is logged once by its client, for all duties together.
        if not self._logged and not isinstance(error, DatabaseUnavailable):
            self._logged = True
            _log.warning(
                "duty_failed", duty=self._name, kind=type(error).__name__, error=str(error)[:300]
            )

    def _recovered(self) -> None:
        if self._logged:
            _log.warning("duty_recovered", duty=self._name, failures=self.failures)
        self._logged = False
        self.failures = 0
