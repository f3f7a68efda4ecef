"""Starting the other programs. The library never imports them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def command(module: str, *arguments: str) -> list[str]:
    """How to run `module` with this interpreter; `-P` keeps the working directory out of it."""
    return [sys.executable, "-P", "-m", module, *arguments]


def become(module: str, *arguments: str) -> NoReturn:
    """Turns this process into the other program, signals, exit code and all."""
    sys.stdout.flush()
    sys.stderr.flush()
    line = command(module, *arguments)
    os.execv(line[0], line)


def last_line(output: bytes) -> str:
    """What a program that failed wrote last: its one line about the error."""
    return (output.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]


def die_with_parent() -> Callable[[], None] | None:
    """For a child to run before it begins: it drains when this process dies in any way."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def arrange() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # It died before the call.
            os._exit(1)

    return arrange
