"""How the sidecar ends: it logs out and exits, whatever its other threads are doing.

The main thread does it when it is free. When it is inside a call of the SDK that does not return,
the thread that noticed the end logs out in its place: the only call of the SDK outside the main
thread. And when not even Python code runs any more, because a call of the SDK holds the
interpreter's lock, a timer outside Python ends the process (faulthandler's).
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from .outbox import Outbox

# How long the main thread may take to notice that the end has come.
YIELD_SECONDS = 1.0
# A logout over a dead line was measured to take 15 s; then the rest is written, and that is all.
LAST_SECONDS = 25.0
_FLUSH_SECONDS = 2.0


def elapsed() -> float:
    """Seconds that count while the machine sleeps, too: leases do not stop."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Ending:
    def __init__(self, outbox: Outbox, logout: Callable[[], None]) -> None:
        self._outbox = outbox
        self._logout = logout
        self._lock = threading.Lock()
        self._taken = threading.Event()

    def no_later_than(self, seconds: float) -> None:
        """The process is gone after `seconds`, even if no Python code runs again.

        Called again it sets another time, until the end has begun.
        """
        if not self._taken.is_set():
            faulthandler.dump_traceback_later(seconds, exit=True, file=2)

    def take(self, farewell: Callable[[], None] | None = None) -> NoReturn:
        """Logs out, calls `farewell` and exits. A second caller waits for that."""
        if not self._lock.acquire(blocking=False):
            threading.Event().wait()
        self.no_later_than(LAST_SECONDS)
        self._taken.set()
        self._logout()
        if farewell is not None:
            farewell()
        self._outbox.close(_FLUSH_SECONDS)
        # The SDK's own clean-up at exit has been seen to hang; there is nothing left to clean up.
        os._exit(0)

    def taken_within(self, seconds: float) -> bool:
        return self._taken.wait(seconds)
