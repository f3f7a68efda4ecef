"""What filters of jobs mean: symbols may be written without their slash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.list_filters import values
from collector.jobs.listing import BY_SYMBOL, distinct
from collector.operations.meant_symbol import is_short, meant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.mongo.client import Database


async def meant_filters(
    database: Database, filters: Mapping[str, str | Sequence[str]]
) -> dict[str, list[str]]:
    """The same with every symbol as jobs have it, where one of theirs is written so."""
    given = values(filters)
    if not any(map(is_short, given.get("symbol", ()))):
        return given
    of = {"exchange_id": {"$in": given["exchange_id"]}} if given.get("exchange_id") else {}
    known = [each for each in await distinct(database.jobs, of, "symbol", BY_SYMBOL.name) if each]
    return {**given, "symbol": [meant(name, known, "the list") for name in given["symbol"]]}
