"""Trade history as requests and answers show it: 256-bit integers are text, times epoch ms."""

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.row_formats import Format
from api.schemas.fields import WHOLE, Body, Moment, Name, QueryFields
from collector.errors import InvalidInput
from collector.history.event import LATEST_MS
from collector.history.inbox import NetworkState
from collector.history.known_pairs import KnownPairs
from collector.market.moment import moment_at

Uint256 = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{1,78}$"),
    Field(description="An unsigned integer below 2^256, as text", examples=["1500000000000000000"]),
]
AssetName = Annotated[
    str,
    StringConstraints(min_length=3, max_length=200, pattern=r"^[^\x00]*$"),
    Field(description="`NET:TOKEN`"),
]
NetworkName = Annotated[Name, Field(description="One of the settings", examples=["riemann"])]


class AssetBody(Body):
    net_id: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-]{1,64}$")]
        | Annotated[int, Field(ge=0, le=2**53 - 1), WHOLE]
    )
    token: Annotated[str, StringConstraints(min_length=1, max_length=128)]


class InputBody(Body):
    """One input. `price` is buy for one sell, times 10^18; only the first has a `residual`."""

    side: Literal["ASK", "BID"] | None = Field(
        default=None, description="ASK: base is sold. May be left out; must agree if given"
    )
    sell: AssetBody
    buy: AssetBody
    price: Uint256
    value: Uint256
    residual: Uint256 = "0"
    payout: Uint256 = Field(description="What the seller got; an input without one is no trade")


class EventBody(Body):
    op: Literal["a", "d"] = Field(description="a: confirmed, d: taken away by a reorg")
    tx_hash: Annotated[str, StringConstraints(pattern=r"^[!-~]{1,200}$")]
    ts: Annotated[int, Field(ge=0, lt=LATEST_MS), WHOLE] = Field(
        description="The transaction's own time in epoch ms", examples=[1735689600000]
    )
    inputs: Annotated[list[InputBody], Field(min_length=1, max_length=64)]


class EventsBody(Body):
    """Events in the order in which the network reported them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "events": [
                        {
                            "op": "a",
                            "tx_hash": "0x9f3c",
                            "ts": 1735689600000,
                            "inputs": [
                                {
                                    "side": "ASK",
                                    "sell": {"net_id": "1", "token": "GOLD"},
                                    "buy": {"net_id": "1", "token": "OIL"},
                                    "price": "1500000000000000000",
                                    "value": "1000",
                                    "residual": "0",
                                    "payout": "1500",
                                }
                            ],
                        }
                    ]
                }
            ]
        }
    )

    events: Annotated[list[EventBody], Field(min_length=1, max_length=500)]

    def documents(self) -> list[dict[str, Any]]:
        return [each.model_dump() for each in self.events]


class ReceiptView(BaseModel):
    """`sequence` is the last event's; when all are repetitions, the greatest that they repeat."""

    sequence: int
    accepted: int
    duplicates: int


class NetworkEvent(BaseModel):
    """How far a network has come: the last sequence given, and the last in the ledger."""

    network: str
    sequence: int
    applied_through: int

    @classmethod
    def of(cls, network: str, state: NetworkState) -> Self:
        return cls(network=network, sequence=state.sequence, applied_through=state.applied_through)


class PairAsked(QueryFields):
    """A pair, a range `[from, to)` in UTC, and candles of which length."""

    network: NetworkName
    base: AssetName = Field(examples=["1:GOLD"])
    quote: AssetName = Field(examples=["1:OIL"])
    from_ms: Moment | None = Field(default=None, alias="from")
    to_ms: Moment | None = Field(
        default=None, alias="to", examples=["2025-02-01T00:00:00Z", 1738368000000]
    )
    bucket: Annotated[int, Field(ge=1, lt=2**32)] | None = Field(
        default=None, description="Seconds, a multiple of `history.bucket_sec`"
    )
    fill: bool = Field(default=False, description="Candles at the last price where nothing traded")
    after: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(
        default=None, description="Wait until this sequence is applied, 5 s at most; else 503"
    )

    @property
    def start(self) -> np.datetime64 | None:
        return None if self.from_ms is None else moment_at(self.from_ms)

    @property
    def end(self) -> np.datetime64 | None:
        return None if self.to_ms is None else moment_at(self.to_ms)

    def check_order(self) -> None:
        """Refuses a range that ends before it begins."""
        if self.from_ms is not None and self.to_ms is not None and self.to_ms <= self.from_ms:
            raise InvalidInput("to", "end_before_start", "`to` must be after `from`")


class PageAsked(PairAsked):
    limit: Annotated[int, Field(ge=1, le=10_000)] = Field(1000, description="Candles at most")
    cursor: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,15}$")] | None = Field(
        default=None, description="`next_cursor` of the page before"
    )


class RateAsked(PageAsked):
    mode: Literal["spot", "vwap", "ohlcv"] = "spot"


class CandlesOfPairAsked(PairAsked):
    format: Format = "json"


class _Exact(BaseModel):
    applied_through: int = Field(description="The last event that the answer includes")
    source: Literal["buckets", "ledger"] = Field(description="`ledger`: the cache is switched off")


class SpotView(_Exact):
    """The last trade of the range."""

    price: str | None
    ts: int | None


class VolumeView(_Exact):
    sum_base: str
    sum_quote: str
    trades: int


class VwapView(VolumeView):
    """The mean price, weighted by volume."""

    price: str | None


class CandleItem(BaseModel):
    ts: int
    open: str
    high: str
    low: str
    close: str
    sum_base: str
    sum_quote: str
    first_ts: int
    last_ts: int
    trades: int
    filled: bool


class CandleItems(_Exact):
    items: list[CandleItem]
    next_cursor: str | None


class VolumeItem(BaseModel):
    ts: int
    sum_base: str
    sum_quote: str
    trades: int


class VolumeItems(_Exact):
    items: list[VolumeItem]
    next_cursor: str | None


class PairView(BaseModel):
    """A pair of a network."""

    network: str = Field(description="One of the settings")
    base: str = Field(description="`NET:TOKEN`")
    quote: str = Field(description="`NET:TOKEN`")
    bucket_sec: int = Field(description="How long its stored buckets are, in seconds")

    @classmethod
    def all_of(cls, known: KnownPairs) -> list[Self]:
        return [
            cls(
                network=known.network,
                base=str(pair.base),
                quote=str(pair.quote),
                bucket_sec=known.bucket_sec,
            )
            for pair in known.pairs
        ]


class PairPage(BaseModel):
    """All of them: `next_cursor` is always null."""

    items: list[PairView]
    next_cursor: None = None
