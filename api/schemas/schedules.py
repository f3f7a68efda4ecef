"""Schedules as requests name them."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from api.problems import unprocessable
from api.schemas.fields import WHOLE, Body, Period, TimeframeName
from collector.jobs import schedule as schedules

_SOME_MOMENT_MS = 1_767_225_600_000


class OnceBody(Body):
    """Runs until it says it is done."""

    mode: Literal["once"]


class IntervalBody(Body):
    """Every `interval_ms`, give or take a twentieth."""

    mode: Literal["interval"]
    interval_ms: Period


class BarCloseBody(Body):
    """Soon after each bar closes."""

    mode: Literal["bar_close"]
    timeframe: TimeframeName | None = Field(default=None, description="The job's own by default")
    settle_ms: Annotated[int, Field(ge=0, le=86_400_000), WHOLE] = schedules.BAR_CLOSE_SETTLE_MS


class CronBody(Body):
    """By a five-field cron expression, in UTC."""

    mode: Literal["cron"]
    expression: Annotated[
        str, StringConstraints(min_length=1, max_length=100), Field(examples=["*/5 * * * *"])
    ]


ScheduleBody = Annotated[
    OnceBody | IntervalBody | BarCloseBody | CronBody, Field(discriminator="mode")
]


def schedule_of(
    body: OnceBody | IntervalBody | BarCloseBody | CronBody, timeframe: str | None
) -> schedules.Schedule:
    """The schedule it describes; refuses one that makes no sense or never comes."""
    fields: dict[str, Any] = body.model_dump()
    if isinstance(body, BarCloseBody):
        fields["timeframe"] = body.timeframe or timeframe
        if fields["timeframe"] is None:
            raise unprocessable("schedule.timeframe", "missing", "this job has no timeframe")
    try:
        schedule = schedules.parse(fields)
        schedule.next_run(_SOME_MOMENT_MS, 0.5)
    except ValueError as error:
        raise unprocessable("schedule", "bad_schedule", str(error)) from error
    except StopIteration:
        raise unprocessable("schedule.expression", "bad_schedule", "that never comes") from None
    return schedule
