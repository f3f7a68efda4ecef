"""A page, made ready for the store: normalize, validate, closed, dedup, in that order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.market.interval import Interval, slots, subtract, unbroken
from collector.pipeline.closed import closed, closed_end_ms
from collector.pipeline.normalize import Normalized, Rejected, normalize
from collector.pipeline.validate import REASONS, have_good_values, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from collector.market.candles import CandleBatch
    from collector.market.timeframe import Timeframe
    from collector.pipeline.normalize import Row


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The result of a page. Every row of it is in exactly one of the first three, or repeated.

    batch     closed and valid bars, ascending, one a time rejected  rows that are not bars, with
    the reason running   valid bars that have not ended yet covered   the slots this answer covers:
    a bar is in `batch`, or the venue has none there
    """

    batch: CandleBatch
    rejected: tuple[Rejected, ...]
    running: CandleBatch
    covered: tuple[Interval, ...]


def prepare(
    rows: Sequence[Row],
    *,
    timeframe: Timeframe,
    asked: Interval,
    server_ms: int,
    grace_ms: int = 0,
    proven: Sequence[Interval] | None = None,
    below_zero: bool = False,
) -> Prepared:
    """Sorts the rows of a successful answer into bars, rejects and running bars.

    Bars outside `asked` are refused. `proven` is what the answer covers (proof.py); all of `asked`
    when it is not given. `server_ms` is the venue's clock when it answered.
    """
    page = normalize(rows)
    ended_ms = closed_end_ms(timeframe, server_ms, grace_ms)
    rejected: tuple[Rejected, ...] = ()
    within = (asked.from_ms, min(asked.to_ms, ended_ms))
    if _is_usual(page, timeframe, within) and have_good_values(page.batch, below_zero=below_zero):
        batch, running = page.batch, page.batch.take(slice(0))
    else:
        verdict = judge(page.batch, timeframe, asked, server_ms, below_zero=below_zero)
        good = page.batch.only(verdict == 0)
        done = closed(good, timeframe, server_ms, grace_ms)
        batch, running = dedup(good.only(done)), dedup(good.only(~done))
        rejected = page.unreadable + _rejected(page, verdict)
    return Prepared(
        batch=batch,
        rejected=rejected,
        running=running,
        covered=_covered(
            batch, rejected, timeframe, (asked,) if proven is None else proven, ended_ms
        ),
    )


def _is_usual(page: Normalized, timeframe: Timeframe, within: tuple[int, int]) -> bool:
    """Whether a page is one run of bars `within` what was asked and has ended.

    Nearly every page of a history is, and one look at its times shows it.
    """
    ts = page.batch.ts
    if page.unreadable or not timeframe.are_in_line(ts):
        return False
    return within[0] <= int(ts[0]) and int(ts[-1]) < within[1]


def _rejected(page: Normalized, verdict: NDArray[np.int8]) -> tuple[Rejected, ...]:
    bad = verdict.nonzero()[0].tolist()
    return tuple(Rejected(REASONS[verdict[at]], int(page.batch.ts[at]), page.row(at)) for at in bad)


def _covered(
    batch: CandleBatch,
    rejected: tuple[Rejected, ...],
    timeframe: Timeframe,
    proven: Sequence[Interval],
    ended_ms: int,
) -> tuple[Interval, ...]:
    """The proven slots that have ended, without those whose bar was refused."""
    held = unbroken(batch.ts, timeframe)
    if any(each.ts is None for each in rejected):
        # A row without a place may belong to any empty slot: only the bars are certain.
        return held
    whole = [slots(each, timeframe) for each in proven]
    answered = [
        Interval(each.from_ms, min(each.to_ms, ended_ms))
        for each in whole
        if each is not None and each.from_ms < ended_ms
    ]
    opens = (timeframe.floor(each.ts) for each in rejected if each.ts is not None)
    refused = [Interval(ts, timeframe.end(ts)) for ts in opens]
    return subtract([*answered, *held], subtract(refused, held))


def dedup(batch: CandleBatch) -> CandleBatch:
    """The last bar of each time. `batch` is ascending, and equal times stand in page order."""
    if len(batch) < 2:
        return batch
    last = np.append(batch.ts[1:] != batch.ts[:-1], True)
    return batch if last.all() else batch.take(last)
