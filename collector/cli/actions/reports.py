"""What `collector coverage` and `collector report` do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group

from collector.cli.database import fleet_of
from collector.cli.moments import shown_moment
from collector.cli.output import Output, table
from collector.errors import DataInvalid, GapsExceeded, NotFound
from collector.market.near import did_you_mean
from collector.operations.series_reports import SeriesFilter, check_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.cli.verb import Asked
    from collector.fleet.interface import Shown

NOTHING = "nothing is stored by that name"


def filter_of(
    exchange_id: str | None,
    symbol: str | None,
    timeframe: str | None,
    limit: int,
    cursor: str | None,
) -> SeriesFilter:
    check_names(exchange_id, timeframe)
    return SeriesFilter(exchange_id, symbol, timeframe, limit=limit, cursor=cursor)


async def coverage(asked: Asked, wanted: SeriesFilter) -> Output:
    facts = await _report(asked, "coverage", wanted)
    headings = ("symbol", "exchange", "tf", "first (UTC)", "last (UTC)", "present", "no_trade")
    more = ("missing", "share", "lag", "unconfirmed")
    rows = [
        (
            each["symbol"],
            each["exchange_id"],
            each["timeframe"],
            shown_moment(each["first_ts"], seconds=False),
            shown_moment(each["last_ts"], seconds=False),
            *(f"{each[name]:,}" for name in ("present", "no_trade", "missing")),
            f"{each['gaps_pct']:.4%}",
            f"{each['lag_bars']:,}",
            f"{each['unconfirmed']:,}",
        )
        for each in facts["items"]
    ]
    right = "present no_trade missing share lag unconfirmed"
    shown = table((*headings, *more), rows, right=right) if rows else NOTHING
    return Output(facts, shown, _more(asked, facts))


async def missing(asked: Asked, wanted: SeriesFilter) -> Output:
    facts = await _report(asked, "missing", wanted)
    headings = (
        "symbol",
        "exchange",
        "tf",
        "expected",
        "missing",
        "share",
        "longest",
        "unconfirmed",
    )
    rows = [
        (
            each["symbol"],
            each["exchange"],
            each["tf"],
            f"{each['expected']:,}",
            f"{each['gaps_count']:,}",
            f"{each['gaps_pct']:.4%}",
            f"{each['longest_gap_bars']:,}",
            f"{each['unconfirmed']:,}",
        )
        for each in facts["items"]
    ]
    summary = facts["summary"]
    worst = [
        f"{each['exchange']} {each['symbol']} {each['tf']}: {each['bars']:,} bars from "
        f"{shown_moment(each['ts_from'])} on"
        for each in summary["worst"]
    ]
    worst += map(unconfirmed_words, summary["unconfirmed_ranges"])
    right = "expected missing share longest unconfirmed"
    counted = table(headings, rows, right=right) if rows else NOTHING
    over = summary["over_limit"]
    failures = [GapsExceeded(f"more is missing than allowed: {', '.join(over)}")] if over else []
    shown = Group(counted, "", *worst, *summary["recommendations"])
    return Output(facts, shown, _more(asked, facts), failures)


async def validation(asked: Asked, wanted: SeriesFilter) -> Output:
    facts = await _report(asked, "validation", wanted)
    headings = ("symbol", "exchange", "tf", "rows", "missing", "checks that fail", "unconfirmed")
    rows = [
        (
            each["symbol"],
            each["exchange"],
            each["tf"],
            f"{each['rows']:,}",
            f"{each['missing']:,}",
            ", ".join(name for name, check in each["checks"].items() if not check["ok"]),
            f"{each['unconfirmed']:,}",
        )
        for each in facts["items"]
    ]
    shown: Any = table(headings, rows, right="rows missing unconfirmed") if rows else NOTHING
    failed = facts["summary"]["failed_checks"]
    words = ", ".join(f"{name} ({count})" for name, count in failed.items())
    failures = [DataInvalid(f"checks fail: {words}")] if failed else []
    return Output(facts, shown, _more(asked, facts), failures)


def unconfirmed_words(each: Mapping[str, Any]) -> str:
    """A range that was reported as empty, and when it is asked about again."""
    again = each["asked_again"]
    when = "its job is paused" if again is None else f"asked again at {shown_moment(again)}"
    return (
        f"{each['exchange']} {each['symbol']} {each['tf']}: {each['bars']:,} bars from "
        f"{shown_moment(each['ts_from'])} on are unconfirmed, {when}"
    )


async def _report(asked: Asked, name: str, wanted: SeriesFilter) -> Shown:
    async with fleet_of(asked, name) as fleet:
        found = await fleet.overview.report(name, wanted)
        if found["items"] or wanted.symbol is None or wanted.cursor is not None:
            return found
        listed = (
            [] if wanted.exchange_id is None else await fleet.markets.symbols(wanted.exchange_id)
        )
    raise NotFound(f"nothing is stored of {wanted.symbol!r}{_instead(wanted.symbol, listed)}")


def _instead(symbol: str, listed: Sequence[str]) -> str:
    return "" if symbol in listed else did_you_mean(symbol, listed)


def _more(asked: Asked, facts: Shown) -> list[str]:
    more = facts["next_cursor"]
    return [f"there are more: --cursor '{more}'"] if more and not asked.json else []
