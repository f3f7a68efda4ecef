"""Schedules as requests name them."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from api.schemas.fields import WHOLE, Body, TimeframeName
from collector.durations import DAY_MS
from collector.errors import InvalidInput
from collector.jobs import schedule as schedules
from collector.operations.connector_change import LONGEST_PERIOD_MS
from collector.operations.new_job import check_schedule


class OnceBody(Body):
    """Runs until it reports that it is done."""

    mode: Literal["once"]
    """Until it is done"""


class IntervalBody(Body):
    """Every `interval_ms`, give or take a twentieth."""

    mode: Literal["interval"]
    """At a distance"""
    interval_ms: Annotated[int, Field(ge=schedules.LEAST_INTERVAL_MS, le=LONGEST_PERIOD_MS), WHOLE]
    """The distance, in milliseconds"""


class BarCloseBody(Body):
    """Soon after each bar closes."""

    mode: Literal["bar_close"]
    """After each bar"""
    timeframe: TimeframeName | None = Field(default=None, description="The job's own by default")
    settle_ms: Annotated[int, Field(ge=0, le=DAY_MS), WHOLE] = schedules.BAR_CLOSE_SETTLE_MS
    """How long after the close, in milliseconds"""


class PollBody(Body):
    """Every few seconds, by the connector's `cadence`; without one, after each close."""

    mode: Literal["poll"]
    """As often as prices suggest"""
    timeframe: TimeframeName | None = Field(default=None, description="The job's own by default")


class CronBody(Body):
    """By a five-field cron expression, in UTC."""

    mode: Literal["cron"]
    """At given times"""
    expression: Annotated[
        str, StringConstraints(min_length=1, max_length=100), Field(examples=["*/5 * * * *"])
    ]
    """Minute, hour, day, month and weekday, in UTC"""


ScheduleBody = Annotated[
    OnceBody | IntervalBody | BarCloseBody | PollBody | CronBody, Field(discriminator="mode")
]


def schedule_of(
    body: OnceBody | IntervalBody | BarCloseBody | PollBody | CronBody,
    exchange_id: str,
    symbol: str | None,
    timeframe: str | None,
) -> schedules.Schedule:
    """The schedule, on its market's calendar; refuses one that makes no sense or never comes."""
    fields: dict[str, Any] = body.model_dump()
    if isinstance(body, BarCloseBody | PollBody):
        fields["timeframe"] = body.timeframe or timeframe
        if fields["timeframe"] is None:
            raise InvalidInput("schedule.timeframe", "missing", "this job has no timeframe")
    try:
        schedule = schedules.parse(fields, exchange_id, symbol or "")
    except ValueError as error:
        raise InvalidInput("schedule", "bad_schedule", str(error)) from error
    check_schedule(schedule)
    return schedule
