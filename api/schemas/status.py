"""The state of everything in one answer."""

from typing import Self

from pydantic import Field

from api.schemas.connector_view import ConnectorView
from api.schemas.fields import View
from api.schemas.troubles import TroubleView
from api.schemas.workers import WorkerView
from collector.operations.census import Census
from collector.operations.shown.status import shown_status
from collector.operations.troubles import Trouble


class WorstLag(View):
    """How far the series furthest behind is."""

    bars: int
    """Closed bars that are not stored"""
    timeframe: str
    """The length of these bars"""
    unconfirmed: int
    """Series of the exchange whose newest slots it reports as empty; they are asked about again,
    and are not behind"""


class CountedConnector(ConnectorView):
    """A connector with its jobs counted."""

    jobs: dict[str, int]
    """How many jobs are in each state; `paused` are those that an operator stopped"""
    lag: WorstLag | None
    """The series that is furthest behind; null without a job for new bars"""


class BackfillsView(View):
    """All backfills together."""

    jobs: int
    """How many there are"""
    done: int
    """How many are finished"""
    bars: int
    """Bars that were fetched"""
    bars_in_all: int
    """Bars that were asked for, as far as that is known"""


class StatusView(View):
    """What `collector status` shows."""

    at: int = Field(description="Epoch ms", examples=[1735689600000])
    counted_at: int = Field(
        description="When jobs, lag and backfills were counted, in epoch ms",
        examples=[1735689600000],
    )
    connectors: list[CountedConnector]
    """Every exchange, by id"""
    jobs: dict[str, int]
    """How many jobs are in each state, over all exchanges"""
    backfills: BackfillsView
    """How much of the history is there"""
    workers: list[WorkerView]
    """The workers that are alive"""
    troubles: list[TroubleView]
    """What is wrong, the most urgent first"""

    @classmethod
    def of(cls, found: Census, wrong: list[Trouble]) -> Self:
        return cls.model_validate(shown_status(found, wrong))
