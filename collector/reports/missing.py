"""missing.csv: what each series lacks, and a summary of where it is worst and what to do."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from collector.durations import DAY_MS
from collector.reports.gap_rule import MAX_GAP_PCT
from collector.text import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from collector.market.interval import Interval
    from collector.market.series import Series
    from collector.reports.coverage import Coverage

MISSING_SCHEMA = pa.schema(
    [
        pa.field("symbol", pa.string()),
        pa.field("tf", pa.string()),
        pa.field("ts_from", pa.int64()),
        pa.field("ts_to", pa.int64()),
        pa.field("gaps_pct", pa.float64()),
        pa.field("gaps_count", pa.int64()),
        pa.field("longest_gap_bars", pa.int64()),
        pa.field("exchange", pa.string()),
        pa.field("expected", pa.int64()),
        pa.field("no_trade", pa.int64()),
        pa.field("partial", pa.int64()),
        pa.field("head_missing", pa.int64()),
        pa.field("tail_missing", pa.int64()),
        pa.field("lag_bars", pa.int64()),
        pa.field("unconfirmed", pa.int64()),
    ]
)
"""One row a series: its calendar `[ts_from, ts_to)` and how many of its bars are missing."""

TOP = 20
LOAD_AGAIN = "load_again"
CHECK_LISTING = "check_delisting_or_rename"


@dataclass(frozen=True, slots=True)
class MissingStretch:
    """One missing range, and how to fill it."""

    series: Series
    run: Interval

    @property
    def bars(self) -> int:
        return self.series.timeframe.count(self.run.from_ms, self.run.to_ms)

    @property
    def advice(self) -> str:
        """A failed page is loaded again. Whole missing days have another cause."""
        return CHECK_LISTING if self.run.to_ms - self.run.from_ms >= DAY_MS else LOAD_AGAIN

    def document(self) -> dict[str, Any]:
        return {
            "exchange": self.series.exchange_id,
            "symbol": self.series.symbol,
            "tf": self.series.timeframe.name,
            "ts_from": self.run.from_ms,
            "ts_to": self.run.to_ms,
            "bars": self.bars,
            "advice": self.advice,
        }


@dataclass(frozen=True, slots=True)
class MissingReport:
    """What some series lack."""

    series: Sequence[Coverage]
    max_gap_pct: float = MAX_GAP_PCT

    @property
    def over_limit(self) -> list[Coverage]:
        return [each for each in self.series if each.gaps_pct > self.max_gap_pct]

    def rows(self) -> list[dict[str, Any]]:
        return [missing_row(each) for each in self.series]

    def table(self) -> pa.Table:
        return pa.Table.from_pylist(self.rows(), MISSING_SCHEMA)

    def problems(self, most: int = TOP) -> list[MissingStretch]:
        """The longest missing stretches of all, longest first."""
        found = [
            MissingStretch(each.series, run) for each in self.series for run in each.worst[:most]
        ]
        return sorted(found, key=lambda each: each.run.from_ms - each.run.to_ms)[:most]

    def unconfirmed_ranges(self, most: int = TOP) -> list[dict[str, Any]]:
        """The longest ranges that were reported as empty, and when each is asked about again."""
        found = [
            (each.series, part) for each in self.series for part in each.unconfirmed_ranges[:most]
        ]
        longest = sorted(found, key=lambda each: each[1].span.from_ms - each[1].span.to_ms)[:most]
        return [
            {
                "exchange": series.exchange_id,
                "symbol": series.symbol,
                "tf": series.timeframe.name,
                "ts_from": part.span.from_ms,
                "ts_to": part.span.to_ms,
                "bars": series.timeframe.count(part.span.from_ms, part.span.to_ms),
                "asked_again": part.asked_again_ms,
            }
            for series, part in longest
        ]

    def summary(self) -> dict[str, Any]:
        expected = sum(each.expected for each in self.series)
        missing = sum(each.missing for each in self.series)
        problems = self.problems()
        return {
            "series": len(self.series),
            "expected": expected,
            "missing": missing,
            "gaps_pct": missing / expected if expected else 0.0,
            "max_gap_pct": self.max_gap_pct,
            "over_limit": [str(each.series) for each in self.over_limit],
            "worst": [each.document() for each in problems],
            "recommendations": recommendations(problems),
            "unconfirmed": sum(each.unconfirmed for each in self.series),
            "unconfirmed_ranges": self.unconfirmed_ranges(),
        }

    def write(self, sink: BinaryIO, form: str) -> None:
        """`csv` or `parquet`."""
        if form == "parquet":
            pa.parquet.write_table(self.table(), sink, compression="zstd")
            return
        text = io.StringIO()
        rows = csv.DictWriter(text, MISSING_SCHEMA.names, lineterminator="\n")
        rows.writeheader()
        rows.writerows({**row, "symbol": escaped(row["symbol"])} for row in self.rows())
        sink.write(text.getvalue().encode())

    def summary_json(self) -> str:
        return json.dumps(self.summary(), indent=2) + "\n"


def missing_row(coverage: Coverage) -> dict[str, Any]:
    """One line of missing.csv."""
    return {
        "symbol": coverage.series.symbol,
        "tf": coverage.series.timeframe.name,
        "ts_from": None if coverage.calendar is None else coverage.calendar.from_ms,
        "ts_to": None if coverage.calendar is None else coverage.calendar.to_ms,
        "gaps_pct": coverage.gaps_pct,
        "gaps_count": coverage.missing,
        "longest_gap_bars": coverage.longest_gap_bars,
        "exchange": coverage.series.exchange_id,
        "expected": coverage.expected,
        "no_trade": coverage.no_trade,
        "partial": coverage.partial,
        "head_missing": coverage.head_missing,
        "tail_missing": coverage.tail_missing,
        "lag_bars": coverage.lag_bars,
        "unconfirmed": coverage.unconfirmed,
    }


def recommendations(problems: Sequence[MissingStretch]) -> list[str]:
    """What to do, one sentence for each symbol and remedy."""
    advice: dict[str, None] = {}
    for each in problems:
        exchange, symbol = each.series.exchange_id, each.series.symbol
        if each.advice == CHECK_LISTING:
            advice[
                f"{exchange} {symbol}: check whether it was delisted or renamed;"
                " if not, load it again"
            ] = None
        else:
            advice[f"{exchange} {symbol}: load it again with `datalayer backfill`"] = None
    return list(advice)
