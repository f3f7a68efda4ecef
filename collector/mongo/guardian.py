"""Keeps one mongod running for as long as its owner lives, and ends it when the owner is gone.

Run as a program of its own. Its standard input is the leash: a pipe whose other end only the owner
holds, so the kernel reports the owner's death however it dies. Three things can happen:

    the leash closes       mongod gets a shutdown signal, and is killed when it stays
    mongod dies            it is started again on the same port, at once; one that keeps dying, such
                           as on a full disk, after growing pauses
    this process dies      on Linux the kernel asks mongod to shut down (PR_SET_PDEATHSIG)

Everything here is the standard library, and the file is run by its path: importing the package
would make every start of the database wait for imports that the guardian never uses.

One thread only. PR_SET_PDEATHSIG fires when the *thread* that forked mongod ends, so a fork from
any thread but the main one would end mongod early.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

ENDED, NEVER_STARTED = 0, 3  # exit codes

GRACE_SECONDS = 10.0
SETTLED_SECONDS = 60.0
"""A mongod that has run for so long is started again without a pause when it dies."""
LONGEST_PAUSE_SECONDS = 30.0

_LEASH = 0
_END_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_PR_SET_PDEATHSIG = 1


class Orders(NamedTuple):
    """What to run and its files, as one command line argument."""

    argv: list[str]
    log: str
    announcement: str
    lock_fd: int
    log_limit_bytes: int
    log_check_seconds: float

    def encode(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def decode(cls, text: str) -> Orders:
        return cls(**json.loads(text))


class Guardian:
    """One mongod, when it is started again, and whether the owner has declared it ready."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._wake = _wake_on(signal.SIGCHLD, *_END_SIGNALS)
        self._ready = False
        self._owner_gone = False
        self._pause_seconds = 0.0
        """Before the next restart."""
        self._restart_at: float | None = None
        """Set while mongod is dead."""
        self._mongod = self._spawn()
        self._started_at = time.monotonic()

    def keep(self) -> int:
        """Returns an exit code once mongod is gone for good."""
        try:
            while not self._asked_to_end():
                if self._mongod.poll() is not None:
                    if not self._ready:
                        self._log(self._death())
                        return NEVER_STARTED
                    self._revive()
                self._limit_log()
            return ENDED
        finally:
            self._withdraw()
            self._end_mongod()

    def _asked_to_end(self) -> bool:
        """Waits for a message or the end of the owner, a signal, or the time for the next duty."""
        sources, seconds = [_LEASH, self._wake], self._orders.log_check_seconds
        if self._restart_at is not None:
            seconds = min(seconds, max(0.0, self._restart_at - time.monotonic()))
        readable, _, _ = select.select(sources, [], [], seconds)
        if _LEASH in readable:
            self._owner_gone = not os.read(_LEASH, 64)
            self._ready = True
        signalled = self._wake in readable and not _END_SIGNALS.isdisjoint(os.read(self._wake, 512))
        return self._owner_gone or signalled

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._orders.argv,
            stdin=subprocess.DEVNULL,
            # mongod holds the lock too: the home is free only when it is gone.
            pass_fds=(self._orders.lock_fd,),
            preexec_fn=_die_with_this_process(),
        )

    def _revive(self) -> None:
        """Starts a dead mongod again, after a pause that doubles while it keeps dying."""
        now = time.monotonic()
        if self._restart_at is None:
            if now - self._started_at >= SETTLED_SECONDS:
                self._pause_seconds = 0.0
            self._log(f"{self._death()}; it is started again in {self._pause_seconds:.0f} seconds")
            self._restart_at = now + self._pause_seconds
            self._pause_seconds = min(2 * self._pause_seconds or 1.0, LONGEST_PAUSE_SECONDS)
        if now >= self._restart_at:
            self._mongod, self._started_at, self._restart_at = self._spawn(), now, None
            self._log(f"started mongod again, pid {self._mongod.pid}")

    def _death(self) -> str:
        code, name = self._mongod.returncode, f"mongod {self._mongod.pid}"
        if code >= 0:
            return f"{name} exited with code {code}"
        return f"{name} was killed by {signal.Signals(-code).name}"

    def _end_mongod(self) -> None:
        """Requests a clean shutdown, and kills after the grace period."""
        if self._mongod.poll() is not None:
            return
        self._mongod.terminate()
        try:
            self._mongod.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._log(f"mongod did not shut down within {GRACE_SECONDS:.0f} seconds: killing it")
            self._mongod.kill()
            self._mongod.wait()

    def _withdraw(self) -> None:
        """Removes the owner's announcement before the database goes."""
        with contextlib.suppress(OSError):
            os.unlink(self._orders.announcement)
        if self._owner_gone:
            # A new process now waits for the lock instead of finding an owner.
            with contextlib.suppress(OSError):
                os.ftruncate(self._orders.lock_fd, 0)

    def _limit_log(self) -> None:
        # Before it is ready mongod may not have its signal handlers yet, and SIGUSR1 would kill it.
        if not self._ready:
            return
        log = self._orders.log
        # A log that was deleted or a full disk is no reason to end the database.
        with contextlib.suppress(OSError):
            if os.stat(log).st_size >= self._orders.log_limit_bytes:
                os.replace(log, f"{log}.1")
                _write_output_to(log)
                self._mongod.send_signal(signal.SIGUSR1)

    def _log(self, words: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with contextlib.suppress(OSError):
            print(f"{stamp} guardian: {words}", file=sys.stderr, flush=True)


def _write_output_to(log: str) -> None:
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for standard in (1, 2):
        os.dup2(fd, standard)
    os.close(fd)


def _wake_on(*signals: signal.Signals) -> int:
    """A descriptor that becomes readable, with the signal's number, when one arrives."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return reader


def _die_with_this_process() -> Callable[[], None] | None:
    """What the child does between fork and exec so that it cannot outlive this process."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: a forked child should do as little as it can
    guardian = os.getpid()

    def die_with_guardian() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != guardian:  # it died before the request was in place
            os._exit(1)

    return die_with_guardian


if __name__ == "__main__":
    sys.exit(Guardian(Orders.decode(sys.argv[1])).keep())
