"""Stores thousands of one-bar answers a minute with a few fsyncs.

Answers that arrive within a moment of each other go into one group part. Nothing is acknowledged
before it is durable: `add` returns when the part that holds its bars is on the disk.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.clock import SystemClock
from collector.errors import StoreError
from collector.market.symbol import checked_exchange_id
from collector.store.outage import Outage
from collector.store.page import Page
from collector.store.port import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self

    from collector.market.candles import CandleBatch
    from collector.market.interval import Interval
    from collector.market.series import Series
    from collector.store.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    page: Page
    durable: asyncio.Future[None]


class GroupCommit:
    """Gathers answers about one exchange. An async context manager; leaving it writes the rest.

    An answer waits at most `gather_s` for others, less when `most_bars` have come together or no
    other is on the way, and then for the write. While a part is being written the next one gathers.
    """

    def __init__(
        self, store: Store, exchange_id: str, *, gather_s: float = 0.25, most_bars: int = 50_000
    ) -> None:
        self._store = store
        self._exchange_id = checked_exchange_id(exchange_id)
        self._gather_s = gather_s
        self._most_bars = most_bars
        self._waiting: list[_Waiting] = []
        self._bars = 0
        self._first_at = 0.0
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._closing = False
        self._writer: asyncio.Task[None] | None = None
        self._outage = Outage(SystemClock(), self._exchange_id)

    async def __aenter__(self) -> Self:
        self._writer = asyncio.create_task(self._run(), name=f"commit-{self._exchange_id}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing = True
        self._arrived.set()
        self._full.set()
        if self._writer is not None:
            await self._writer

    async def add(
        self,
        series: Series,
        batch: CandleBatch,
        coverage: Interval | Iterable[Interval],
        *,
        fence: int,
        known_at: int,
        source: str | None = None,
        alone: bool = False,
    ) -> None:
        """Returns when the answer is durable. Raises StoreError or Unavailable when not.

        `alone`: the caller has no other answer on the way, so nothing is waited for.

        A caller that is cancelled while it waits gets no result; its bars are still written, which
        is harmless, and other callers are not affected.
        """
        if self._closing or self._writer is None or self._writer.done():
            raise StoreError(f"{self._exchange_id}: this group commit is closed")
        if series.exchange_id != self._exchange_id:
            raise ValueError(f"{series} does not belong to {self._exchange_id}")
        page = Page.of(series, batch, coverage, fence=fence, known_at=known_at, source=source)
        if not page.covered:
            return
        loop = asyncio.get_running_loop()
        durable: asyncio.Future[None] = loop.create_future()
        if not self._waiting:
            self._first_at = loop.time()
        self._waiting.append(_Waiting(page, durable))
        self._bars += max(1, len(batch))
        self._arrived.set()
        if self._bars >= self._most_bars or alone:
            self._full.set()
        await durable

    async def _run(self) -> None:
        try:
            while not (self._closing and not self._waiting):
                await self._arrived.wait()
                await self._gather()
                await self._write(self._take())
        finally:
            for each in self._waiting:
                each.durable.cancel()

    async def _gather(self) -> None:
        """Waits for others, but never longer than the first one may wait."""
        try:
            async with asyncio.timeout_at(self._first_at + self._gather_s):
                await self._full.wait()
        except TimeoutError:
            return

    def _take(self) -> list[_Waiting]:
        taken, self._waiting, self._bars = self._waiting, [], 0
        if not self._closing:
            self._arrived.clear()
            self._full.clear()
        return taken

    async def _write(self, taken: list[_Waiting]) -> None:
        if not taken:
            return
        failure: Exception | None = None
        try:
            await asyncio.to_thread(self._store.append_group, [each.page for each in taken])
        except asyncio.CancelledError:
            for each in taken:
                each.durable.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - every caller must receive it
            failure = error
            self._outage.failed(str(error))
        else:
            self._outage.succeeded()
        for each in taken:
            _settle(each.durable, failure)


def _settle(durable: asyncio.Future[None], failure: Exception | None) -> None:
    if durable.done():
        return  # Its caller was cancelled.
    if failure is None:
        durable.set_result(None)
        return
    # Every caller gets an exception of its own, because each adds its own traceback.
    kind = Unavailable if isinstance(failure, Unavailable) else StoreError
    error = kind(str(failure))
    error.__cause__ = failure
    durable.set_exception(error)
    durable.exception()  # A caller cancelled right now will not look; that is no leak.
