"""From the arguments of `collector job add` to the request for a job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.cli.failures import UsageMistake
from collector.jobs import schedule as schedules
from collector.operations.moments import moment_ms
from collector.operations.new_job import JobRequest, known_type

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed."""

    exchange_id: str
    type: str
    symbol: str | None = None
    timeframe: str | None = None
    since: str | None = None
    until: str | None = None
    interval_ms: int | None = None
    cron: str | None = None
    priority: int | None = None
    params: Sequence[str] = ()


def request_of(wanted: Wanted, now_ms: int) -> JobRequest:
    """The job that is meant. Raises InvalidInput."""
    return JobRequest(
        wanted.exchange_id,
        wanted.type,
        wanted.symbol,
        wanted.timeframe,
        None if wanted.since is None else moment_ms(wanted.since, now_ms),
        None if wanted.until is None else moment_ms(wanted.until, now_ms),
        schedule=schedule_of(wanted),
        priority=wanted.priority,
        params=params_of(wanted.type, wanted.params),
    )


def params_of(job_type: str, given: Sequence[str]) -> dict[str, Any]:
    """`name=value` each: JSON's words and numbers, else text; with commas where it is a list."""
    if not given:
        return {}
    lists = known_type(job_type).params.lists()
    params: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageMistake(f"--param {text!r} is not NAME=VALUE")
        if name in lists:
            params[name] = [each.strip() for each in value.split(",") if each.strip()]
        else:
            params[name] = _plain(value)
    return params


def _plain(value: str) -> Any:
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    return value if isinstance(parsed, list | dict) else parsed


def unknown_markets(exchange_id: str) -> str:
    return f"the markets of {exchange_id} are not known yet: symbols were taken as they are"


def schedule_of(wanted: Wanted) -> schedules.Schedule | None:
    """The given value; None leaves it to the type."""
    if wanted.interval_ms is not None and wanted.cron is not None:
        raise UsageMistake("--interval-ms and --cron exclude each other")
    if wanted.interval_ms is not None:
        return schedules.Every(wanted.interval_ms)
    if wanted.cron is None:
        return None
    try:
        return schedules.Cron(wanted.cron)
    except ValueError as error:
        raise UsageMistake(str(error)) from None
