"""Quirks are data: whole, consistent, and there for every exchange."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from collector.errors import ConfigError
from collector.exchanges.quirks import Cost, Quirks, VenueWindow
from collector.exchanges.quirks.lookup import WRITTEN_DOWN, request_window
from collector.exchanges.registry import known_exchanges, quirks_for

LISTED = {
    "binance",
    "binanceusdm",
    "binancecoinm",
    "binanceus",
    "bitfinex",
    "bitget",
    "bitstamp",
    "bybit",
    "bybiteu",
    "coinbase",
    "gate",
    "gateeu",
    "gemini",
    "htx",
    "hyperliquid",
    "kraken",
    "kucoin",
    "kucoinfutures",
    "mexc",
    "myokx",
    "okx",
    "okxus",
    "upbit",
}
BARS = {
    "binance": "klines",
    "binanceusdm": "klines",
    "binancecoinm": "klines",
    "bitfinex": "candles/trade:{timeframe}:{symbol}/hist",
    "kucoin": "market/candles",
    "kucoinfutures": "kline/query",
    "mexc": "klines",
    "okx": "market/history-candles",
}
"""The endpoint of bars, where requests weigh differently."""


def test_binance_counts_weight_and_requests() -> None:
    quirks = quirks_for("binance")
    assert quirks.requests == VenueWindow("requests", 61_000, 300_000)
    assert quirks.windows == (VenueWindow("weight", 6_000, 60_000),)
    assert quirks.weight("klines", 1) == quirks.weight("klines", 1000) == 2
    assert quirks.weight("exchangeInfo", None) == 20
    assert quirks.usage_headers == {"x-mbx-used-weight-1m": quirks.windows[0]}


@pytest.mark.parametrize("exchange_id", ["binanceusdm", "binancecoinm"])
@pytest.mark.parametrize(
    ("limit", "weight"),
    [(1, 1), (99, 1), (100, 2), (499, 2), (500, 5), (1000, 5), (1001, 10), (1500, 10), (None, 5)],
)
def test_futures_charge_by_the_page(exchange_id: str, limit: int | None, weight: int) -> None:
    assert quirks_for(exchange_id).weight("klines", limit) == weight


@pytest.mark.parametrize(("limit", "weight"), [(1, 21), (60, 21), (61, 22), (5_000, 104)])
def test_candles_of_hyperliquid_weigh_by_their_number(limit: int, weight: int) -> None:
    quirks = quirks_for("hyperliquid")
    endpoint = quirks.endpoint("info", {"type": "candleSnapshot", "req": {}})
    assert quirks.weight(endpoint, limit) == weight
    assert quirks.weight(quirks.endpoint("info", {"type": "unheard of"}), None) == 20


@pytest.mark.parametrize("exchange_id", BARS)
def test_the_default_page_gives_the_most_bars_for_the_budget(exchange_id: str) -> None:
    quirks = quirks_for(exchange_id)

    def bars_a_minute(page: int) -> float:
        return page * quirks.windows[0].limit / quirks.weight(BARS[exchange_id], page)

    best = max(range(1, quirks.largest_page + 1), key=bars_a_minute)
    assert quirks.default_page == best


def test_futures_ask_for_499() -> None:
    assert quirks_for("binanceusdm").default_page == 499


def test_every_listed_exchange_has_a_record() -> None:
    assert set(WRITTEN_DOWN) == LISTED | {"simulated"}


@pytest.mark.parametrize(
    ("exchange_id", "page", "oldest"),
    [
        ("binance", 1000, None),
        ("bitfinex", 10_000, None),
        ("bitget", 200, None),
        ("bitstamp", 1000, None),
        ("bybit", 1000, None),
        ("coinbase", 300, None),
        ("gate", 1000, 9_900),
        ("gemini", 1440, 1440),
        ("hyperliquid", 5_000, 5_000),
        ("htx", 1000, None),
        ("kraken", 720, 720),
        ("kucoin", 1500, None),
        ("mexc", 500, None),
        ("okx", 300, None),
        ("upbit", 200, None),
    ],
)
def test_pages_as_measured(exchange_id: str, page: int, oldest: int | None) -> None:
    quirks = quirks_for(exchange_id)
    assert (quirks.largest_page, quirks.oldest_bars) == (page, oldest)


def test_a_window_of_days_limits_the_page_of_long_bars() -> None:
    quirks = quirks_for("binancecoinm")
    assert quirks.page(60_000) == 1000
    assert quirks.page(86_400_000) == 200
    assert quirks.page(7 * 86_400_000) == 28
    assert quirks_for("bitget").page(1_000 * 86_400_000) == 1


def test_headers_say_what_was_counted_or_what_is_left() -> None:
    binance, kucoin = quirks_for("binance"), quirks_for("kucoin")
    assert binance.counted({"x-mbx-used-weight-1m": "57"}) == [(binance.windows[0], 57)]
    assert kucoin.counted({"gw-ratelimit-remaining": "1988"}) == [(kucoin.windows[0], 12)]
    assert kucoin.counted({"gw-ratelimit-remaining": "9999"}) == [(kucoin.windows[0], 0)]
    assert kucoin.counted({"gw-ratelimit-remaining": "many"}) == []
    assert kucoin.counted({}) == []
    for absurd in ("9" * 20, "9" * 5_000, "\u00b2"):
        assert binance.counted({"x-mbx-used-weight-1m": absurd}) == []


def test_bybit_counts_requests() -> None:
    quirks = quirks_for("bybit")
    assert quirks.requests == VenueWindow("requests", 600, 5_000)
    assert quirks.windows == ()
    assert quirks.weight("v5/market/kline", 1000) == 1
    assert quirks.newest_first
    assert (quirks.bans[0].status, quirks.bans[0].wait_ms) == (403, 600_000)


def test_the_simulated_exchange_is_binance_under_another_name() -> None:
    own = replace(quirks_for("binance"), exchange_id="simulated", elsewhere={})
    assert quirks_for("simulated") == own


def test_quirks_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        quirks_for("binance").largest_page = 5000  # type: ignore[misc]


@pytest.mark.parametrize("exchange_id", WRITTEN_DOWN)
def test_a_record_is_consistent(exchange_id: str) -> None:
    check(quirks_for(exchange_id))


def test_every_exchange_has_quirks() -> None:
    for exchange_id in known_exchanges():
        check(quirks_for(exchange_id))


def check(quirks: Quirks) -> None:
    assert quirks.requests.unit == "requests"
    for window in (quirks.requests, *quirks.windows):
        assert window.limit >= 1, quirks.exchange_id
        assert window.period_ms >= 1, quirks.exchange_id
    assert 1 <= quirks.default_page <= quirks.largest_page, quirks.exchange_id
    headers = {**quirks.usage_headers, **quirks.remaining_headers}
    assert all(name == name.lower() for name in headers)
    assert set(headers.values()) <= {quirks.requests, *quirks.windows}
    assert all(phrase == phrase.lower() for phrase in quirks.refusals)
    weight = min((w.limit for w in quirks.windows if w.unit == "weight"), default=1)
    assert all(0 < cost.weight <= weight for cost in quirks.weights.values()), "it would never fit"
    assert all(rule.phrase == rule.phrase.lower() for rule in quirks.bans)
    assert quirks.banned_until is None or re.compile(quirks.banned_until).groups == 1


def test_an_exchange_without_a_record_takes_ccxts_figures() -> None:
    poloniex = quirks_for("poloniex")
    assert poloniex.requests == VenueWindow("requests", 200, 1_000)
    assert poloniex.largest_page == 500
    assert not poloniex.written
    assert quirks_for("poloniex") is poloniex


@pytest.mark.parametrize(
    ("between_ms", "window"),
    [
        (50, VenueWindow("requests", 20, 1_000)),
        (333.3, VenueWindow("requests", 3, 1_000)),
        (1_000, VenueWindow("requests", 1, 1_000)),
        (1_500.5, VenueWindow("requests", 1, 1_501)),
    ],
)
def test_a_pause_between_requests_becomes_a_window(between_ms: float, window: VenueWindow) -> None:
    assert request_window(between_ms) == window
    assert window.limit * between_ms <= window.period_ms


def test_no_limit_costs_the_plain_weight() -> None:
    assert Cost(5, tiers=((10, 7),)).of(None) == 5
    assert Cost(5, tiers=((10, 7),)).of(9) == 5
    assert Cost(5, tiers=((10, 7),)).of(10) == 7


def test_an_unknown_exchange_has_none() -> None:
    with pytest.raises(ConfigError, match="no exchange called 'nowhere'"):
        quirks_for("nowhere")


def test_the_table_in_the_docs_has_every_record_and_its_page() -> None:
    text = (Path(__file__).parents[2] / "docs" / "exchanges.md").read_text()
    table = dict(re.findall(r"^\| `(\w+)` \| (\d+)", text, re.MULTILINE))
    assert {name: int(page) for name, page in table.items()} == {
        name: WRITTEN_DOWN[name].largest_page for name in LISTED
    }
