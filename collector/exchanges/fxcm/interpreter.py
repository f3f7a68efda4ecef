"""Which Python runs the sidecar.

The SDK loads into Python 3.7 alone, so that is looked for: `COLLECTOR_FXCM_PYTHON`, else every
`python3.7` on PATH, else those of pyenv. A candidate is believed when it has run: a `python3.7` on
PATH may be a shim that only prints an error.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collector.exchanges.fxcm.failures import HOW_TO_INSTALL, FxcmMissing

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTING = "COLLECTOR_FXCM_PYTHON"
_PROBE_SECONDS = 20.0
# Looks for the SDK without importing it, which takes half a second and may crash.
_PROBE = """
import glob, json, os, platform
from importlib.util import find_spec
found = find_spec("forexconnect")
version = None
if found is not None and found.origin:
    folder = os.path.dirname(os.path.dirname(found.origin))
    names = sorted(glob.glob(os.path.join(folder, "forexconnect-*.dist-info")))
    version = os.path.basename(names[-1]).split("-")[1].replace(".dist", "") if names else ""
missing = [name for name in ("numpy", "pandas") if find_spec(name) is None]
print(json.dumps({"python": platform.python_version(), "sdk": version, "missing": missing}))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that runs. `sdk` is the version of forexconnect in it, None when there is none."""

    path: Path
    python: str
    sdk: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def lacks(self) -> str | None:
        """What keeps the SDK from running in it, by name."""
        names = ([] if self.sdk is not None else ["forexconnect"]) + list(self.missing)
        return ", ".join(names) or None


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Ours without our settings, which may hold secrets, and without our own Python's paths."""
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(("COLLECTOR_", "PYTHON")) and name != "VIRTUAL_ENV"
    }


async def find_interpreter(environ: Mapping[str, str]) -> Interpreter:
    """The Python to start the sidecar with. Raises FxcmMissing, saying what to do."""
    if chosen := environ.get(SETTING):
        return await _chosen(Path(chosen), environ)
    lacking: Interpreter | None = None
    for path in candidates(environ):
        found = await probe(path, environ)
        if not isinstance(found, Interpreter):
            continue
        if found.lacks is None:
            return found
        lacking = lacking or found
    if lacking is not None:
        raise FxcmMissing(
            f"Python {lacking.python} at {lacking.path} lacks {lacking.lacks}: {HOW_TO_INSTALL}"
        )
    raise FxcmMissing(
        "no Python 3.7 found on PATH or under pyenv, and FXCM's SDK runs on no other:"
        f" {HOW_TO_INSTALL}"
    )


async def _chosen(path: Path, environ: Mapping[str, str]) -> Interpreter:
    # Never another one in its place: the operator's choice would silently have no effect.
    found = await probe(path, environ)
    if not isinstance(found, Interpreter):
        raise FxcmMissing(f"{SETTING}={path} {found}: correct it or unset it")
    if found.lacks is not None:
        raise FxcmMissing(f"{SETTING}={path} lacks {found.lacks}: {HOW_TO_INSTALL}")
    return found


def candidates(environ: Mapping[str, str]) -> list[Path]:
    """Every file that may be a Python 3.7, in the order they are tried."""
    folders = filter(None, environ.get("PATH", "").split(os.pathsep))
    on_path = [Path(folder, "python3.7") for folder in folders]
    root = Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME", ""), ".pyenv"))
    in_pyenv = sorted(root.glob("versions/3.7.*/bin/python3.7"), key=_patch, reverse=True)
    candidates = [path.absolute() for path in (*on_path, *in_pyenv) if os.access(path, os.X_OK)]
    return list(dict.fromkeys(candidates))


def _patch(path: Path) -> tuple[int, str]:
    """3.7.16 after 3.7.9."""
    number = path.parents[1].name.split(".")[2]
    return (int(number) if number.isdigit() else -1, number)


async def probe(path: Path, environ: Mapping[str, str]) -> Interpreter | str:
    """The interpreter at `path`; where it does not run, the reason."""
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            "-c",
            _PROBE,
            env=child_environment(environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return f"cannot be run ({error.strerror})"
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        return f"did not answer within {_PROBE_SECONDS:.0f} seconds"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _parsed(path, process.returncode, output)


def _parsed(path: Path, code: int | None, output: bytes) -> Interpreter | str:
    try:
        answer = json.loads(output)
        return Interpreter(path, answer["python"], answer["sdk"], tuple(answer["missing"]))
    except (ValueError, KeyError, TypeError):
        return f"is no working Python (it ended with code {code})"
