"""The lake: resampling, slices, appends, decoding, a long history, and parts of many series."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import (
    lake_append,
    lake_decode,
    lake_history,
    lake_parts,
    lake_resample,
    lake_slice,
)
from tests.bench.lake_bars import sealed_lake

if TYPE_CHECKING:
    from tests.bench.harness import Bench, Figure


async def run(bench: Bench) -> list[Figure]:
    figures = [*await lake_resample.run(bench), *await lake_decode.run(bench)]
    days = bench.pick(3_650, 365)
    with tempfile.TemporaryDirectory(prefix="collector-lake-") as folder:
        long = sealed_lake(Path(folder, "long"), days)
        figures += await lake_slice.run(bench, Path(folder, "long"), days)
        short = sealed_lake(Path(folder, "short"), 1)
        figures += await lake_append.run(bench, short, long, days)
    return [*figures, *await lake_history.run(bench), *await lake_parts.run(bench)]
