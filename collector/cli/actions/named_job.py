"""The job that a person means: by its id, the beginning of it, or what it is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collector.errors import InvalidInput, NotFound
from collector.exchanges.registry import known_exchanges
from collector.jobs import types
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.fleet.interface import Fleet, Shown

SHOWN = 5
_HEX = re.compile(r"[0-9a-f]{4,24}")


async def job_ids(fleet: Fleet, words: Sequence[str]) -> list[str]:
    """The ids that these arguments mean.

    Either every word is an id or the beginning of one, or all words together describe one job:
    exchange, symbol, timeframe, type, as many of them as it takes to make it unique.
    """
    if words and words[0] in known_exchanges():
        return [(await _described(fleet, words))["id"]]
    return [await _by_prefix(fleet, word) for word in words]


async def _by_prefix(fleet: Fleet, word: str) -> str:
    if len(word) == 24 or _HEX.fullmatch(word) is None:
        return word  # Whole, or no id at all: the queue says so.
    found = await fleet.jobs.with_prefix(word, SHOWN + 1)
    if not found:
        raise NotFound(f"no job's id begins with {word}")
    return str(_only(found, f"ids begin with {word}")["id"])


async def _described(fleet: Fleet, words: Sequence[str]) -> Shown:
    found = (await fleet.jobs.page(described(words), SHOWN + 1))["items"]
    if not found:
        raise NotFound(f"there is no job of {' '.join(words)}")
    return _only(found, f"jobs are of {' '.join(words)}")


def described(words: Sequence[str]) -> dict[str, str]:
    """The filters that these words are. InvalidInput when two words are the same kind."""
    filters = {"exchange_id": words[0]}
    for word in words[1:]:
        kind, value = _kind(word)
        if kind in filters:
            reason = f"{filters[kind]!r} and {word!r} are both a {kind}"
            raise InvalidInput("job", "described_twice", reason)
        filters[kind] = value
    return filters


def _kind(word: str) -> tuple[str, str]:
    if types.find(word) is not None:
        return "type", word
    try:
        return "timeframe", Timeframe.parse(word).name
    except ValueError:
        return "symbol", word


def _only(found: Sequence[Shown], what: str) -> Shown:
    if len(found) == 1:
        return found[0]
    names = [
        " ".join(filter(None, (job["id"], job["symbol"], job["timeframe"], job["type"])))
        for job in found[:SHOWN]
    ]
    more = ", and more" if len(found) > SHOWN else ""
    raise InvalidInput("job", "not_unique", f"several {what}: {'; '.join(names)}{more}")
