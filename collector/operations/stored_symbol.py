"""The symbol of the lake that a person means: BTCUSDT for BTC/USDT. Waits for the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.operations.meant_symbol import is_short, meant
from collector.store.catalogue import folder_symbols, stored_exchanges

if TYPE_CHECKING:
    from collector.store.store import Store


def stored_symbol(store: Store, exchange_id: str | None, name: str) -> str:
    """The one symbol with bars, trades or refused rows that is written so; else `name` itself.

    InvalidInput names them when there are several.
    """
    if not is_short(name):
        return name
    known = {each.symbol for each in store.series(exchange_id)}
    exchanges = stored_exchanges(store.storage) if exchange_id is None else [exchange_id]
    for each in exchanges:
        known.update(folder_symbols(store.storage, each))
    return meant(name, known, exchange_id or "the lake")
