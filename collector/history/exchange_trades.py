"""Trades of an exchange as events: from the venue's own decimal digits, exactly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collector.history.event import Event, Input, Op
from collector.history.refusal import Refused
from collector.history.uint256 import LIMIT

if TYPE_CHECKING:
    from collector.history.pair import Asset

_DIGITS = 18
_DECIMAL = re.compile(r"([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?")


def scaled(text: str) -> int:
    """A decimal number times 10^18. Refused when it has more digits than that keeps."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise Refused(f"{text!r} is no decimal number")
    whole, part, exponent = match[1], (match[2] or "").rstrip("0"), int(match[3] or 0)
    digits, shift = int(whole + part), _DIGITS - len(part) + exponent
    scale: int = 10 ** abs(shift)
    value, left = (digits * scale, 0) if shift >= 0 else divmod(digits, scale)
    if left:
        raise Refused(f"{text} has more than {_DIGITS} digits after the point")
    if value >= LIMIT:
        raise Refused(f"{text} times 10^18 passes 2^256-1")
    return value


def exchange_event(
    trade_id: str, ts: int, base: Asset, quote: Asset, price: str, amount: str
) -> Event:
    """A trade of the market BASE/QUOTE as the venue reports it, as one event.

    The market's base is sold for its quote. Where the canonical pair is the other way round, the
    price is inverted like that of any other input.
    """
    sold, at = scaled(amount), scaled(price)
    if at == 0:
        raise Refused(f"trade {trade_id}: a price is greater than zero")
    # Any payout but none: a venue does not report what it paid, and every trade it reports was
    # paid.
    given = Input(sell=base, buy=quote, price=at, value=sold, residual=0, payout=1)
    given.trade(ts)
    return Event(Op.ADD, trade_id, ts, (given,))
