"""`Trade`: one deal as a venue tells it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trade:
    """`id` is the venue's own; `side` is the taker's, None where the venue does not say."""

    id: str
    ts: int
    price: float
    amount: float
    side: str | None = None
