"""From a request for a job to its specification, with everything wrong about it said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.problems import unprocessable
from api.schemas.schedules import schedule_of
from collector.jobs.job import ONE_MARKET, WHOLE_EXCHANGE, Cursor, JobSpec
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from api.deps import Services
    from api.schemas.jobs import NewJob


async def job_spec(body: NewJob, parts: Services) -> JobSpec:
    """The job it asks for. Refuses what could never run; may ask the exchange for its markets."""
    now_ms = await parts.now_ms()
    since, until = _range(body)
    check_range(since, until, now_ms)
    await parts.desk.check_connector(body.exchange_id)
    if body.type in WHOLE_EXCHANGE:
        for name in ("symbol", "timeframe", "since", "until", "cursor"):
            if getattr(body, name) is not None:
                raise unprocessable(name, "not_allowed", f"{body.type} takes no {name}")
        cursor = Cursor()
    elif body.type in ONE_MARKET:
        await _check_market(body, parts)
        cursor = Cursor(since_ms=now_ms if since is None else since)
    else:
        symbol, timeframe = _series(body)
        await parts.desk.check_series(
            body.exchange_id, symbol, timeframe, fields=("symbol", "timeframe")
        )
        cursor = _cursor(body.type, since, until, Timeframe.parse(timeframe).floor(now_ms))
    return JobSpec(
        body.exchange_id,
        body.type,
        body.symbol,
        body.timeframe,
        schedule=schedule_of(body.schedule, body.timeframe) if body.schedule else None,
        priority=body.priority,
        cursor=cursor,
        params=body.params,
    )


def check_range(since: int | None, until: int | None, now_ms: int) -> None:
    """Refuses a range that has not begun yet or ends before it begins."""
    if since is not None and since > now_ms:
        raise unprocessable("since", "in_the_future", "since is in the future")
    if since is not None and until is not None and until <= since:
        raise unprocessable("until", "until_before_since", "until must be after since")


def _range(body: NewJob) -> tuple[int | None, int | None]:
    if body.cursor is None:
        return body.since, body.until
    if body.since is not None or body.until is not None:
        raise unprocessable("cursor", "given_twice", "give since and until, or cursor, not both")
    return body.cursor.since_ms, body.cursor.until_ms


async def _check_market(body: NewJob, parts: Services) -> None:
    """Refuses a job of one market that lacks its symbol, or names what it cannot use."""
    if body.symbol is None:
        raise unprocessable("symbol", "missing", f"{body.type} needs a symbol")
    if body.timeframe is not None:
        raise unprocessable("timeframe", "not_allowed", f"{body.type} takes no timeframe")
    if _range(body)[1] is not None:
        raise unprocessable("until", "not_allowed", f"{body.type} has no end")
    await parts.desk.check_symbol(body.exchange_id, body.symbol, field="symbol")


def _series(body: NewJob) -> tuple[str, str]:
    for name in ("symbol", "timeframe"):
        if getattr(body, name) is None:
            raise unprocessable(name, "missing", f"{body.type} needs a {name}")
    assert body.symbol is not None
    assert body.timeframe is not None
    return body.symbol, body.timeframe


def _cursor(kind: str, since: int | None, until: int | None, made_at: int) -> Cursor:
    if kind == "ohlcv_incremental":
        if until is not None:
            raise unprocessable("until", "not_allowed", "ohlcv_incremental has no end")
        return Cursor(since_ms=made_at if since is None else since)
    if kind == "gap_backfill" and (since is None or until is None):
        name = "since" if since is None else "until"
        raise unprocessable(name, "missing", "gap_backfill needs since and until")
    end = made_at if until is None else min(until, made_at)
    if since is not None and since > end:
        raise unprocessable("since", "nothing_to_fetch", "no bar has closed since then")
    return Cursor(since_ms=since or 0, until_ms=end)
