"""How other venues page, measured; ccxt states other figures. Their limits come from ccxt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageRule:
    """The most bars in one answer, and how far back answers go at all."""

    largest_page: int
    oldest_bars: int | None = None


PAGE_RULES: dict[str, PageRule] = {
    "bitfinex": PageRule(10_000),
    "bitstamp": PageRule(1000),
    "coinbase": PageRule(300),
    "gate": PageRule(1000, oldest_bars=10_000),
    "kraken": PageRule(720, oldest_bars=720),
    "kucoin": PageRule(1500),
    "mexc": PageRule(500),
    "okx": PageRule(300),
}
