"""Streams as requests and answers show them."""

from dataclasses import asdict
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.fields import Body, BodyMoment, ExchangeId, Symbol, TimeframeName
from api.schemas.jobs import JobView
from collector.operations.series_cost import SeriesCost


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
                }
            ]
        }
    )

    exchange_id: ExchangeId
    symbols: Annotated[list[Symbol], Field(min_length=1, max_length=100)]
    timeframes: Annotated[list[TimeframeName], Field(min_length=1, max_length=16)]
    since: BodyMoment | None = Field(default=None, description="Without it, from the first bar")
    backfill: bool = Field(default=True, description="false: only new bars")


class StreamsView(BaseModel):
    """The jobs of the requested series: those created now, and those that existed."""

    created: list[JobView]
    existing: list[JobView]
    notes: list[str] = Field(
        default_factory=list,
        description="What became of `since` where a series existed: an earlier one is fetched,"
        " a later one changes nothing",
    )


class CostView(BaseModel):
    """What series would take, by the budget alone: the way to the exchange comes on top."""

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
