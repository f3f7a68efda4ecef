"""Mode 4: how far the collecting of new bars is behind, by exchange and for the worst series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.unconfirmed import unconfirmed_until
from collector.market.timeframe import Timeframe
from collector.tui.sheet import Cell, Grid, Sheet, Tone, columns, row
from collector.tui.words import duration, sparkline

if TYPE_CHECKING:
    from collector.tui.fleet_picture import Document, FleetPicture

ROWS = 25
_EXCHANGES = columns("exchange|tf|>series|>bars behind|oldest|trail")
_SERIES = columns("exchange|symbol|tf|>bars behind|time behind|state")


@dataclass(frozen=True, slots=True)
class SeriesLag:
    """Closed bars of a series that are not stored yet, nor reported as empty."""

    exchange_id: str
    symbol: str
    timeframe: str
    bars: int
    behind_ms: int
    state: str
    is_unconfirmed: bool


def lags(picture: FleetPicture) -> list[SeriesLag]:
    """Of every active series, the one that is furthest behind first."""
    found = []
    for job in picture.jobs.values():
        if job.get("type") != types.OHLCV_INCREMENTAL.name or job.get("status") != "active":
            continue
        since = (job.get("cursor") or {}).get("since_ms") or 0
        frame = _frame_of(job) if since else None
        if frame is None:
            continue
        until = unconfirmed_until(job, since, picture.at_ms)
        reached = since if until is None else until
        bars = max(0, frame.count(reached, max(reached, picture.at_ms)))
        found.append(
            SeriesLag(
                str(job["exchange_id"]),
                str(job.get("symbol")),
                str(job["timeframe"]),
                bars,
                max(0, picture.at_ms - reached) if bars else 0,
                str(job.get("state")),
                until is not None,
            )
        )
    return sorted(found, key=lambda each: (-each.bars, each.exchange_id, each.symbol))


def lag_trail(exchange_id: str, timeframe: str) -> str:
    return f"lag:{exchange_id}:{timeframe}"


def worst(found: list[SeriesLag]) -> dict[tuple[str, str], SeriesLag]:
    """By exchange and timeframe."""
    most: dict[tuple[str, str], SeriesLag] = {}
    for each in found:
        most.setdefault((each.exchange_id, each.timeframe), each)
    return most


def lag(picture: FleetPicture) -> Sheet:
    found = lags(picture)
    groups = []
    for (exchange_id, timeframe), each in sorted(worst(found).items()):
        count = sum((s.exchange_id, s.timeframe) == (exchange_id, timeframe) for s in found)
        groups.append(
            row(
                Cell(exchange_id, Tone.STRONG),
                timeframe,
                count,
                _bars(each),
                duration(each.behind_ms) if each.bars else None,
                sparkline(picture.trail(lag_trail(exchange_id, timeframe)), 30),
            )
        )
    late = [each for each in found if each.bars or each.is_unconfirmed][:ROWS]
    rows = [
        row(
            s.exchange_id,
            s.symbol,
            s.timeframe,
            _bars(s),
            duration(s.behind_ms) if s.bars else None,
            s.state,
        )
        for s in late
    ]
    behind = Grid(_SERIES, tuple(rows), "Series behind")
    return Sheet("Lag", grids=(Grid(_EXCHANGES, tuple(groups)), *([behind] if rows else [])))


def _bars(lag: SeriesLag) -> Cell:
    if lag.is_unconfirmed and lag.bars <= 1:
        return Cell("unconfirmed", Tone.WARNING)
    tone = Tone.GOOD if lag.bars <= 1 else Tone.WARNING if lag.bars <= 5 else Tone.BAD
    return Cell(f"{lag.bars:,}", tone)


def _frame_of(job: Document) -> Timeframe | None:
    """The timeframe by the market's own calendar; None for an unknown one."""
    try:
        frame = Timeframe.parse(str(job.get("timeframe")))
    except ValueError:
        return None
    return frame.at(str(job["exchange_id"]), str(job.get("symbol") or ""))
