"""Mode 4: how far the collecting of new bars is behind, by exchange and for the worst series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs import types
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
    """Closed bars of a series that are not stored yet."""

    exchange_id: str
    symbol: str
    timeframe: str
    bars: int
    behind_ms: int
    state: str


def lags(picture: FleetPicture) -> list[SeriesLag]:
    """Of every active series, the one that is furthest behind first."""
    found = []
    for job in picture.jobs.values():
        if job.get("type") != types.OHLCV_INCREMENTAL.name or job.get("status") != "active":
            continue
        since = (job.get("cursor") or {}).get("since_ms") or 0
        bars = _closed(job, since, picture.at_ms) if since else None
        if bars is None:
            continue
        found.append(
            SeriesLag(
                str(job["exchange_id"]),
                str(job.get("symbol")),
                str(job["timeframe"]),
                bars,
                max(0, picture.at_ms - since) if bars else 0,
                str(job.get("state")),
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
                _bars(each.bars),
                duration(each.behind_ms) if each.bars else None,
                sparkline(picture.trail(lag_trail(exchange_id, timeframe)), 30),
            )
        )
    late = [each for each in found if each.bars][:ROWS]
    rows = [
        row(s.exchange_id, s.symbol, s.timeframe, _bars(s.bars), duration(s.behind_ms), s.state)
        for s in late
    ]
    behind = Grid(_SERIES, tuple(rows), "Series behind")
    return Sheet("Lag", grids=(Grid(_EXCHANGES, tuple(groups)), *([behind] if rows else [])))


def _bars(count: int) -> Cell:
    tone = Tone.GOOD if count <= 1 else Tone.WARNING if count <= 5 else Tone.BAD
    return Cell(f"{count:,}", tone)


def _closed(job: Document, since_ms: int, at_ms: int) -> int | None:
    """Bars that have closed since, by the market's own calendar; None for an unknown timeframe."""
    try:
        frame = Timeframe.parse(str(job.get("timeframe")))
    except ValueError:
        return None
    frame = frame.at(str(job["exchange_id"]), str(job.get("symbol") or ""))
    return max(0, frame.count(since_ms, max(since_ms, at_ms)))
