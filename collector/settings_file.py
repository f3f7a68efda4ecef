"""Finds the settings file and reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from collector.errors import ConfigError

_QUALITY_AT_THE_TOP = ("gap_recovery_days", "sanity_check_samples")
"""Keys of `quality` that the datalayer specification prints without their section."""
_FXCM_HISTORY = (
    "max_calls_per_min",
    "max_calls_per_hour",
    "priority_targets",
    "priority_reserve_per_min",
    "priority_reserve_per_hour",
    "load_thresholds",
)
"""Keys of `history` at the top that are `fxcm.stream.history_*` when there is an `fxcm` section."""
_FXCM_INTERVALS = "min_interval_by_tf"
_OF_SRV_DEX = {"history_cache": "cache", "history_bucket_sec": "bucket_sec"}
"""Keys of `history` by the names that they have in a node's own configuration."""


def default_file() -> Path | None:
    """The file that is read when none is named; None when there is none.

    ConfigError for one in the working directory that another user has put there.
    """
    home = Path(os.environ.get("COLLECTOR_HOME") or Path.home() / ".local" / "share" / "collector")
    here, at_home = Path("collector.yaml"), home / "collector.yaml"
    # A folder of that name is found, too, and refused: skipping it would ignore what was meant.
    if here.exists():
        _check_owner(here)
        return here
    return at_home if at_home.exists() else None


def _check_owner(path: Path) -> None:
    """Whoever writes the settings chooses the programs' addresses, files and exchanges."""
    if not hasattr(os, "getuid"):
        return  # Windows: a folder such as /tmp, in which everybody may write, is not usual there.
    owners = {path.lstat().st_uid, path.stat().st_uid}
    if owners - {os.getuid(), 0}:
        raise ConfigError(
            f"{path.absolute()} belongs to another user and is not read: "
            f"work in another folder, or name it with --config {path}"
        )


def misplaced_key(content: dict[str, Any]) -> str | None:
    """What is wrong when a key would be sent to an address that came from elsewhere.

    The file may be one that somebody else has written; the environment is the user's own.
    """
    variables = {name.upper(): value for name, value in os.environ.items()}
    has_url, has_token = "COLLECTOR_URL" in variables, "COLLECTOR_TOKEN" in variables
    url = variables.get("COLLECTOR_URL", content.get("url"))
    token = variables.get("COLLECTOR_TOKEN", content.get("token"))
    if not url or not token or has_url == has_token:
        return None
    if has_token:
        return "COLLECTOR_TOKEN goes to COLLECTOR_URL only, and `url` is set in the file: set both"
    return "`token` goes to `url` of the same file only: set COLLECTOR_TOKEN with COLLECTOR_URL"


def read_file(path: Path) -> dict[str, Any]:
    """The content of a file, every key in its section. ConfigError when it cannot be understood."""
    import yaml  # Many processes have no file, only an environment.

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except IsADirectoryError:
        raise ConfigError(
            f"{path} is a folder and must be a file"
            " (Docker makes a folder where the file of a bind mount is missing)"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold keys and values, not a {type(content).__name__}")
    return _sectioned(content)


def _sectioned(content: dict[str, Any]) -> dict[str, Any]:
    """The content with every key that has another name where its own section has it."""
    return _with_stream_of_fxcm(_with_history(_with_quality(content)))


def _with_quality(content: dict[str, Any]) -> dict[str, Any]:
    """With the keys of `quality` moved into it."""
    moved = {name: content[name] for name in _QUALITY_AT_THE_TOP if name in content}
    quality = content.get("quality") or {}
    if not moved or not isinstance(quality, dict):
        return content
    rest = {name: value for name, value in content.items() if name not in moved}
    named = {name: (name, value) for name, value in moved.items()}
    return {**rest, "quality": _merged(quality, "quality", named)}


def _with_history(content: dict[str, Any]) -> dict[str, Any]:
    """With a node's own names of `history` moved into it."""
    alias = content.get("srv_dex")
    history = content.get("history") or {}
    if not isinstance(alias, dict) or not set(alias) <= set(_OF_SRV_DEX):
        return content  # The settings report that there is no such section.
    if not isinstance(history, dict):
        return content
    rest = {name: value for name, value in content.items() if name != "srv_dex"}
    named = {_OF_SRV_DEX[name]: (f"srv_dex.{name}", value) for name, value in alias.items()}
    return {**rest, "history": _merged(history, "history", named)}


def _with_stream_of_fxcm(content: dict[str, Any]) -> dict[str, Any]:
    """With `stream` and FXCM's keys of `history` moved to `fxcm.stream`, where `fxcm` is there."""
    if "fxcm" not in content:
        return content
    fxcm, top = content["fxcm"] or {}, content.get("stream") or {}
    history = content.get("history") or {}
    stream: Any = fxcm.get("stream") or {} if isinstance(fxcm, dict) else None
    if not all(isinstance(each, dict) for each in (fxcm, stream, history, top)):
        return content  # Errors in it are reported when the sections are read.
    named = {name: (f"stream.{name}", value) for name, value in top.items()}
    stream = _merged(stream, "fxcm.stream", named)
    stream = _merged(stream, "fxcm.stream", _history_of_fxcm(history))
    rest = {name: value for name, value in content.items() if name not in ("stream", "history")}
    other = {
        name: value
        for name, value in history.items()
        if name not in (*_FXCM_HISTORY, _FXCM_INTERVALS)
    }
    kept = {"history": other} if other or ("history" in content and not history) else {}
    return {**rest, **kept, "fxcm": {**fxcm, "stream": stream}}


def _history_of_fxcm(history: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    """The canonical names of FXCM's keys, with how they were written."""
    named = {
        f"history_{name}": (f"history.{name}", history[name])
        for name in _FXCM_HISTORY
        if name in history
    }
    intervals = history.get(_FXCM_INTERVALS) or {}
    if not isinstance(intervals, dict):
        raise ConfigError(f"history.{_FXCM_INTERVALS} has to be a map of timeframes and seconds")
    return named | {
        f"history_min_interval_seconds_{tf}": (f"history.{_FXCM_INTERVALS}.{tf}", value)
        for tf, value in intervals.items()
    }


def _merged(section: dict[str, Any], at: str, given: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    """The section with what was given elsewhere, as (name there, value)."""
    for name, (there, value) in given.items():
        if section.get(name, value) != value:
            both = f"{there}: {value} and {at}.{name}: {section[name]}"
            raise ConfigError(f"{both} are two values of one setting: keep the second")
    return {**section, **{name: value for name, (_, value) in given.items()}}
