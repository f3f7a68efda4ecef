"""What a price stream publishes, and the one interface through which it does.

The job that owns a stream hands every message to a `Publisher`. The first implementation keeps the
last of each in MongoDB (live_board.py); others may send them elsewhere. Each message names the
exchange and carries the fence of the job that made it, so that an implementation can refuse what
an owner that was replaced still sends. Times are epoch seconds, as floats, unless a name ends in
`_ms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class SnapPrice:
    """The last price of one symbol. `tick_ts` is the tick's time, `snap_ts` the snapshot's."""

    symbol: str
    bid: float
    ask: float
    mid: float
    tick_ts: float
    snap_ts: float

    def payload(self) -> dict[str, Any]:
        """Exactly these six keys, in this order."""
        return {
            "symbol": self.symbol,
            "bid": self.bid,
            "ask": self.ask,
            "mid": self.mid,
            "tick_ts": self.tick_ts,
            "snap_ts": self.snap_ts,
        }


@dataclass(frozen=True, slots=True)
class PriceSnapshot:
    """The symbols that had a tick since the snapshot before, each once; never none."""

    exchange_id: str
    fence: int
    snap_ts: float
    prices: tuple[SnapPrice, ...]


@dataclass(frozen=True, slots=True)
class HeartbeatMessage:
    """`payload` is JSON: state, ts, last_change_ts, fence, price_snap_ts, tick_silence_seconds and
    context."""

    exchange_id: str
    fence: int
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MarketStatusMessage:
    """`payload` is JSON: state (open or closed), next_open_seconds, ts, price_snap_ts and
    tick_silence_seconds."""

    exchange_id: str
    fence: int
    payload: Mapping[str, Any]


class Publisher(Protocol):
    """Where the messages of a stream go.

    A method returns when the message was taken over, which may be before it was delivered. It
    raises LeaseLost for a fence that is older than one seen before. Any other failure is its own to
    report and to mend: the stream goes on with the next message.
    """

    async def publish_prices(self, snapshot: PriceSnapshot) -> None: ...

    async def publish_heartbeat(self, heartbeat: HeartbeatMessage) -> None: ...

    async def publish_market_status(self, status: MarketStatusMessage) -> None: ...
