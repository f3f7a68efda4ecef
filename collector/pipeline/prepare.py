"""A page, made ready for the store: normalize, validate, closed, dedup, in that order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.market.interval import Interval, runs, slots, subtract
from collector.pipeline.closed import closed, closed_end_ms
from collector.pipeline.dedup import dedup
from collector.pipeline.normalize import Normalized, Rejected, normalize
from collector.pipeline.validate import REASONS, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from collector.market.candles import CandleBatch
    from collector.market.timeframe import Timeframe
    from collector.pipeline.normalize import Row


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What a page amounts to. Every row of it is in exactly one of the first three, or repeated.

    batch     closed and valid bars, ascending, one a time
    rejected  rows that are not bars, with the reason
    running   valid bars that have not ended yet
    covered   the slots this answer settles: a bar is in `batch`, or the venue has none there
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
) -> Prepared:
    """Sorts the rows of a successful answer into bars, rejects and running bars.

    `asked` is the stretch this answer speaks for: what was requested, cut where a full page ended.
    `server_ms` is the venue's clock when it answered.
    """
    page = normalize(rows)
    verdict = judge(page.batch, timeframe, asked, server_ms)
    good = page.batch.take(verdict == 0)
    done = closed(good, timeframe, server_ms, grace_ms)
    batch = dedup(good.take(done))
    rejected = page.unreadable + _rejected(rows, page, verdict)
    ended_ms = closed_end_ms(timeframe, server_ms, grace_ms)
    return Prepared(
        batch=batch,
        rejected=rejected,
        running=dedup(good.take(~done)),
        covered=_covered(batch, rejected, timeframe, asked, ended_ms),
    )


def _rejected(
    rows: Sequence[Row], page: Normalized, verdict: NDArray[np.int8]
) -> tuple[Rejected, ...]:
    bad = verdict.nonzero()[0]
    facts = zip(
        verdict[bad].tolist(), page.batch.ts[bad].tolist(), page.origin[bad].tolist(), strict=True
    )
    return tuple(Rejected(REASONS[code], ts, tuple(rows[at])) for code, ts, at in facts)


def _covered(
    batch: CandleBatch,
    rejected: tuple[Rejected, ...],
    timeframe: Timeframe,
    asked: Interval,
    ended_ms: int,
) -> tuple[Interval, ...]:
    """The asked slots that have ended, without those whose bar was there and was refused."""
    held = runs(batch.ts, timeframe.ms)
    if any(each.ts is None for each in rejected):
        # A row that cannot be placed may belong to any empty slot: only the bars are certain.
        return held
    whole = slots(asked, timeframe)
    if whole is None or whole.from_ms >= ended_ms:
        return held
    answered = Interval(whole.from_ms, min(whole.to_ms, ended_ms))
    opens = (timeframe.floor(each.ts) for each in rejected if each.ts is not None)
    refused = [Interval(ts, ts + timeframe.ms) for ts in opens]
    return subtract([answered], subtract(refused, held))
