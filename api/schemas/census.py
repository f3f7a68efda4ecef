"""Figures of exchanges as answers show them."""

from typing import Self

from pydantic import BaseModel, Field

from collector.jobs.counting import Counts
from collector.jobs.network import network_of
from collector.operations.exchange_figures import ExchangeFigures, exchange_figures


class LagView(BaseModel):
    """The series of one timeframe that is furthest behind."""

    timeframe: str = Field(description="The length of its bars")
    bars: int = Field(description="Closed bars that it has not stored yet")
    since: int = Field(description="Up to where every series is stored or unconfirmed, in epoch ms")
    unconfirmed: int = Field(
        description="Series whose newest slots the exchange reports as empty; they are asked about "
        "again, and are not behind"
    )


class CensusView(BaseModel):
    """One exchange, or one network of trade history."""

    exchange_id: str | None = Field(description="null for a network")
    network: str | None = Field(description="The network of trade history; null for an exchange")
    jobs: dict[str, int] = Field(
        description="Jobs by state; `done` are finished, `paused` stopped by an operator"
    )
    lag: list[LagView] = Field(description="By timeframe, the shortest first")

    @classmethod
    def of(cls, figures: ExchangeFigures) -> Self:
        network = network_of(figures.exchange_id)
        return cls(
            exchange_id=figures.exchange_id if network is None else None,
            network=network,
            jobs=dict(figures.jobs),
            lag=[
                LagView(
                    timeframe=each.timeframe,
                    bars=each.bars,
                    since=each.since_ms,
                    unconfirmed=each.unconfirmed,
                )
                for each in figures.lags
            ],
        )


class CensusPage(BaseModel):
    """All of them: `next_cursor` is always null."""

    at: int = Field(description="The server's time, in epoch ms")
    counted_at: int = Field(description="When it was counted, in epoch ms")
    items: list[CensusView] = Field(description="By exchange and network")
    next_cursor: None = Field(default=None, description="Always null")

    @classmethod
    def of(cls, counts: Counts, now_ms: int) -> Self:
        items = [CensusView.of(each) for each in exchange_figures(counts)]
        return cls(at=now_ms, counted_at=counts.counted_ms, items=items)
