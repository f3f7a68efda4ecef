"""`/api/v1/exchanges`: every exchange that can be connected."""

from fastapi import APIRouter

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.exchanges import ExchangePage, ExchangeView
from collector.exchanges.registry import known_exchanges

router = APIRouter(prefix="/api/v1/exchanges", tags=["connectors"])


@router.get("", summary="List the exchanges that can be connected", dependencies=[VIEWER])
async def list_exchanges(parts: Parts) -> ExchangePage:
    """By id, whether or not there is a connector."""
    connected = {each.exchange_id for each in await parts.registry.all()}
    names = sorted({*known_exchanges(), *connected})
    return ExchangePage(
        items=[ExchangeView(exchange_id=name, connected=name in connected) for name in names]
    )
