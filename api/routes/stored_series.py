"""`/api/v1/series`: of which markets bars are stored."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Parts
from api.reader_threads import in_reader
from api.roles import VIEWER
from api.schemas.stored_series import StoredAsked, StoredMarketView, StoredPage
from collector.operations.series_reports import check_names
from collector.operations.stored_markets import stored_markets

router = APIRouter(prefix="/api/v1/series", tags=["candles"])


@router.get("", summary="List the markets with stored bars", dependencies=[VIEWER])
async def list_series(asked: Annotated[StoredAsked, Query()], parts: Parts) -> StoredPage:
    """By exchange and symbol, with the timeframes that can be read and the range that is stored."""
    check_names(asked.exchange_id, None)
    found = await in_reader(
        stored_markets,
        parts.store,
        asked.exchange_id,
        asked.symbol,
        asked.search,
        after=asked.after,
        limit=asked.limit + 1,
    )
    page = found[: asked.limit]
    more = len(found) > len(page)
    return StoredPage(
        items=[StoredMarketView.of(each) for each in page],
        next_cursor="|".join(page[-1].key) if more else None,
    )
