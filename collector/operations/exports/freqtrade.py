"""freqtrade's data folder: a Feather file a pair and timeframe, as `download-data` makes them.

The folder is freqtrade's `datadir`, such as `user_data/data/binance`. Slots without a bar are left
out: freqtrade fills them itself when it loads the file. Facts from freqtrade 2026.9.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.ipc

from collector.errors import NotStored, StoreError
from collector.operations.exports.whole_file import ExportedFile, replacing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from collector.market.series import Series

SCHEMA = pa.schema(
    [
        pa.field("date", pa.timestamp("us", tz="UTC")),
        *(pa.field(name, pa.float64()) for name in ("open", "high", "low", "close", "volume")),
    ]
)
"""`date` is when the bar opens."""


def file_name(series: Series) -> PurePosixPath:
    """`BTC_USDT-1m.feather`; a contract's is `futures/BTC_USDT_USDT-1m-futures.feather`."""
    pair = re.sub(r"[/ .@$+:]", "_", series.symbol)
    timeframe = series.timeframe.name.replace("M", "Mo")
    if ":" in series.symbol:
        return PurePosixPath("futures", f"{pair}-{timeframe}-futures.feather")
    return PurePosixPath(f"{pair}-{timeframe}.feather")


def export(
    series: Series, batches: Iterable[pa.RecordBatch], folder: Path, *, force: bool = False
) -> ExportedFile:
    """Writes the file of a series, from bars without fillers, as they come."""
    out = folder / file_name(series)
    if out.exists() and not force:
        raise StoreError(f"{out} is there already: choose another folder, or use --force")
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = 0
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with replacing(out) as sink:
        with pa.ipc.new_file(sink, SCHEMA, options=options) as writer:
            for batch in batches:
                writer.write_batch(_converted(batch))
                rows += len(batch)
        if not rows:
            raise NotStored(f"{series} has no bars in this range")
    return ExportedFile(out, rows)


def _converted(batch: pa.RecordBatch) -> pa.RecordBatch:
    opens = batch.column("ts").cast(pa.timestamp("ms", tz="UTC")).cast(SCHEMA.field("date").type)
    columns = [opens, *(batch.column(name) for name in ("o", "h", "l", "c", "v"))]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
