"""Quirks are data: whole, consistent, and there for every exchange."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace

import pytest

from collector.errors import ConfigError
from collector.exchanges.quirks import Cost, Quirks, VenueWindow, quirks_for
from collector.exchanges.quirks.lookup import request_window
from collector.exchanges.registry import known_exchanges

WRITTEN_DOWN = ["binance", "binanceusdm", "binancecoinm", "bybit", "simulated"]


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


def test_the_default_page_of_futures_gives_the_most_bars_a_minute() -> None:
    quirks = quirks_for("binanceusdm")

    def bars_a_minute(page: int) -> float:
        return page * quirks.windows[0].limit / quirks.weight("klines", page)

    best = max(range(1, quirks.largest_page + 1), key=bars_a_minute)
    assert quirks.default_page == best == 499


def test_bybit_counts_requests() -> None:
    quirks = quirks_for("bybit")
    assert quirks.requests == VenueWindow("requests", 600, 5_000)
    assert quirks.windows == ()
    assert quirks.weight("v5/market/kline", 1000) == 1
    assert quirks.newest_first
    assert (quirks.bans[0].status, quirks.bans[0].wait_ms) == (403, 600_000)


def test_the_simulated_exchange_is_binance_under_another_name() -> None:
    assert quirks_for("simulated") == replace(quirks_for("binance"), exchange_id="simulated")


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
    assert all(name == name.lower() for name in quirks.usage_headers)
    assert set(quirks.usage_headers.values()) <= {quirks.requests, *quirks.windows}
    assert all(rule.phrase == rule.phrase.lower() for rule in quirks.bans)
    assert quirks.banned_until is None or re.compile(quirks.banned_until).groups == 1


def test_an_exchange_without_a_record_takes_ccxts_figures() -> None:
    kraken = quirks_for("kraken")
    assert kraken.requests == VenueWindow("requests", 1, 1_000)
    assert (kraken.largest_page, kraken.oldest_bars) == (720, 720)
    assert quirks_for("mexc").largest_page == 500, "measured; ccxt says 1000"
    assert quirks_for("bitget").largest_page == 200
    assert quirks_for("kraken") is kraken


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
