"""Bars, trades, refused rows and trade history by REST."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from collector.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.fleet.interface import PairName, PairRange, RowRange, Shown
    from collector.history.reader import Mode
    from collector.operations.stored_candles import CandlesAsked
    from collector.operations.stored_trades import TradesAsked
    from collector.remote.api_client import ApiAddress

MOST_OF_A_PAGE = 10_000
"""Candles of a pair that one answer holds at most."""


@dataclass(frozen=True, slots=True)
class RemoteRows:
    """Rows of a range that the API has."""

    address: ApiAddress
    path: str
    asked: Mapping[str, str]
    symbol: str
    from_ms: int
    to_ms: int

    def first(self, limit: int) -> pa.Table:
        return self._table({"limit": str(limit)})

    def newest(self, limit: int) -> pa.Table:
        return self._table({"limit": str(limit), "newest": "true"})

    @contextmanager
    def all(self) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        with self._opened({}) as stream:
            yield stream.schema, iter(stream)

    def _table(self, more: Mapping[str, str]) -> pa.Table:
        with self._opened(more) as stream:
            return stream.read_all()

    @contextmanager
    def _opened(self, more: Mapping[str, str]) -> Iterator[Any]:
        asked = {**self.asked, **more, "format": "arrow"}
        with self.address.rows(self.path, asked) as (body, _):
            yield pa.ipc.open_stream(body)


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    address: ApiAddress

    def candles(self, asked: CandlesAsked) -> RowRange:
        given = {
            "exchange_id": asked.exchange_id,
            "symbol": asked.symbol,
            "timeframe": asked.timeframe,
            "start": asked.start_ms,
            "end": asked.end_ms,
            "gaps": asked.gaps,
            "as_of": asked.as_of_ms,
        }
        return self._range("candles", given)

    def trades(self, asked: TradesAsked) -> RowRange:
        given = {
            "exchange_id": asked.exchange_id,
            "symbol": asked.symbol,
            "start": asked.start_ms,
            "end": asked.end_ms,
        }
        return self._range("trades", given)

    def quarantine(
        self,
        exchange_id: str,
        symbol: str | None,
        timeframe: str | None,
        limit: int,
        cursor: str | None,
    ) -> Shown:
        series = {"exchange_id": exchange_id, "symbol": symbol, "timeframe": timeframe}
        return self._got("quarantine", {**series, "limit": limit, "cursor": cursor})

    def market_rate(self, pair: PairName, mode: Mode, asked: PairRange) -> Shown:
        return self._of_pair("history/market-rate", {"mode": mode}, pair, asked)

    def volume(self, pair: PairName, asked: PairRange) -> Shown:
        return self._of_pair("history/volume", {}, pair, asked)

    def _of_pair(
        self, path: str, more: Mapping[str, str], pair: PairName, asked: PairRange
    ) -> Shown:
        """A long list comes in several answers."""
        left = asked.limit or MOST_OF_A_PAGE
        given = {
            "network": pair.network,
            "base": pair.base,
            "quote": pair.quote,
            "from": asked.start_ms,
            "to": asked.end_ms,
            "bucket": asked.bucket,
            "fill": str(asked.fill).lower(),
            **more,
        }
        cursor = asked.cursor
        items: list[Any] = []
        while True:
            size = min(left, MOST_OF_A_PAGE)
            answer = self._got(path, {**given, "limit": size, "cursor": cursor})
            if "items" not in answer:
                return answer
            items += answer["items"]
            left -= size
            cursor = answer["next_cursor"]
            if cursor is None or left <= 0:
                return {**answer, "items": items}

    def _range(self, path: str, given: Mapping[str, object]) -> RemoteRows:
        """What there is of it, by the headers of an answer with one row."""
        asked = _text(given)
        look = {**asked, "limit": "1", "format": "arrow"}
        try:
            with self.address.rows(path, look) as (_, headers):
                stored = [headers.get("x-stored-from"), headers.get("x-stored-to")]
                symbol = unquote(headers.get("x-symbol", asked["symbol"]))
                why = unquote(headers.get("x-nothing-stored", "nothing is stored"))
        except InvalidInput as error:
            if error.code in ("unknown_symbol", "unknown_exchange"):
                raise NotFound(str(error)) from None  # As a lake on this machine says it.
            raise
        if None in stored:
            raise NotFound(why)
        first, last = (int(str(each)) for each in stored)
        from_ms, to_ms = int(asked.get("start", first)), int(asked.get("end", last))
        whole = max(from_ms, first), min(to_ms, last)
        return RemoteRows(self.address, path, asked, symbol, *whole)

    def _got(self, path: str, given: Mapping[str, object]) -> Shown:
        answer: Shown = self.address.get(path, _text(given))
        return answer


def _text(given: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in given.items() if value is not None}
