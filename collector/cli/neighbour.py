"""The hint that the collector which runs here is not the one a verb looked at, but the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cli.demo_settings import demo_home
from collector.mongo.home import running

if TYPE_CHECKING:
    from pathlib import Path

_UP = "collector up"


def neighbour(home: Path, *, demo: bool) -> str | None:
    """What to type instead, perhaps; None when the one that was looked at runs, or none does."""
    mine, other = (demo_home(home), home) if demo else (home, demo_home(home))
    owner = running(other)
    # A verb may hold the database for a moment; that is no collector.
    if owner is None or not owner.purpose.startswith(_UP) or running(mine) is not None:
        return None
    at = f" at {owner.dashboard}" if owner.dashboard else ""
    if demo:
        return f"no demo is running, but a collector is{at}: leave out --demo to see it"
    return f"a demo is running{at}: --demo shows it"
