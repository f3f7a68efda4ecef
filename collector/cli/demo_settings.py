"""Where the demo lives: a home, a database and a lake of its own, inside the real home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from collector.settings import Settings


def demo_settings(settings: Settings) -> Settings:
    """The same settings, in the demo's own home, database and lake."""
    home = settings.home / "demo"
    own = {"home": home, "mongo_db": "collector_demo", "data": str(home / "data"), "url": None}
    nothing: dict[str, Any] = {"exchanges": {}, "streams": [], "fxcm": None, "global_limit": None}
    return settings.model_copy(update={**own, **nothing})


def demo_config(home: Path) -> Path:
    """A settings file for the demo's processes, so that they do not find the real one."""
    home.mkdir(parents=True, exist_ok=True)
    config = home / "collector.yaml"
    config.write_text("# The demo runs on defaults.\n", encoding="utf-8")
    return config
