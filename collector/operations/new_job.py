"""What a valid job is: one definition for REST, the command line and every other creator."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from collector.errors import InvalidInput
from collector.jobs import types
from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.schedule import LEAST_INTERVAL_MS, Every
from collector.jobs.types import Span
from collector.market.near import near
from collector.operations import requested_history
from collector.operations.connectors import check_connector
from collector.operations.market_names import check_bars, known_timeframe
from collector.operations.meant_symbol import is_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.jobs.schedule import Schedule
    from collector.jobs.types import JobType
    from collector.market.timeframe import Timeframe
    from collector.mongo.client import Database
    from collector.operations.market_names import MarketNames

_SYMBOLS = "symbols"
_SOME_MOMENT_MS = 1_767_225_600_000
LARGEST_PARAMS = 64 * 1024


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A requested job. What is None is left to its type."""

    exchange_id: str
    type: str
    symbol: str | None = None
    timeframe: str | None = None
    since: int | None = None
    until: int | None = None
    schedule: Schedule | None = None
    priority: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Added:
    """The job, and whether it was created; `is_known` is False when the symbol is not known yet."""

    job: Job
    made: bool
    is_known: bool = True
    note: str | None = None
    """What became of `since` when the job existed."""


async def add_job(database: Database, request: JobRequest, names: MarketNames) -> Added:
    """The requested job, created if there is none like it.

    InvalidInput for what could never run. `names` decides whether unknown markets of an exchange
    are loaded.
    """
    spec = job_spec(request, await database.now_ms())
    await check_connector(database, spec.exchange_id)
    is_known = True
    if spec.timeframe is not None and spec.type != types.OHLCV_FROM_TRADES.name:
        await check_bars(spec.exchange_id)
    if spec.symbol is not None:
        if is_pattern(spec.symbol) and not await names.is_market(spec.exchange_id, spec.symbol):
            reason = "a job is about one market; `collector add` takes patterns"
            raise InvalidInput("symbol", "unknown_symbol", reason)
        symbol = await names.one_meant(spec.exchange_id, spec.symbol)
        spec = replace(spec, symbol=symbol)
        frames = () if spec.timeframe is None else (spec.timeframe,)
        is_known = await names.check_series(spec.exchange_id, [symbol], frames)
    if spec.params.get(_SYMBOLS) and _SYMBOLS in known_type(spec.type).params.lists():
        spec, is_known = await _with_known_symbols(spec, names)
    [found] = await requested_history.add(
        database, [spec], since_is_given=request.since is not None
    )
    return Added(found.job, found.made, is_known, found.note)


async def _with_known_symbols(spec: JobSpec, names: MarketNames) -> tuple[JobSpec, bool]:
    """With the markets that its list of symbols means, and whether they are known."""
    field = f"params.{_SYMBOLS}"
    symbols = await names.meant(spec.exchange_id, spec.params[_SYMBOLS], field=field)
    fields = (field, "timeframe")
    is_known = await names.check_series(spec.exchange_id, symbols, (), fields=fields)
    return replace(spec, params={**spec.params, _SYMBOLS: symbols}), is_known


def job_spec(request: JobRequest, now_ms: int) -> JobSpec:
    """The specification of the job, as far as the request alone can be checked. Pure."""
    row = known_type(request.type)
    _check_fields(row, request)
    check_range(request.since, request.until, now_ms)
    frame = (
        None
        if request.timeframe is None
        else known_timeframe(request.timeframe).at(request.exchange_id)
    )
    if request.schedule is not None:
        check_schedule(request.schedule)
    check_params(row, request.params)
    return JobSpec(
        request.exchange_id,
        row.name,
        request.symbol,
        frame.name if frame else None,
        schedule=request.schedule,
        priority=request.priority,
        cursor=_first_cursor(row.span, frame, request, now_ms),
        params=request.params,
    )


