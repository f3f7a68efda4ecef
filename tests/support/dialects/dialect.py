"""How a venue is spoken to, for a local server that answers in its documented format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from aiohttp import web

from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Bar = tuple[Any, ...]
"""ts in milliseconds, open, high, low, close, volume, turnover in quote currency."""


BODY: web.RequestKey[Any] = web.RequestKey("body", object)
"""The JSON body of a request that is no GET."""


@dataclass(frozen=True)
class Asked:
    """A request for bars: those that open from `from_ms` to `to_ms`, at most `limit`."""

    timeframe: Timeframe
    from_ms: int
    to_ms: int
    limit: int
    keeps_newest: bool = False


@dataclass(frozen=True)
class Dialect:
    """One venue's format of requests and bars."""

    exchange_id: str
    symbol: str
    bars_file: str
    bars_path: str
    """A pattern that finds requests for bars."""
    timeframes: Mapping[str, str]
    """The venue's names of 1m, 1h and 1d, to ours."""
    asked: Callable[[web.Request, Callable[[str], Timeframe], int], Asked]
    page: Callable[[Sequence[Bar]], Any]
    """The body of an answer with these bars, which are oldest first."""
    files: tuple[tuple[str, str], ...] = ()
    """Patterns of other requests, and the recording that answers each; else the path's end."""
    recorded_at: str | None = None
    """Another venue whose recordings are this one's as well: it speaks the same format."""
    has_turnover: bool = True
    clock_ms: int | None = 1_735_689_661_234
    delisted: str | None = None
    """A recorded market that is no longer traded; None where the venue stops naming it."""
    jumps: bool = False
    """Whether a request from before the first bar is answered with the first bars."""

    @property
    def folder(self) -> str:
        """Where its recordings are."""
        return self.recorded_at or self.exchange_id

    def recording_for(self, request: web.Request) -> str:
        """The name of the recorded answer to a request."""
        # With an endpoint that answers everything, the body names the resource.
        kind = (request.get(BODY) or {}).get("type")
        path = request.path if kind is None else f"{request.path} {kind}"
        if re.search(self.bars_path, path):
            return self.bars_file
        for pattern, name in self.files:
            if re.search(pattern, request.path_qs) or re.search(pattern, request.path):
                return name
        return re.split("[/ ]", path.rstrip("/"))[-1]

    def frame(self, name: str) -> Timeframe:
        return Timeframe.parse(self.timeframes[name])

    def answer(self, request: web.Request, first_ms: int, now_ms: int) -> list[Bar]:
        """The bars that the venue would send of a market that trades since `first_ms`."""
        asked = self.asked(request, self.frame, now_ms)
        step = asked.timeframe.ms
        start = max(asked.from_ms, asked.timeframe.floor(first_ms))
        opens = range(-(-start // step) * step, min(asked.to_ms, now_ms) + 1, step)
        kept = opens[-asked.limit :] if asked.keeps_newest else opens[: asked.limit]
        return [bar_at(ts) for ts in kept]


def bar_at(ts: int) -> Bar:
    """The made-up bar that opens at `ts`."""
    price = 100 + (ts // 60_000) % 37
    return (ts, price, price + 2.5, price - 1.5, price + 0.5, 3.25, 325.5)


def dated(now_ms: int) -> dict[str, str]:
    """A server's clock, as its answers carry it."""
    return {"Date": formatdate(now_ms / 1000, usegmt=True)}


def texts(*values: Any) -> list[str]:
    return [str(value) for value in values]


def number(request: web.Request, name: str, default: int) -> int:
    return int(request.query.get(name, default))
