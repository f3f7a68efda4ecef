"""The SDK for tests: its real Python over the stand-in, or all of it, in interpreters that run it.

The SDK is proprietary, so it is never part of this repository. Its wheel is downloaded when a test
needs it and kept in a cache. Where that cannot be done a test is skipped, saying so; CI fails.
The SDK itself needs a Python 3.7, which cannot be downloaded from a package index: without one the
tests that need it are skipped in CI, too, and those with the stand-in run on our own Python.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from collector.exchanges.fxcm.interpreter import candidates, child_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "1.6.43"
_PINS = (f"forexconnect=={VERSION}", "numpy==1.21.6", "pandas==1.3.5")
_WHEEL = f"forexconnect-{VERSION}-cp37-cp37m-manylinux1_x86_64.whl"
_SHA256 = "94e659fbd898e2b1e21625f027ade9958d0def04488b2673d83cc07779d8a456"
_STAND_IN = Path(__file__).with_name("fxcorepy")
_NO_PANDAS = Path(__file__).with_name("pandas_stand_in.py")
_PATIENCE_SECONDS = 500


def fake_python(folder: Path, python: Path | None = None) -> Path:
    """An interpreter in which `forexconnect` is the SDK's Python over the stand-in.

    A script that sets the import path and becomes the interpreter. Collector knows nothing of it.
    """
    site = folder / "site"
    if not site.exists():
        _unpack(_wheel(), site)
        lib = site / "forexconnect" / "lib"
        (lib / "fxcorepy").symlink_to(_STAND_IN, target_is_directory=True)
        (site / "pandas.py").symlink_to(_NO_PANDAS)
    runner = folder / "python"
    command = (
        f"PYTHONPATH={shlex.quote(str(site))} exec {shlex.quote(str(python or sys.executable))}"
    )
    runner.write_text(f'#!/bin/sh\n{command} "$@"\n')
    runner.chmod(0o755)
    return runner


def real_python() -> Path:
    """A Python 3.7 with the real SDK in it, native part and all."""
    with _alone("sdk") as cache:
        home = cache / f"sdk-{VERSION}"
        python = home / "bin" / "python"
        if not (home / "complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            _run(str(_python37()), "-m", "venv", str(home))
            _run(str(python), "-m", "pip", "install", "--quiet", *_PINS)
            (home / "complete").touch()
        return python


def _python37() -> Path:
    probe = "import sys; sys.exit(sys.version_info[:2] != (3, 7))"
    for path in candidates(os.environ):
        with contextlib.suppress(OSError):
            if not subprocess.run([path, "-c", probe], capture_output=True, check=False).returncode:
                return path
    pytest.skip("FXCM: NOT TESTED on Python 3.7: none on PATH or under pyenv")


def _wheel() -> Path:
    with _alone("wheel") as cache:
        wheel = cache / _WHEEL
        if not wheel.exists():
            _run(
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--python-version", "37", "--platform", "manylinux1_x86_64"),
                *("--only-binary=:all:", "--dest", str(cache), _PINS[0]),
            )
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != _SHA256:
            _unavailable(f"{wheel} is not the wheel that was expected")
        return wheel


def _unpack(wheel: Path, site: Path) -> None:
    """The wheel as pip would lay it out, without the native part."""
    purelib = f"forexconnect-{VERSION}.data/purelib/"
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            target = site / name.removeprefix(purelib)
            if name.endswith((".py", "METADATA")):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))


@contextlib.contextmanager
def _alone(purpose: str) -> Iterator[Path]:
    """The cache, to one process at a time that makes the same thing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "collector-tests")
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{purpose}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield cache


def _run(*command: str) -> None:
    try:
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            env=child_environment(os.environ),
        )
    except subprocess.SubprocessError as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        _unavailable(f"`{' '.join(command)}` failed: {said[-1] if said else ''}")


def _unavailable(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"FXCM: {reason}")
    pytest.skip(f"FXCM: NOT TESTED: {reason}")
