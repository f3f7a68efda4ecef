"""Nautilus's Parquet catalog: a file of bars in `data/bar/{bar type}/`, named by its interval.

A bar is dated by its close, in both of its times: that is when a backtest may see it. Slots without
a bar are left out. Facts from nautilus_trader 1.231 (and 1.221, which reads the same files).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collector.errors import DataInvalid, InvalidInput, NotStored, StoreError
from collector.operations.exports import fixed_point
from collector.operations.exports.whole_file import ExportedFile, drafting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from collector.market.series import Series
    from collector.market.timeframe import Timeframe

PRICES = ("open", "high", "low", "close")
SCHEMA = pa.schema(
    [
        *(pa.field(name, fixed_point.RAW, nullable=False) for name in (*PRICES, "volume")),
        pa.field("ts_event", pa.uint64(), nullable=False),
        pa.field("ts_init", pa.uint64(), nullable=False),
    ]
)
MOST_PRICE, MOST_SIZE = 17_014_118_346_046.0, 34_028_236_692_093.0
"""The largest that its numbers may be."""
ROWS_PER_GROUP = 5_000
_OURS = ("o", "h", "l", "c")
_UNITS = {"s": "SECOND", "m": "MINUTE", "h": "HOUR", "d": "DAY", "w": "WEEK", "M": "MONTH"}
_STEPS = {
    unit: {step for step in range(1, most + 1) if whole % step == 0}
    for unit, whole, most in (("s", 60, 59), ("m", 60, 59), ("h", 24, 23), ("M", 12, 12))
}
"""Steps that it has of a unit; of days and weeks any."""
_INSTRUMENT = re.compile(r"[^\s/.][^\s/]*\.[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Target:
    """Which instrument the bars are of, and decimals; None takes those that the bars have."""

    instrument: str
    price_digits: int | None = None
    size_digits: int | None = None

    def __post_init__(self) -> None:
        if _INSTRUMENT.fullmatch(self.instrument) is None:
            reason = f"{self.instrument!r} is not an instrument such as BTCUSDT.BINANCE"
            raise InvalidInput("instrument", "bad_instrument", reason)

    @classmethod
    def of(cls, series: Series, instrument: str | None = None, **digits: int | None) -> Target:
        """`BTCUSDT.BINANCE`, and for a contract all that tells it from others of its pair."""
        pair, _, contract = series.symbol.partition(":")
        name = re.sub(r"[\s/.]", "", pair)
        if contract:
            settled_in, _, term = contract.partition("-")
            if settled_in != pair.partition("/")[2]:
                name += f"-{settled_in}"
            name += f"-{term or 'PERP'}"
        return cls(instrument or f"{name}.{series.exchange_id.upper()}", **digits)


def bar_type(instrument: str, timeframe: Timeframe) -> str:
    """`BTCUSDT.BINANCE-1-MINUTE-LAST-EXTERNAL`. InvalidInput where Nautilus has no such bars."""
    step, unit = int(timeframe.name[:-1]), timeframe.name[-1]
    if step not in _STEPS.get(unit, {step}):
        reason = f"Nautilus has no bars of {timeframe}"
        raise InvalidInput("timeframe", "unknown_timeframe", reason)
    return f"{instrument}-{step}-{_UNITS[unit]}-LAST-EXTERNAL"


def export(
    series: Series,
    batches: Iterable[pa.RecordBatch],
    catalog: Path,
    target: Target,
    *,
    force: bool = False,
) -> ExportedFile:
    """Writes one file of bars, from bars without fillers, as they come."""
    named = bar_type(target.instrument, series.timeframe)
    folder = catalog / "data" / "bar" / named
    folder.mkdir(parents=True, exist_ok=True)
    bars = _Bars(series, target)
    with drafting(folder / "bars.parquet") as draft:
        # A stored Arrow schema would hide the metadata, which is known at the end only.
        options = {"compression": "snappy", "store_schema": False}
        with pq.ParquetWriter(draft.sink, SCHEMA, **options) as writer:
            for batch in batches:
                writer.write_batch(bars.converted(batch), row_group_size=ROWS_PER_GROUP)
            writer.add_key_value_metadata(
                {
                    "bar_type": named,
                    "instrument_id": target.instrument,
                    "price_precision": str(bars.price_digits),
                    "size_precision": str(bars.size_digits),
                }
            )
        if not bars.rows:
            raise NotStored(f"{series} has no bars in this range")
        draft.out = folder / f"{_moment(bars.first_ms)}_{_moment(bars.last_ms)}.parquet"
        older = list(_overlapping(folder, draft.out.name, force=force))
    for path in older:
        path.unlink()
    return ExportedFile(draft.out, bars.rows)


class _Bars:
    """Converts batches, and remembers what the footer and the name need."""

    def __init__(self, series: Series, target: Target) -> None:
        self._series, self._target = series, target
        self.price_digits, self.size_digits = target.price_digits or 0, target.size_digits or 0
        self.rows, self.first_ms, self.last_ms = 0, 0, 0

    def converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        opens = batch.column("ts").to_numpy()
        closes = self._series.timeframe.ends(opens)
        prices = np.stack([batch.column(name).to_numpy() for name in _OURS])
        sizes = batch.column("v").to_numpy()
        self._check(prices, MOST_PRICE, "price")
        self._check(sizes, MOST_SIZE, "volume")
        price_digits, size_digits = self._digits(prices, sizes)
        if len(opens):
            self.first_ms = self.first_ms if self.rows else int(closes[0])
            self.last_ms = int(closes[-1])
            self.rows += len(opens)
        moments = pa.array((closes * 1_000_000).astype(np.uint64))
        columns = [fixed_point.raw(each, price_digits) for each in prices]
        columns += [fixed_point.raw(sizes, size_digits), moments, moments]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _digits(self, prices: fixed_point.Floats, sizes: fixed_point.Floats) -> tuple[int, int]:
        price = self._decimals(prices, self._target.price_digits, "price")
        size = self._decimals(sizes, self._target.size_digits, "size")
        self.price_digits = max(self.price_digits, price)
        self.size_digits = max(self.size_digits, size)
        return price, size

    def _decimals(self, values: fixed_point.Floats, given: int | None, what: str) -> int:
        """Those that were given, or that the values have. InvalidInput where they are too few."""
        if given is None:
            return fixed_point.decimals_of(values)
        if not fixed_point.is_exact(values, given):
            names = {"price": "prices", "size": "volumes"}
            reason = f"{names[what]} of {self._series} have more than {given} decimals"
            raise InvalidInput(f"{what}_precision", "too_few_decimals", reason)
        return given

    def _check(self, values: fixed_point.Floats, most: float, what: str) -> None:
        if not ((values >= 0) & (values <= most)).all():
            raise DataInvalid(f"{self._series}: a {what} that Nautilus's numbers cannot hold")


def _moment(ms: int) -> str:
    """`2026-01-01T00-01-00-000000000Z`."""
    text = str(np.datetime64(ms, "ms").astype("datetime64[ns]"))
    return f"{text.replace(':', '-').replace('.', '-')}Z"


def _overlapping(folder: Path, name: str, *, force: bool) -> Iterator[Path]:
    """Files that the new one replaces. StoreError where intervals would overlap without that."""
    first, last = name.removesuffix(".parquet").split("_")
    for path in sorted(folder.glob("*Z_*Z.parquet")):
        from_, _, to = path.name.removesuffix(".parquet").partition("_")
        if to < first or from_ > last:
            continue
        if from_ < first or to > last:
            reason = f"{path} overlaps the new file: remove it, or export its whole range"
            raise StoreError(reason)
        if not force:
            raise StoreError(f"{path} is there already: use --force to replace it")
        if path.name != name:
            yield path
