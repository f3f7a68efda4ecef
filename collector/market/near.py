"""Names that look like what was typed."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SUGGESTIONS = 3
_CLOSE_ENOUGH = 0.6


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Known names that look like `name` whatever their case, the likeliest first."""
    by_key = {_key(each): each for each in sorted(known, reverse=True)}
    found = difflib.get_close_matches(_key(name), by_key, n=_SUGGESTIONS, cutoff=_CLOSE_ENOUGH)
    return tuple(by_key[key] for key in found)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error's sentence; empty when nothing is near."""
    found = near(name, known)
    *others, last = found or ("",)
    options = f"{', '.join(others)} or {last}" if others else last
    return f"; did you mean {options}?" if found else ""


def _key(name: str) -> str:
    # BTCUSDT, btc-usdt and BTC_USDT are how venues write BTC/USDT.
    return name.strip().upper().replace("-", "/").replace("_", "/")
