"""What the jobs of each series request of it, and what they were told is empty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.freezing import Frozen
from collector.jobs.listing import BY_SYMBOL
from collector.jobs.states import LIVE
from collector.jobs.unconfirmed import SILENT, open_silences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.mongo.client import Database, Document
    from collector.pipeline.evidence import Silence

DECODED_AT_ONCE = 500
_ASKING = [*types.history(), types.OHLCV_INCREMENTAL.name]
_NEEDED = [
    *("exchange_id", "type", "symbol", "timeframe", "status", "cursor", "next_run_at"),
    *("progress.from_ms", "progress.silences", "waiting_for"),
]


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What the jobs of one series record."""

    begun_ms: int | None = None
    """Where its history begins, as the exchange answered when the job began."""
    since_ms: int | None = None
    """The requested beginning of a job that has not begun; 0: the first bar."""
    is_ended: bool = False
    """Whether its market is gone, and everything that the exchange still served was fetched."""
    silences: tuple[Silence, ...] = ()
    """What the exchange reported as empty and is asked about again."""


async def asked_for(
    database: Database, exchange_id: str, symbols: Sequence[str]
) -> dict[tuple[str, str], AskedFor]:
    """What live jobs record about the series of these symbols, by symbol and timeframe."""
    documents = await database.jobs.find(
        {
            "symbol": {"$in": sorted(set(symbols))},
            "exchange_id": exchange_id,
            "status": {"$in": sorted(LIVE)},
            # A gap job asks for nothing of its own: only what it has heard counts here.
            "$or": [{"type": {"$in": _ASKING}}, {"type": types.GAP_BACKFILL.name, **SILENT}],
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
    joined = replace(
        known,
        is_ended=known.is_ended or document.get("waiting_for") in set(Frozen),
        silences=(*known.silences, *open_silences(document)),
    )
    if document["type"] not in types.history():
        return joined
    begun_ms = (document.get("progress") or {}).get("from_ms")
    since_ms = document["cursor"]["since_ms"] if begun_ms is None else None
    return replace(
        joined,
        begun_ms=_least(known.begun_ms, begun_ms),
        since_ms=_least(known.since_ms, since_ms),
    )


def _least(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)
