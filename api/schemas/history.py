"""Trade history as requests and answers show it: 256-bit integers are text, times epoch ms."""

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import ConfigDict, Field, StringConstraints

from api.row_formats import Format
from api.schemas.fields import WHOLE, Body, Moment, Name, QueryFields, View
from collector.errors import InvalidInput
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
    """A token of a net."""

    net_id: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-]{1,64}$")]
        | Annotated[int, Field(ge=0, le=2**53 - 1), WHOLE]
    ) = Field(description="The net that the token is of")
    token: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    """The token's name"""


class InputBody(Body):
    """One input. `price` is buy for one sell, times 10^18; only the first has a `residual`."""

    side: Literal["ASK", "BID"] | None = Field(
        default=None, description="ASK: base is sold. May be left out; must agree if given"
    )
    sell: AssetBody
    """What is sold"""
    buy: AssetBody
    """What is bought for it"""
    price: Uint256 = Field(description="Buy for one sell, times 10^18")
    value: Uint256 = Field(description="What was offered of `sell`")
    residual: Uint256 = Field("0", description="What was left of it; only of the first input")
    payout: Uint256 = Field(description="What the seller got; an input without one is no trade")


class EventBody(Body):
    """A transaction that was confirmed, or taken away."""

    op: Literal["a", "d"] = Field(description="a: confirmed, d: taken away by a reorg")
    tx_hash: Annotated[str, StringConstraints(pattern=r"^[!-~]{1,200}$")]
    """The transaction"""
    ts: Annotated[int, Field(ge=0, le=2**53 - 1), WHOLE] = Field(
        description="The transaction's own time in epoch ms, at most a day ahead of the server's",
        examples=[1735689600000],
    )
    inputs: Annotated[list[InputBody], Field(min_length=1, max_length=64)]
    """What it exchanged, in its own order"""


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
    """The events, the oldest first"""

    def documents(self) -> list[dict[str, Any]]:
        return [each.model_dump() for each in self.events]


class ReceiptView(View):
    """What became of the events."""

    sequence: int
    """That of the last event; when all are repetitions, the greatest that they repeat"""
    accepted: int
    """How many were new"""
    duplicates: int
    """How many were known already"""


class NetworkEvent(View):
    """How far a network has come."""

    network: str
    """The network"""
    sequence: int
    """The last sequence that was given"""
    applied_through: int
    """The last that is in the ledger"""

    @classmethod
    def of(cls, network: str, state: NetworkState) -> Self:
        return cls(network=network, sequence=state.sequence, applied_through=state.applied_through)


class PairAsked(QueryFields):
    """A pair, a range `[from, to)` in UTC, and candles of which length."""

    network: NetworkName
    base: AssetName = Field(description="`NET:TOKEN`, the smaller of the two", examples=["1:GOLD"])
    quote: AssetName = Field(description="`NET:TOKEN`", examples=["1:OIL"])
    from_ms: Moment | None = Field(default=None, alias="from", description="From here on")
    to_ms: Moment | None = Field(
        default=None,
        alias="to",
        description="Up to here, which is not included",
        examples=["2025-02-01T00:00:00Z", 1738368000000],
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
    """The last price, the mean by volume, or candles"""


class CandlesOfPairAsked(PairAsked):
    format: Format = "json"
    """The form of the answer"""


class _Exact(View):
    applied_through: int = Field(description="The last event that the answer includes")
    source: Literal["buckets", "ledger"] = Field(description="`ledger`: the cache is switched off")


class SpotView(_Exact):
    """The last trade of the range."""

    price: str | None
    """Its price times 10^18, as text; null without a trade"""
    ts: int | None
    """Its time in epoch ms; null without a trade"""


class VolumeView(_Exact):
    """What was traded in the range. Sums are integers as text."""

    sum_base: str
    """Of the base"""
    sum_quote: str
    """Of the quote"""
    trades: int
    """How many trades"""


class VwapView(VolumeView):
    """The mean price, weighted by volume."""

    price: str | None
    """Times 10^18, as text; null without a trade"""


class CandleItem(View):
    """One candle. Prices are times 10^18; they and the sums are integers as text."""

    ts: int
    """Where it begins, in epoch ms"""
    open: str
    """The price before its first trade"""
    high: str
    """The highest price"""
    low: str
    """The lowest price"""
    close: str
    """The price of its last trade"""
    sum_base: str
    """What was traded of the base"""
    sum_quote: str
    """What was traded of the quote"""
    first_ts: int
    """The time of its first trade, in epoch ms"""
    last_ts: int
    """The time of its last trade, in epoch ms"""
    trades: int
    """How many trades"""
    filled: bool
    """Nothing was traded: it stands at the last price"""


class CandleItems(_Exact):
    items: list[CandleItem]
    """The candles, oldest first"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""


class VolumeItem(View):
    """What was traded in one bucket. Sums are integers as text."""

    ts: int
    """Where it begins, in epoch ms"""
    sum_base: str
    """Of the base"""
    sum_quote: str
    """Of the quote"""
    trades: int
    """How many trades"""


class VolumeItems(_Exact):
    items: list[VolumeItem]
    """The buckets, oldest first"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""


class PairView(View):
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


class PairPage(View):
    """All of them: `next_cursor` is always null."""

    items: list[PairView]
    """By base and quote"""
    unreadable: list[str]
    """Networks whose files cannot be read now; their pairs are not listed"""
    next_cursor: None = None
    """Always null"""
