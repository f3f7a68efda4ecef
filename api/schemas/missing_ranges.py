"""Missing ranges of stored series, in requests and answers."""

from typing import Self

from pydantic import BaseModel, Field

from api.schemas.fields import ExchangeId, QueryFields, SearchText, Symbol, TimeframeName
from collector.jobs.owners import OwnerJob
from collector.operations.missing_ranges import MissingRange


class RangesAsked(QueryFields):
    """Which series; all of them by default."""

    exchange_id: ExchangeId | None = Field(default=None, description="Of this exchange")
    symbol: Symbol | None = Field(default=None, description="Exactly this one")
    timeframe: TimeframeName | None = Field(default=None, description="Of this timeframe")
    search: SearchText = Field(default="", description="Letters of the symbol; `btcusdt` is fine")
    limit: int = Field(default=100, ge=1, le=500, description="How many ranges at most")


class OwnerView(BaseModel):
    """The job that has to fetch a range."""

    id: str = Field(description="The job's id")
    type: str = Field(description="The job's type")
    status: str = Field(description="The job's status")
    state: str = Field(description="The job's state")

    @classmethod
    def of(cls, owner: OwnerJob) -> Self:
        return cls(id=owner.job_id, type=owner.type, status=owner.status, state=owner.state)


class RangeView(BaseModel):
    """One missing or unconfirmed range `[start, end)` of a series."""

    exchange_id: str = Field(description="ccxt's id")
    symbol: str = Field(description="As ccxt writes it")
    timeframe: str = Field(description="How long its bars are")
    start: int = Field(description="Epoch ms")
    end: int = Field(description="Epoch ms; not included")
    bars: int = Field(description="How many bars are missing, or unconfirmed")
    owner: OwnerView | None = Field(description="null when no job has to fetch it")
    unconfirmed: bool = Field(
        description="Whether the exchange reported it as empty, which is not believed yet"
    )
    asked_again: int | None = Field(
        description="When an unconfirmed range is asked about again, in epoch ms; "
        "null for a missing one, and while its job is paused"
    )

    @classmethod
    def of(cls, missing: MissingRange) -> Self:
        return cls(
            exchange_id=missing.series.exchange_id,
            symbol=missing.series.symbol,
            timeframe=missing.series.timeframe.name,
            start=missing.span.from_ms,
            end=missing.span.to_ms,
            bars=missing.bars,
            owner=None if missing.owner is None else OwnerView.of(missing.owner),
            unconfirmed=missing.is_unconfirmed,
            asked_again=missing.asked_again_ms,
        )


class RangesPage(BaseModel):
    """The longest first: `next_cursor` is always null."""

    items: list[RangeView] = Field(description="The longest first")
    ranges: int = Field(description="How many there are in all, before they are cut by owner")
    bars: int = Field(description="How many bars are missing in all")
    unconfirmed: int = Field(description="How many bars are unconfirmed in all")
    series: int = Field(description="How many series were looked at")
    next_cursor: None = Field(default=None, description="Always null")
