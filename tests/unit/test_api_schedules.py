"""Schedules of requests: a bar closes by the calendar of the job's own market."""

from __future__ import annotations

from api.schemas.schedules import BarCloseBody, schedule_of
from collector.jobs.schedule import BarClose
from collector.market.timeframe import Timeframe


def test_a_bar_closes_by_the_calendar_of_its_market() -> None:
    schedule = schedule_of(BarCloseBody(mode="bar_close"), "fxcm", "XAU/USD", "1m")
    assert isinstance(schedule, BarClose)
    assert schedule.timeframe.calendar_id
    assert schedule.timeframe.calendar_id == Timeframe.parse("1m").at("fxcm", "XAU/USD").calendar_id
