"""Markets and their last prices as front ends show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN = ("exchange_id", "symbol", "base", "quote", "kind", "active", "timeframes", "listed_ms")
_MOMENTS = ("delisted_at", "first_seen_at", "seen_at", "relisted_ms")
_OTHERS = ("renamed_to", "renamed_from")


def shown_market(document: Mapping[str, Any]) -> dict[str, Any]:
    """What an exchange lists under a symbol, as last seen."""
    known = {name: document.get(name) for name in (*_PLAIN, *_MOMENTS, *_OTHERS)}
    limits = {name: document.get(name) or {} for name in ("limits", "precision")}
    return {**known, "epochs": document.get("epochs") or [], **limits}


def shown_ticker(document: Mapping[str, Any]) -> dict[str, Any]:
    """What an exchange last reported of one market. Times are epoch ms."""
    return {name: value for name, value in document.items() if name != "_id"}
