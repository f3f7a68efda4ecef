"""Volumes of contracts in base currency.

A venue counts contracts or base currency, and ccxt passes on what came. A linear contract is an
amount of base currency, so a count is multiplied. An inverse one is an amount of quote currency:
the count is the turnover exactly, and a volume at some price. A trade has its price; of a bar the
mean of its four prices is taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ccxt.base.errors import BadResponse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.market.bar_rows import BarRows

    Row = Sequence[Any]

_PRICES = slice(1, 5)
_VOLUME = 5


def bars_in_base(rows: Sequence[Row], market: Mapping[str, Any]) -> list[Row]:
    """The bars of a market whose volume came as a count of contracts."""
    size = _contract_size(market)
    read = _of_inverse if market.get("inverse") else _of_linear
    return [read(row, size) for row in rows]


def batch_in_base(bars: BarRows, market: Mapping[str, Any]) -> BarRows | None:
    """The same for bars by the column; None where the mean of a bar's prices is zero."""
    size, batch = _contract_size(market), bars.batch
    amount = _times(batch.v, size)
    if not market.get("inverse"):
        return replace(bars, batch=replace(batch, v=amount))
    mean = (batch.o + batch.h + batch.l + batch.c) / 4
    if not mean.all():
        return None
    return replace(bars, batch=replace(batch, v=amount / mean, t=amount))


def trade_in_base(amount: Any, price: Any, market: Mapping[str, Any]) -> Any:
    """A trade's size, which ccxt gives in contracts for every contract."""
    if not market.get("contract") or not amount:
        return amount
    size = _contract_size(market)
    if not market.get("inverse"):
        return _times(amount, size)
    return _times(amount, size) / price if price else None


def _times(count: Any, size: float) -> Any:
    """Divides where a contract is a whole fraction: a ten-thousandth has no exact binary form."""
    parts = round(1 / size)
    return count / parts if parts and 1 / parts == size else count * size


def _of_linear(row: Row, size: float) -> Row:
    if len(row) <= _VOLUME or row[_VOLUME] is None:
        return row
    return (*row[:_VOLUME], _times(row[_VOLUME], size), *row[_VOLUME + 1 :])


def _of_inverse(row: Row, size: float) -> Row:
    if len(row) <= _VOLUME or None in row[_PRICES] or row[_VOLUME] is None:
        return row
    turnover, mean = _times(row[_VOLUME], size), sum(row[_PRICES]) / 4
    return (*row[:_VOLUME], turnover / mean if mean else None, turnover)


def _contract_size(market: Mapping[str, Any]) -> float:
    size = market.get("contractSize")
    if not isinstance(size, int | float) or size <= 0:
        raise BadResponse(f"the size of a contract of {market.get('symbol')} is not known")
    return float(size)
