"""What `collector export` does: which bars, and to which kind of file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.cli.actions.candles import rows_of
from collector.cli.actions.export import export, export_to
from collector.cli.failures import UsageMistake
from collector.cli.files import BarForm, Form, form_of
from collector.market.series import Series
from collector.operations.exports import freqtrade, nautilus

if TYPE_CHECKING:
    from pathlib import Path

    from collector.cli.actions.candles import Gaps, Range
    from collector.cli.actions.rows import Rows
    from collector.cli.output import Output
    from collector.cli.verb import Asked


@dataclass(frozen=True, slots=True)
class BarsToExport:
    """A series and a range as typed; `gaps` is None when it was not."""

    exchange_id: str
    symbol: str
    timeframe: str
    given: Range
    gaps: Gaps | None = None


@dataclass(frozen=True, slots=True)
class ForNautilus:
    """Options that Nautilus's catalog has alone."""

    instrument: str | None = None
    price_precision: int | None = None
    size_precision: int | None = None


def export_bars(
    asked: Asked,
    bars: BarsToExport,
    form: BarForm | None,
    out: Path,
    force: bool,
    options: ForNautilus,
) -> Output:
    """Writes them. Options that the format does not have are refused."""
    if options != ForNautilus() and form is not BarForm.NAUTILUS:
        raise UsageMistake("--instrument and precisions are for --format nautilus")
    if form not in (BarForm.FREQTRADE, BarForm.NAUTILUS):
        chosen = form_of(asked, None if form is None else Form(form.value), out)
        return export(_rows(asked, bars, bars.gaps or "include"), chosen.value, out, force)
    if bars.gaps == "include":
        raise UsageMistake(f"--format {form.value} has no rows for slots without a bar")
    if str(out) == "-" or (out.exists() and not out.is_dir()):
        raise UsageMistake(f"--out is a folder for --format {form.value}")
    rows = _rows(asked, bars, "omit")
    series = Series.of(bars.exchange_id, rows.range.symbol, bars.timeframe)
    if form is BarForm.FREQTRADE:
        return export_to(
            form.value,
            rows,
            lambda batches: freqtrade.export(series, batches, out, force=force),
        )
    target = nautilus.Target.of(
        series,
        options.instrument,
        price_digits=options.price_precision,
        size_digits=options.size_precision,
    )
    return export_to(
        form.value,
        rows,
        lambda batches: nautilus.export(series, batches, out, target, force=force),
    )


def _rows(asked: Asked, bars: BarsToExport, gaps: Gaps) -> Rows:
    given = replace(bars.given, gaps=gaps)
    return rows_of(asked, bars.exchange_id, bars.symbol, bars.timeframe, given)
