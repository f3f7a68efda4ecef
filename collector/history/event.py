"""Events of a network: a confirmed transaction with its inputs, or its removal by a reorg."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from collector.history.pair import Asset, Pair
from collector.history.refusal import Refused
from collector.history.uint256 import LIMIT, SCALE, checked

if TYPE_CHECKING:
    from collections.abc import Mapping

_HASH = re.compile(r"[!-~]{1,200}")


class Op(StrEnum):
    ADD = "a"
    DELETE = "d"


class Side(StrEnum):
    ASK = "ASK"
    """The seller gives base."""
    BID = "BID"
    """The seller gives quote."""


@dataclass(frozen=True, slots=True)
class CanonicalTrade:
    """One executed input in canonical terms: `price` is quote for one base, times 10^18."""

    pair: Pair
    ts: int
    price: int
    base: int
    quote: int


@dataclass(frozen=True, slots=True)
class Input:
    """One input as the chain reports it: `price` is buy for one sell, times 10^18."""

    sell: Asset
    buy: Asset
    price: int
    value: int
    residual: int
    payout: int

    def document(self) -> dict[str, Any]:
        """As it is posted, integers as text."""
        assets = {
            name: {"net_id": asset.net_id, "token": asset.token}
            for name, asset in (("sell", self.sell), ("buy", self.buy))
        }
        names = ("price", "value", "residual", "payout")
        return {**assets, **{name: str(getattr(self, name)) for name in names}}

    @property
    def executed(self) -> int:
        return self.value - self.residual

    @property
    def side(self) -> Side:
        """Raises Refused when an asset is sold for itself."""
        return Side.ASK if Pair.between(self.sell, self.buy).base == self.sell else Side.BID

    def trade(self, ts: int) -> CanonicalTrade:
        """Raises Refused when an amount passes 2^256-1 or the canonical price rounds to zero."""
        pair = Pair.between(self.sell, self.buy)
        bought = self.executed * self.price // SCALE
        if bought >= LIMIT:
            raise Refused(f"{self.executed} at {self.price} buys more than 2^256-1")
        if self.side is Side.ASK:
            return CanonicalTrade(pair, ts, self.price, self.executed, bought)
        price = SCALE * SCALE // self.price
        if price == 0:
            raise Refused(f"at {self.price} one {pair.base} costs less than 10^-18 {pair.quote}")
        return CanonicalTrade(pair, ts, price, bought, self.executed)


@dataclass(frozen=True, slots=True)
class Event:
    """One transaction added or deleted."""

    op: Op
    tx_hash: str
    ts: int
    """The transaction's own time in epoch ms."""
    inputs: tuple[Input, ...]
    times: tuple[int | None, ...] = ()
    """When the trade of each input happened, None for an input that repeats its last event. The
    inbox adds them; before that every trade has the transaction's time."""

    def time_of(self, index: int) -> int | None:
        return self.times[index] if self.times else self.ts

    def document(self) -> dict[str, Any]:
        """As it is posted: what `parse_event` reads."""
        return {
            "op": self.op.value,
            "tx_hash": self.tx_hash,
            "ts": self.ts,
            "inputs": [each.document() for each in self.inputs],
        }


def parse_event(document: Mapping[str, Any]) -> Event:
    """An event from the form in which it is posted. Raises Refused, saying what is wrong."""
    op, tx_hash, ts, inputs = (document.get(name) for name in ("op", "tx_hash", "ts", "inputs"))
    if op not in ("a", "d"):
        raise Refused(f"op is 'a' or 'd', not {op!r}")
    if not isinstance(tx_hash, str) or _HASH.fullmatch(tx_hash) is None:
        raise Refused("tx_hash is 1 to 200 printable ASCII characters")
    if not isinstance(inputs, list | tuple) or not inputs:
        raise Refused(f"{tx_hash}: an event has at least one input")
    when = checked(ts, "ts")
    read = tuple(_parse_input(each, at) for at, each in enumerate(inputs))
    return Event(Op(op), tx_hash, when, read)


def _parse_input(document: Any, at: int) -> Input:
    if not isinstance(document, dict):
        raise Refused(f"input {at} is not an object")
    names = ("price", "value", "residual", "payout")
    price, value, residual, payout = (checked(document.get(name, 0), name) for name in names)
    if price == 0:
        raise Refused(f"input {at}: a price is greater than zero")
    if residual > value:
        raise Refused(f"input {at}: the residual {residual} is more than the value {value}")
    if residual and at:
        raise Refused(f"input {at}: only the first input has a residual")
    read = Input(_asset(document, "sell"), _asset(document, "buy"), price, value, residual, payout)
    read.trade(0)
    side = document.get("side")
    if side is not None and side != read.side:
        raise Refused(f"input {at}: selling {read.sell} for {read.buy} is {read.side}, not {side}")
    return read


def _asset(document: Mapping[str, Any], name: str) -> Asset:
    asset = document.get(name)
    if not isinstance(asset, dict):
        raise Refused(f"{name} has a net_id and a token")
    return Asset.of(asset.get("net_id"), asset.get("token"))
