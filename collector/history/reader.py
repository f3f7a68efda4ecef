"""`HistoryReader`: a pair and a range of time in; rates, volumes and candles out."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from collector.history import answers
from collector.history.bucket_columns import BucketColumns
from collector.history.candle import candles
from collector.history.candle_frame import candle_frame
from collector.history.pair import Asset, Pair
from collector.history.refusal import FilledTooMuch, Refused
from collector.history.snapshot import PairSnapshot, Snapshots
from collector.history.terms import BUCKET_SEC
from collector.history.windows import ceil
from collector.market.moment import epoch_ms
from collector.reader import default_root
from collector.store.address import absolute
from collector.store.port import Swapped, Vanished
from collector.store.root import storage_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd
    import pyarrow as pa

    from collector.history.candle import Candle
    from collector.market.moment import Moment
    from collector.store.port import Storage

    Mode = Literal["spot", "vwap", "ohlcv"]

_T = TypeVar("_T")
_ATTEMPTS = 20
_END_MS = 1 << 47
MOST_FILLED = 1_000_000
"""Candles of a range that is filled without a limit: two years of minutes."""
_CHUNK = 4_096
"""Candles that are made at a time."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a call asks for: a range, candles of which length, and how many of them."""

    from_ms: int
    to_ms: int
    bucket: int | None = None
    fill: bool = False
    limit: int | None = None

    @classmethod
    def of(
        cls,
        start: Moment | None,
        end: Moment | None,
        bucket: int | None = None,
        fill: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> _Asked:
        if limit is not None and limit < 1:
            raise Refused(f"limit is at least 1, not {limit}")
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise Refused(f"{cursor!r} is no cursor of this list")
        from_ms = 0 if start is None else max(0, epoch_ms(start))
        if cursor is not None:
            from_ms = int(cursor)
        to_ms = _END_MS if end is None else min(epoch_ms(end), _END_MS)
        return cls(from_ms, to_ms, bucket, fill, limit)

    def candle_ms(self, at: PairSnapshot) -> int:
        bucket = at.bucket_sec if self.bucket is None else self.bucket
        if bucket < 1 or bucket % at.bucket_sec:
            raise Refused(f"bucket is a multiple of {at.bucket_sec} seconds, not {bucket}")
        return bucket * 1000

    def whole_buckets(self, at: PairSnapshot) -> tuple[int, int]:
        """From the first stored bucket inside the range to the end of the last."""
        self.candle_ms(at)
        bucket_ms = at.bucket_sec * 1000
        return ceil(self.from_ms, bucket_ms), self.to_ms - self.to_ms % bucket_ms


class HistoryReader:
    """What was traded of one pair on a network, as far as it was applied when a call is made.

    `base` and `quote` are written `NET:TOKEN`; a reversed pair is refused with the name of the
    canonical one. Ranges are `[start, end)`, either end may be left out. Candles, and volumes by
    the bucket, are those that begin in the range; `bucket` is in seconds, a multiple of the stored
    buckets' length. Other answers count exactly the trades of the range. `cache=False` makes every
    answer from the ledger. `bucket_sec` is how long the buckets of a network are whose saved ones
    are lost. `limit` is how many candles come at most: `next_cursor` is the `cursor`
    that goes on from there. Every answer contains the event up to which it is exact
    (`applied_through`).
    """

    def __init__(
        self,
        network: str,
        base: str | Asset,
        quote: str | Asset,
        root: str | os.PathLike[str] | Storage | None = None,
        *,
        cache: bool = True,
        bucket_sec: int = BUCKET_SEC,
    ) -> None:
        assets = (each if isinstance(each, Asset) else Asset.parse(each) for each in (base, quote))
        where = default_root() if root is None else root
        if isinstance(where, str | os.PathLike):
            where = storage_at(absolute(where))
        self.network = network
        self.pair = Pair.canonical(*assets)
        self._snapshots = Snapshots(where, network, self.pair, cache=cache, bucket_sec=bucket_sec)

    def market_rate(
        self,
        mode: Mode,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        bucket: int | None = None,
        fill: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """`spot`: the last trade's price. `vwap`: the mean by volume. `ohlcv`: candles.

        `fill` puts a candle at the last price where nothing was traded.
        """
        asked = _Asked.of(start, end, bucket, fill, limit, cursor)
        if mode == "ohlcv":
            return self._answer(lambda at: self._page(at, asked, answers.ohlcv))
        if mode == "spot":
            return self._answer(lambda at: answers.spot(self._newest(at, asked)))
        if mode == "vwap":
            return self._answer(lambda at: answers.vwap(self._exactly(at, asked)))
        raise Refused(f"mode is spot, vwap or ohlcv, not {mode!r}")

    def volume(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        bucket: int | None = None,
        fill: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """Sums and the number of trades of a range; by the bucket if one is given."""
        asked = _Asked.of(start, end, bucket, fill, limit, cursor)
        if bucket is None:
            return self._answer(lambda at: answers.volume(self._exactly(at, asked)))
        return self._answer(lambda at: self._page(at, asked, answers.bucket_volume))

    def read(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        bucket: int | None = None,
        fill: bool = False,
    ) -> pd.DataFrame:
        """Candles as a pandas frame in the columns of CANDLE_SCHEMA, as floats."""
        frame: pd.DataFrame = self.arrow(start, end, bucket=bucket, fill=fill).to_pandas()
        return frame

    def arrow(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        bucket: int | None = None,
        fill: bool = False,
    ) -> pa.Table:
        """The same as an Arrow table. Amounts are divided by 10^18, as prices are."""
        asked = _Asked.of(start, end, bucket, fill)
        found = self._with_snapshot(lambda at: list(self._candles(at, asked)))
        return candle_frame(found, self.network)

    def batches(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        bucket: int | None = None,
        fill: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The same a piece at a time, all of them of one moment.

        Vanished when a save removes a file before it was read: what came before is no answer.
        """
        asked = _Asked.of(start, end, bucket, fill)

        def begun(at: PairSnapshot) -> tuple[list[Candle], Iterator[Candle]]:
            found = self._candles(at, asked)
            return list(itertools.islice(found, _CHUNK)), found

        piece, rest = self._with_snapshot(begun)
        while piece:
            yield from candle_frame(piece, self.network).to_batches()
            piece = list(itertools.islice(rest, _CHUNK))

    def _answer(self, made: Callable[[PairSnapshot], dict[str, Any]]) -> dict[str, Any]:
        return self._with_snapshot(
            lambda at: {
                **made(at),
                "applied_through": at.applied_through,
                "source": at.source.name,
            }
        )

    def _with_snapshot(self, made: Callable[[PairSnapshot], _T]) -> _T:
        """Works on one snapshot from beginning to end; on another when its files are gone."""
        for _ in range(_ATTEMPTS):
            try:
                return made(self._snapshots.take())
            except Vanished:
                self._snapshots.forget()
        raise Swapped(f"{self.network}: files are replaced faster than they can be read")

    def _exactly(self, at: PairSnapshot, asked: _Asked) -> Iterator[BucketColumns]:
        """The trades of the very range: whole buckets, and parts of them from the ledger."""
        first, last = asked.whole_buckets(at)
        if first >= last:
            yield at.edge(self.pair, asked.from_ms, asked.to_ms)
            return
        yield at.edge(self.pair, asked.from_ms, first)
        yield from at.source.pieces(first, last)
        yield at.edge(self.pair, last, asked.to_ms)

    def _newest(self, at: PairSnapshot, asked: _Asked) -> BucketColumns:
        """What holds the last trade of the range, and no more than that is read."""
        first, last = asked.whole_buckets(at)
        if first >= last:
            return at.edge(self.pair, asked.from_ms, asked.to_ms)
        end = at.edge(self.pair, last, asked.to_ms)
        if len(end):
            return end
        before = at.source.before(last)
        if before is not None and before.ts >= first:
            return BucketColumns.of([before])
        return at.edge(self.pair, asked.from_ms, first)

    def _candles(self, at: PairSnapshot, asked: _Asked) -> Iterator[Candle]:
        """One after another, so that a page costs what is on it."""
        candle_ms = asked.candle_ms(at)
        from_ms, to_ms = ceil(asked.from_ms, candle_ms), ceil(asked.to_ms, candle_ms)
        before = at.source.before(from_ms)
        price = before.close if before else None
        found = _walk(at, from_ms, to_ms, candle_ms, price)
        if not asked.fill:
            return found
        # Without an end the last candle is the end: it is unknown whether more came after it.
        until = to_ms if asked.to_ms < _END_MS else 0
        begins, _ = at.ledger.span or (until, until)
        first = from_ms if price is not None else max(from_ms, begins - begins % candle_ms)
        count = (until - first) // candle_ms
        if asked.limit is None and count > MOST_FILLED:
            raise FilledTooMuch(
                f"the range has {count:,} candles, and at most {MOST_FILLED:,} are filled at a"
                " time: choose a shorter range, a longer `bucket`, or a `limit`"
            )
        return answers.filled(found, price, from_ms, until, candle_ms)

    def _page(
        self, at: PairSnapshot, asked: _Asked, document: Callable[[Candle], dict[str, Any]]
    ) -> dict[str, Any]:
        found = self._candles(at, asked)
        items = list(itertools.islice(found, asked.limit))
        following = next(found, None)
        return {
            "items": [document(each) for each in items],
            "next_cursor": None if following is None else str(following.ts),
        }


def _walk(
    at: PairSnapshot, from_ms: int, to_ms: int, candle_ms: int, price: int | None
) -> Iterator[Candle]:
    """Candles of a range, some thousand at a time; `price` is the pair's last one before it."""
    first, end = at.ledger.span or (0, 0)
    begin, end = max(from_ms, first - first % candle_ms), min(to_ms, ceil(end, candle_ms))
    length = _CHUNK
    while begin < end:
        stop = min(begin + length * candle_ms, end)
        found = candles(at.source.columns(begin, stop), price, candle_ms)
        yield from found
        # Where little was traded the next stretch is longer, else each costs a look for nothing.
        length = _CHUNK if len(found) > _CHUNK // 2 else 2 * length
        begin, price = stop, found[-1].close if found else price
