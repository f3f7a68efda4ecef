"""Where the requested history of each series begins, according to its jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.freezing import Frozen
from collector.jobs.listing import BY_SYMBOL
from collector.jobs.states import LIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.mongo.client import Database, Document

DECODED_AT_ONCE = 500
_NEEDED = ["type", "symbol", "timeframe", "cursor", "progress.from_ms", "waiting_for"]


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What the jobs of one series record.

    begun_ms  where its history begins, as the exchange answered when the job began since_ms  the
    requested beginning of a job that has not begun; 0: the first bar is_ended  its market is gone,
    and everything that the exchange still served was fetched
    """

    begun_ms: int | None = None
    since_ms: int | None = None
    is_ended: bool = False


async def asked_for(
    database: Database, exchange_id: str, symbols: Sequence[str]
) -> dict[tuple[str, str], AskedFor]:
    """What live jobs record about the series of these symbols, by symbol and timeframe."""
    documents = await database.jobs.find(
        {
            "symbol": {"$in": sorted(set(symbols))},
            "exchange_id": exchange_id,
            "status": {"$in": sorted(LIVE)},
            "type": {"$in": [*types.history(), types.OHLCV_INCREMENTAL.name]},
        },
        projection=_NEEDED,
        hint=BY_SYMBOL.name,
        batch_size=DECODED_AT_ONCE,
    )
    found: dict[tuple[str, str], AskedFor] = {}
    for document in documents:
        name = document["symbol"], document["timeframe"]
        found[name] = _joined(found.get(name, AskedFor()), document)
    return found


def _joined(known: AskedFor, document: Document) -> AskedFor:
    is_ended = known.is_ended or document.get("waiting_for") in set(Frozen)
    if document["type"] not in types.history():
        return AskedFor(known.begun_ms, known.since_ms, is_ended)
    begun_ms = (document.get("progress") or {}).get("from_ms")
    since_ms = document["cursor"]["since_ms"] if begun_ms is None else None
    return AskedFor(_least(known.begun_ms, begun_ms), _least(known.since_ms, since_ms), is_ended)


def _least(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)
