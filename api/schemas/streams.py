"""Streams as requests and answers show them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.fields import Body, BodyMoment, ExchangeId, Symbol, TimeframeName
from api.schemas.jobs import JobView


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
