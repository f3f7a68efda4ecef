"""The settings as a whole: every mistake, and every value with where it comes from.

Needs no database. Whether symbols exist is known to the database alone: `collector plan` checks it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretStr

from collector.errors import CollectorError, ConfigError
from collector.keys import ApiKeys
from collector.listening import only_loopback
from collector.operations.market_names import NoMarkets
from collector.operations.wish_check import wish_mistakes
from collector.settings import Settings, file_of, settings_or_mistakes
from collector.settings_file import read_file
from collector.settings_names import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

HIDDEN = "(hidden)"
_LOGIN = re.compile(r"(?<=://)\S*@")
"""Up to the last @: a password that is not encoded may hold others."""


@dataclass(frozen=True, slots=True)
class SettingValue:
    """One setting in effect. `source` is a variable, the file, or `default`."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class SettingsCheck:
    """What was found. Without a single readable tree there are no values."""

    file: Path | None
    mistakes: tuple[str, ...]
    values: tuple[SettingValue, ...] = ()
    notes: tuple[str, ...] = ()


def check_settings(config: Path | None) -> SettingsCheck:
    """Reads file and environment, and checks all that can be checked here."""
    path = file_of(config)
    try:
        content = read_file(path) if path else {}
    except ConfigError as error:
        return SettingsCheck(path, (str(error),))
    settings, mistakes = settings_or_mistakes(content, path)
    if settings is None:
        return SettingsCheck(path, tuple(mistakes))
    wrong, notes = asyncio.run(_wishes(settings))
    mistakes = [*mistakes, *_logins(settings), *wrong]
    values = tuple(_values(settings, content, str(path)))
    return SettingsCheck(path, tuple(mistakes), values, tuple(notes))


async def _wishes(settings: Settings) -> tuple[list[str], list[str]]:
    now_ms = time.time_ns() // 1_000_000
    wrong, unknown = await wish_mistakes(settings, now_ms, NoMarkets())
    notes = ["symbols are checked by `collector plan`, which asks the database"] if unknown else []
    return wrong, notes


def _logins(settings: Settings) -> Iterator[str]:
    """Mistakes that a program would meet at its start."""
    secret = settings.api_keys
    try:
        keys = ApiKeys.parse(secret.get_secret_value() if secret else None)
    except CollectorError as error:
        yield f"api_keys: {error}"
        return
    for check in (
        lambda: settings.mongo_address,
        lambda: only_loopback(settings.server.host, keys),
        lambda: only_loopback(settings.worker.metrics_host, keys),
    ):
        try:
            check()
        except CollectorError as error:
            yield str(error)


def _values(settings: Settings, content: Mapping[str, Any], file: str) -> Iterator[SettingValue]:
    for path, value in _leaves(settings, ()):
        yield SettingValue(".".join(path), _shown(value), _source(path, content, file))


def _leaves(section: Any, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value below a section; a section of a map or a list is one by its key or number."""
    for name, value in _children(section):
        path = (*at, name)
        inner = list(value.items()) if isinstance(value, dict) else list(_numbered(value))
        if _is_section(value):
            yield from _leaves(value, path)
        elif inner and all(_is_section(each) for _, each in inner):
            for key, each in inner:
                yield from _leaves(each, (*path, str(key)))
        else:
            yield path, value


def _numbered(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        yield from ((str(at), each) for at, each in enumerate(value))


def _children(section: Any) -> list[tuple[str, Any]]:
    names: Sequence[str]
    if isinstance(section, BaseModel):
        names = list(type(section).model_fields)
    else:
        names = [each.name for each in dataclasses.fields(section)]
    return [(name, getattr(section, name)) for name in names]


def _is_section(value: Any) -> bool:
    is_record = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return isinstance(value, BaseModel) or is_record


def _source(path: tuple[str, ...], content: Mapping[str, Any], file: str) -> str:
    """The environment wins; a variable may hold a whole section."""
    set_here = {name.upper(): name for name in os.environ}
    for length in range(len(path), 0, -1):
        name = PREFIX + "__".join(path[:length]).upper()
        if name in set_here and (length == len(path) or path[-1] in os.environ[set_here[name]]):
            return set_here[name]
    at: Any = content
    for part in path:
        if isinstance(at, list) and part.isdigit() and int(part) < len(at):
            at = at[int(part)]
        elif isinstance(at, dict) and part in at:
            at = at[part]
        else:
            return "default"
    return file


def _shown(value: Any) -> str:
    if value is None or isinstance(value, SecretStr):
        return "" if value is None else HIDDEN
    if isinstance(value, dict | list | tuple):
        return _LOGIN.sub(f"{HIDDEN}@", str(value)) if value else ""
    return _LOGIN.sub(f"{HIDDEN}@", str(value))
