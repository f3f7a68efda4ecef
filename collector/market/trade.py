"""`Trade`: one trade as a venue reports it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Trade:
    """`id` is the venue's own; `side` is the taker's, None where the venue does not report it.

    `digits` are price and amount as the venue wrote them, where they were kept.
    """

    id: str
    ts: int
    price: float
    amount: float
    side: str | None = None
    digits: tuple[str, str] | None = field(default=None, compare=False)
