"""Starting the other programs. The command line never imports them."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def command(module: str, *arguments: str) -> list[str]:
    """How to run `module` with this interpreter; `-P` keeps the working directory out of it."""
    return [sys.executable, "-P", "-m", module, *arguments]


def become(module: str, *arguments: str) -> NoReturn:
    """Turns this process into the other program, signals, exit code and all."""
    sys.stdout.flush()
    sys.stderr.flush()
    line = command(module, *arguments)
    os.execv(line[0], line)
