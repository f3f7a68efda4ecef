"""`/api/v1/quarantine`: rows that were refused, and why."""

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.reader_threads import in_reader
from api.roles import VIEWER
from api.schemas.quarantine import QuarantineAsked, QuarantinePage, RefusedView
from collector.errors import InvalidInput
from collector.operations.series_reports import check_names
from collector.operations.stored_symbol import stored_symbol
from collector.store.port import Storage
from collector.store.refused_rows import Place, RefusedRow, Which, refused_rows

router = APIRouter(prefix="/api/v1/quarantine", tags=["reports"])


@router.get("", summary="List refused rows", dependencies=[VIEWER])
async def list_quarantine(
    asked: Annotated[QuarantineAsked, Query()], parts: Parts
) -> QuarantinePage:
    """What exchanges sent that is no bar: its slot stays missing until a good one comes."""
    check_names(asked.exchange_id, asked.timeframe)
    symbol = asked.symbol
    if symbol is not None:
        symbol = await in_reader(stored_symbol, parts.store, asked.exchange_id, symbol)
    try:
        which = Which(asked.exchange_id, symbol, asked.timeframe)
    except ValueError:
        return QuarantinePage(items=[], next_cursor=None)
    after = None if asked.cursor is None else _place(asked.cursor)
    found = await in_reader(_page, parts.store.storage, which, after, asked.limit + 1)
    page = found[: asked.limit]
    more = len(found) > len(page)
    return QuarantinePage(
        items=[RefusedView.of(each) for each in page],
        next_cursor=str(page[-1].place) if more else None,
    )


def _page(storage: Storage, which: Which, after: Place | None, limit: int) -> list[RefusedRow]:
    return list(islice(refused_rows(storage, which, after), limit))


def _place(cursor: str) -> Place:
    try:
        return Place.parse(cursor)
    except ValueError:
        raise InvalidInput("cursor", "bad_cursor", "no answer ever had this cursor") from None
