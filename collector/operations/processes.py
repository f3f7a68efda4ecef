"""Starting the other programs. The library never imports them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
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


def forbid_core_dumps() -> None:
    """This process and its children leave none of their memory behind when they crash.

    Passwords and keys are in it. The limit stops files; a collector of dumps that the kernel pipes
    them to, such as systemd's, is sent one all the same, and with this filter an empty one.
    """
    import resource  # Windows, where commands for another machine run too, has none.

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        with suppress(OSError):  # A kernel without dumps has no such file.
            Path("/proc/self/coredump_filter").write_text("0", "ascii")


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
