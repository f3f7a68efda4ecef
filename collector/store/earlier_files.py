"""What can be checked of sealed files that earlier versions wrote, whose footers have no digest.

Their rows are a calendar without a slot left out, so row counts, times and the ledger follow from
one another: one wrong bit in any of them contradicts the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.market.timeframe import Timeframe
from collector.store.port import Corrupt

if TYPE_CHECKING:
    from collector.store.sealed import SealedFooter
    from collector.store.segment import Segment


def check_calendar(file: Segment, footer: SealedFooter) -> None:
    """Raises Corrupt when the footer's figures cannot all be true."""
    step = Timeframe.parse(file.path.rpartition("/")[2].removesuffix(".parquet")).ms
    end, rows, bars = None, 0, 0
    for group in range(file.groups):
        count, fillers = file.rows_in(group), file.fillers_in(group)
        first, last = file.bounds(group)
        if (end is not None and first != end) or last - first != (count - 1) * step:
            raise Corrupt(file.path, "its row groups leave something out")
        if (file.earliest_known_at(group) is None) != (fillers == count):
            raise Corrupt(file.path, "its statistics contradict each other")
        end, rows, bars = last + step, rows + count, bars + count - fillers
    if rows != file.rows:
        raise Corrupt(file.path, f"{file.rows} rows where its row groups have {rows}")
    if end is not None and (not footer.coverage or footer.coverage[-1].to_ms != end):
        raise Corrupt(file.path, "it does not end where its ledger does")
    if not footer.derived_from and bars != footer.bars:
        raise Corrupt(file.path, f"{bars} bars where its ledger has {footer.bars}")
