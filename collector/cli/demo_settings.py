"""Where the demo lives: a home, a database and a lake of its own, inside the real home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from collector.settings import Settings

_ADDRESS = "exchange_urls"


def demo_home(home: Path) -> Path:
    """The demo's home, inside the real one."""
    return home / "demo"


def demo_settings(settings: Settings) -> Settings:
    """The same settings, in the demo's own home, database and lake, with its own exchange."""
    from collector.settings_file import read_file

    home = demo_home(settings.home)
    own = {"home": home, "mongo_db": "collector_demo", "data": str(home / "data"), "url": None}
    nothing: dict[str, Any] = {"exchanges": {}, "streams": [], "fxcm": None, "global_limit": None}
    config = _config(home)
    urls = read_file(config).get(_ADDRESS) or {} if config.exists() else {}
    return settings.model_copy(update={**own, **nothing, _ADDRESS: urls})


def demo_config(home: Path, exchange: tuple[str, str] | None = None) -> Path:
    """A settings file for the demo's processes, so that they do not find the real one.

    It has the address of `exchange`, as (id, address), for verbs that ask it while it runs.
    """
    config = _config(home)
    if exchange is not None or not config.exists():
        home.mkdir(parents=True, exist_ok=True)
        address = "" if exchange is None else f'{_ADDRESS}: {{{exchange[0]}: "{exchange[1]}"}}\n'
        config.write_text(f"# The demo runs on defaults.\n{address}", encoding="utf-8")
    return config


def _config(home: Path) -> Path:
    return home / "collector.yaml"
