"""What the verbs of `datalayer` print and write about the lake."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from rich.console import Group

from collector import logs
from collector.cli.actions.reports import unconfirmed_words
from collector.cli.failures import UsageMistake
from collector.cli.moments import shown_moment
from collector.cli.output import Output, table
from collector.operations.exports.whole_file import replacing
from collector.operations.lake import missing, resampled, validated
from collector.progress import late_progress
from collector.reports.file_check import damages
from collector.reports.gap_rule import gaps_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from collector.cli.verb import Asked
    from collector.reports.missing import MissingReport
    from collector.reports.validation import SeriesReport
    from collector.reports.validation_report import ValidationReport

_SHOWN_PROBLEMS = 10


def resample(
    asked: Asked, names: Sequence[str], tfs: Sequence[str], exchange: str | None
) -> Output:
    found = resampled(asked.here("datalayer resample"), names, tfs, exchange)
    symbols = [series.symbol for series in found.series]
    facts = {"exchange": found.exchange_id, "symbols": symbols, "tfs": list(tfs)}
    return Output(facts, f"{', '.join(symbols)}: {', '.join(tfs)} made of 1m")


async def validate(
    asked: Asked,
    names: Sequence[str],
    tfs: Sequence[str],
    exchange: str | None,
    out: Path,
    samples: int | None,
) -> Output:
    """Writes the report in any case; its gravest finding decides the exit code."""
    log_as_set(asked)
    report, notes = await validated(
        asked.here("datalayer validate"), names, tfs, exchange, samples, late_progress
    )
    write(out, report.to_json().encode())
    return Output(
        {"out": str(out), **report.document()},
        Group(_validation_table(report), "", f"written to {out}"),
        notes,
        failures=[*chain.from_iterable(map(damages, report.series)), *report.errors()][:1],
    )


async def missing_report(
    asked: Asked, names: Sequence[str], tfs: Sequence[str], exchange: str | None, out: Path
) -> Output:
    """Writes the rows and, beside them, the summary."""
    if out.suffix not in (".csv", ".parquet"):
        raise UsageMistake(f"--out {out}: end its name with .csv or .parquet")
    log_as_set(asked)
    report, notes = await missing(
        asked.here("datalayer missing-report"), names, tfs, exchange, late_progress
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as sink:
        report.write(sink, out.suffix.removeprefix("."))
    summary = out.with_suffix(".summary.json")
    write(summary, report.summary_json().encode())
    gaps = gaps_error(report.over_limit, report.max_gap_pct)
    return Output(
        {"out": str(out), "rows": report.rows(), "summary": report.summary()},
        Group(*_missing_words(report), "", f"written to {out} and {summary}"),
        notes,
        failures=[] if gaps is None else [gaps],
    )


def log_as_set(asked: Asked) -> None:
    """Warnings of the rule on gaps go to standard error, as configured."""
    settings = asked.settings()
    logs.configure(settings.logging.level, settings.logging.format)


def write(out: Path, content: bytes) -> None:
    """Writes the file whole or not at all, and creates its folder."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as sink:
        sink.write(content)


def _validation_table(report: ValidationReport) -> RenderableType:
    headings = (
        *("symbol", "tf", "expected", "no_trade", "missing", "longest", "lag"),
        *("checks", "unconfirmed"),
    )
    rows = [
        (
            each.series.symbol,
            each.series.timeframe,
            f"{each.coverage.expected:,}",
            f"{each.coverage.no_trade:,}",
            f"{each.coverage.missing:,}",
            f"{each.coverage.longest_gap_bars:,}",
            f"{each.coverage.lag_bars:,}",
            _check_words(each),
            f"{each.coverage.unconfirmed:,}",
        )
        for each in report.series
    ]
    return table(headings, rows, right="expected no_trade missing longest lag unconfirmed")


def _check_words(report: SeriesReport) -> str:
    failed = [f"{name} ({c.count:,})" for name, c in report.checks.items() if not c.ok]
    return f"failed: {', '.join(failed)}" if failed else f"{len(report.checks)} passed"


def _missing_words(report: MissingReport) -> list[RenderableType]:
    rows = [
        (
            each.series.symbol,
            each.series.timeframe,
            shown_moment(each.calendar.from_ms if each.calendar else None, seconds=False),
            f"{each.expected:,}",
            f"{each.no_trade:,}",
            f"{each.missing:,}",
            f"{each.head_missing:,}",
            f"{each.tail_missing:,}",
            f"{each.gaps_pct:.4%}",
            f"{each.longest_gap_bars:,}",
            f"{each.lag_bars:,}",
            f"{each.unconfirmed:,}",
        )
        for each in report.series
    ]
    headings = (
        *("symbol", "tf", "from", "expected", "no_trade", "missing"),
        *("head", "tail", "share", "longest", "lag", "unconfirmed"),
    )
    right = "expected no_trade missing head tail share longest lag unconfirmed"
    parts: list[RenderableType] = [table(headings, rows, right=right)]
    if report.problems():
        parts += ["", _problem_table(report), "", *report.summary()["recommendations"]]
    unconfirmed = report.unconfirmed_ranges(_SHOWN_PROBLEMS)
    if unconfirmed:
        parts += ["", *map(unconfirmed_words, unconfirmed)]
    return parts


def _problem_table(report: MissingReport) -> RenderableType:
    rows = [
        (
            each.series.symbol,
            each.series.timeframe,
            shown_moment(each.run.from_ms, seconds=False),
            shown_moment(each.run.to_ms, seconds=False),
            f"{each.bars:,}",
            each.advice.replace("_", " "),
        )
        for each in report.problems(_SHOWN_PROBLEMS)
    ]
    return table(("worst", "tf", "from", "to", "bars", "what to do"), rows, right="bars")