def known_type(name: str) -> JobType:
    """A type that users may create jobs of. InvalidInput names similar ones."""
    known = {each.name: each for each in types.for_exchanges()}
    if name in known:
        return known[name]
    like, reason = near(name, known), f"there is no type of job called {name!r}"
    if not like:
        reason += f"; there are {', '.join(sorted(known))}"
    raise InvalidInput("type", "unknown_type", reason, like)


def check_range(since: int | None, until: int | None, now_ms: int) -> None:
    """Refuses a range that has not begun yet or ends before it begins."""
    if since is not None and since > now_ms:
        raise InvalidInput("since", "in_the_future", "`since` is in the future")
    if since is not None and until is not None and until <= since:
        raise InvalidInput("until", "until_before_since", "`until` must be after `since`")


def check_schedule(schedule: Schedule) -> None:
    """Refuses a schedule that never comes, or too often."""
    if isinstance(schedule, Every) and schedule.interval_ms < LEAST_INTERVAL_MS:
        reason = f"`interval_ms` must be at least {LEAST_INTERVAL_MS}"
        raise InvalidInput("schedule.interval_ms", "bad_schedule", reason)
    try:
        schedule.next_run(_SOME_MOMENT_MS, 0.5)
    except StopIteration:
        reason = "that never comes"
        raise InvalidInput("schedule.expression", "bad_schedule", reason) from None


def check_params(row: JobType, given: Mapping[str, Any]) -> None:
    """Refuses params of the type that have the wrong form. Others are kept as they are.

    They are notes of an operator, each a plain value: only the type's own may be lists.
    """
    for name, value in given.items():
        if isinstance(value, list) and name not in row.params.lists():
            place = f"params.{name}"
            raise InvalidInput(place, "bad_param", f"{place}: {row.name} has no list of that name")
    # Reading a record's annotations takes pydantic, which a verb without params need not import.
    from pydantic import TypeAdapter, ValidationError

    if len(json.dumps(dict(given))) > LARGEST_PARAMS:
        reason = f"params may have {LARGEST_PARAMS} bytes at most"
        raise InvalidInput("params", "bad_param", reason)
    own = {each.name: given[each.name] for each in fields(row.params) if each.name in given}
    try:
        TypeAdapter(row.params).validate_json(json.dumps(own), strict=True)
    except ValidationError as error:
        [issue, *_] = error.errors()
        place = ".".join(("params", *map(str, issue["loc"])))
        raise InvalidInput(place, "bad_param", f"{place}: {issue['msg']}") from None


def _check_fields(row: JobType, request: JobRequest) -> None:
    """Refuses a request that lacks a field, or has one that its type does not use."""
    given = ("symbol", "timeframe", "since", "until")
    lacking = [name for name in row.needs if getattr(request, name) is None]
    if lacking:
        raise InvalidInput(lacking[0], "missing", f"{row.name} needs {_listed(lacking, 'and')}")
    useless = [name for name in given if getattr(request, name) is not None]
    useless = [name for name in useless if name not in row.takes]
    if useless:
        raise InvalidInput(useless[0], "not_allowed", f"{row.name} has no {_listed(useless, 'or')}")


def _listed(names: Iterable[str], word: str) -> str:
    return f" {word} ".join(f"`{name}`" for name in names)


def _first_cursor(span: Span, frame: Timeframe | None, asked: JobRequest, now_ms: int) -> Cursor:
    """Where the work begins and ends, on the grid of its bars."""

    def opening(moment: int) -> int:
        return moment if frame is None else max(0, frame.floor(moment))

    if span is Span.NONE:
        return Cursor()
    if span is Span.OPEN:
        return Cursor(since_ms=opening(now_ms if asked.since is None else asked.since))
    since_ms = opening(asked.since) if asked.since else 0
    until_ms = opening(now_ms if asked.until is None else min(asked.until, now_ms))
    if until_ms <= since_ms:
        reason = "no bar has closed in that range"
        raise InvalidInput("since", "nothing_to_fetch", reason)
    return Cursor(since_ms=since_ms, until_ms=until_ms)
