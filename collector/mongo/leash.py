"""The owner's hold on its guardian: let go of it, by closing it or by dying, and mongod ends."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from io import FileIO
from typing import TYPE_CHECKING

from collector.mongo import guardian
from collector.mongo.home import close_in_forked_children

if TYPE_CHECKING:
    from pathlib import Path

    from collector.clock import Clock

_POLL_SECONDS = 0.02
# The guardian kills a mongod that overstays; only a guardian that hangs itself takes longer.
_LET_GO_SECONDS = guardian.GRACE_SECONDS + 5.0


class Leash:
    """A running guardian and the pipe that ties it to this process."""

    def __init__(self, orders: guardian.Orders, home: Path) -> None:
        # By path and without site-packages: this start is on the way of every start of mongod.
        command = [sys.executable, "-I", "-S", guardian.__file__, orders.encode()]
        with open(orders.log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,  # close-on-exec, so no other child can hold it open
                stdout=log,
                stderr=log,
                cwd=home,
                umask=0o077,
                pass_fds=(orders.lock_fd,),
                start_new_session=True,  # Ctrl-C in the owner's terminal is the owner's to handle
            )
        assert isinstance(self._process.stdin, FileIO)  # bufsize=0
        self._pipe = self._process.stdin
        close_in_forked_children(self._pipe)

    def held(self) -> bool:
        """Whether the guardian lives, and with it a mongod that runs or is being started again."""
        return self._process.poll() is None

    def call_ready(self) -> None:
        """From now on the guardian revives mongod instead of reporting that it never started."""
        with contextlib.suppress(BrokenPipeError):  # it is gone, which held() reports
            self._pipe.write(b"ready\n")

    async def let_go(self, clock: Clock) -> None:
        """Returns when the guardian has ended its mongod. May be called again."""
        self._pipe.close()
        deadline = clock.monotonic() + _LET_GO_SECONDS
        while self.held():
            if clock.monotonic() > deadline:
                self._process.kill()
            await asyncio.sleep(_POLL_SECONDS)
