"""The symbol that a person means: BTC/USDT itself, BTCUSDT for it, or a pattern such as */USDT."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from collector.errors import InvalidInput
from collector.market.letters import fits

if TYPE_CHECKING:
    from collections.abc import Iterable

_WILD = frozenset("*?[")


def is_pattern(name: str) -> bool:
    """Whether it stands for several symbols."""
    return not _WILD.isdisjoint(name)


def is_short(name: str) -> bool:
    """Whether it may be another way to write a symbol: symbols have a slash."""
    return "/" not in name and not is_pattern(name)


def like(pattern: str, symbols: Iterable[str]) -> list[str]:
    """The symbols that a pattern stands for, in their order, whatever the pattern's case.

    A market may be written like a pattern, and then it is meant: `[X]/USDT` is not `X/USDT`.
    """
    known = list(symbols)
    if pattern in known:
        return [pattern]
    return [each for each in known if fnmatchcase(each, pattern.upper())]


def searched(words: str, symbols: Iterable[str]) -> list[str]:
    """The symbols like a pattern, or with these letters in them whatever their case."""
    if is_pattern(words):
        return like(words, symbols)
    return [each for each in symbols if fits(words, each)]


def meant(name: str, symbols: Iterable[str], whose: str, *, field: str = "symbol") -> str:
    """The one symbol that `name` is; `name` itself when there is none.

    InvalidInput names them when there are several.
    """
    if not is_short(name):
        return name
    known = set(symbols)
    same = sorted(each for each in known if letters(each.partition(":")[0]) == letters(name))
    if name in known or not same:
        return name
    if len(same) > 1:
        reason = f"{whose} has {len(same)} markets that are written {name!r}"
        raise InvalidInput(field, "ambiguous_symbol", reason, same)
    return same[0]


def letters(text: str) -> str:
    """What is left of a symbol without its separators."""
    return "".join(char for char in text.upper() if char.isalnum())
