"""Streams as requests and answers show them."""

from dataclasses import asdict
from typing import Annotated, Self

from pydantic import ConfigDict, Field

from api.schemas.connector_view import ConnectorView
from api.schemas.fields import Body, BodyMoment, ExchangeId, Symbol, TimeframeName, View
from api.schemas.jobs import JobView
from collector.operations.series_cost import SeriesCost
from collector.operations.streams import SeriesRequest


class NewStreams(Body):
    """Series to keep: each pair of a symbol and a timeframe becomes its jobs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "exchange_id": "simulated",
                    "symbols": ["BTC/USDT", "ETH/USDT"],
                    "timeframes": ["1m", "1h"],
                    "since": "2025-01-01",
                },
                {"exchange_id": "simulated", "symbols": ["*/USDT"], "timeframes": ["1m"]},
            ]
        }
    )

    exchange_id: ExchangeId
    symbols: Annotated[list[Symbol], Field(min_length=1, max_length=100)]
    """Symbols, patterns such as `*/USDT`, or BTCUSDT where one market is written so"""
    timeframes: Annotated[list[TimeframeName], Field(min_length=1, max_length=16)]
    """The lengths of bars"""
    since: BodyMoment | None = Field(default=None, description="Without it, from the first bar")
    backfill: bool = True
    """false: only new bars"""
    make_connector: bool = False
    """true: makes the exchange's connector, too, when there is none"""

    def request(self) -> SeriesRequest:
        return SeriesRequest(
            self.exchange_id, self.symbols, self.timeframes, self.since, self.backfill
        )


class StreamsView(View):
    """The jobs of the requested series: those created now, and those that existed."""

    created: list[JobView]
    """Jobs that were made"""
    existing: list[JobView]
    """Jobs that were there"""
    notes: list[str] = Field(
        default_factory=list,
        description="What became of `since` where a series existed: an earlier one is fetched,"
        " a later one changes nothing",
    )
    connector: ConnectorView
    """The connector of the exchange"""
    connector_created: bool
    """Whether it was made"""
    symbols_known: bool
    """false when the exchange's markets are not known yet: symbols were taken as they are"""


class CostView(View):
    """What series would take, by the budget alone: the way to the exchange comes on top."""

    symbols: list[str] = Field(description="The symbols that are meant")
    series: int = Field(description="How many series were named")
    existing: int = Field(description="Those whose history is stored or being fetched already")
    unknown: int = Field(
        description="Those whose first bar is not known: their history is not in the figures"
    )
    bars: int = Field(description="Bars of history to be fetched")
    requests: int = Field(description="Requests that this takes")
    seconds: float = Field(description="Seconds of budget that this takes")
    seconds_ahead: float = Field(
        description="Seconds of budget that backfills of the exchange still need"
    )
    requests_per_day: int = Field(description="Requests a day for new bars, from then on")
    share_per_day: float = Field(description="The share of the budget that these are, 0 to 1")
    has_connector: bool = Field(description="false: the limits are those of a new connector")

    @classmethod
    def of(cls, cost: SeriesCost) -> Self:
        return cls.model_validate(asdict(cost))
