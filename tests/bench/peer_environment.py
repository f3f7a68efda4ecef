"""A published package in an environment of its own, made once, by pip, in a cache folder.

Other projects pin other versions of what we use, so none of them is a dependency of ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "collector-bench"
_INSTALL_S = 900


class NotInstalled(Exception):
    """pip could not make the environment; the text is its last words."""


def environment_with(package: str, version: str) -> Path:
    """The folder with its programs, installed when it is not there yet, which takes minutes."""
    folder = _CACHE / f"{package}-{version}-python{sys.version_info[0]}.{sys.version_info[1]}"
    programs, whole = folder / "bin", folder / "installed"
    if not whole.exists():
        # What an installation that was cut off left behind is no use to anyone.
        shutil.rmtree(folder, ignore_errors=True)
        try:
            venv.create(folder, with_pip=True)
            pip = [programs / "python", "-m", "pip", "install", "--quiet"]
            run([*pip, f"{package}=={version}"], _INSTALL_S)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            raise NotInstalled("\n".join(said.strip().splitlines()[-5:])) from error
        whole.touch()
    return programs


def run(command: list[Any], seconds: float, cwd: Path | None = None) -> str:
    """Its standard output. Raises SubprocessError."""
    ended = subprocess.run(
        command, cwd=cwd, env=own(), check=True, capture_output=True, text=True, timeout=seconds
    )
    return ended.stdout


def own() -> dict[str, str]:
    """This process's variables without what would lead to this project's modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
