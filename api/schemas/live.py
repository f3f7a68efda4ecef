"""The last state of price streams as answers show it."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints

from api.schemas.fields import ExchangeId, Limit, QueryFields, Symbol, View

LiveKind = Literal["price", "heartbeat", "market_status"]


class LiveAsked(QueryFields):
    """Which states; all of them by default."""

    kind: LiveKind | None = None
    """Only of this kind"""
    exchange_id: ExchangeId | None = None
    symbol: Symbol | None = None
    limit: Limit = 100
    cursor: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="`next_cursor` of the page before"
    )


class LiveView(View):
    """The last message of one kind. `seen_at` is epoch ms, times in the payload epoch seconds.

    A price is of one symbol; a heartbeat and a market status are of the exchange. `fence` grows
    with every owner of the stream.
    """

    kind: LiveKind
    """What it is about"""
    exchange_id: str
    """The exchange"""
    symbol: str | None
    """The market of a price; null for the others"""
    fence: int
    """Grows with every owner of the stream"""
    seen_at: int
    """When it was stored, in epoch ms"""
    payload: dict[str, Any] = Field(
        description="price: `symbol`, `bid`, `ask`, `mid`, `tick_ts`, `snap_ts`; heartbeat: "
        "`state`, `ts`, `last_change_ts`, `fence`, `price_snap_ts`, `tick_silence_seconds`, "
        "`context`; market_status: `state`, `next_open_seconds`, `ts`, `price_snap_ts`, "
        "`tick_silence_seconds`"
    )

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        return cls.model_validate(document)


class LivePage(View):
    items: list[LiveView]
    """By kind, exchange and symbol"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""
