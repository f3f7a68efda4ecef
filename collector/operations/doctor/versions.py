"""Versions of this program and of what it stands on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from collector.operations.doctor.finding import Finding, ok, problem
from collector.store.signature import build_signature

AREA = "versions"
PACKAGES = ("ccxt", "pymongo", "pyarrow")


def versions() -> list[Finding]:
    """Read from the installed packages without importing them: ccxt takes a second."""
    found, lacking = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            lacking.append(name)
    program = f"{build_signature()}, Python {platform.python_version()}"
    made = [ok(AREA, ", ".join([program, *found]))]
    if lacking:
        words = f"not installed: {', '.join(lacking)}"
        made.append(problem(AREA, words, "make install, or pip install collector"))
    return made
