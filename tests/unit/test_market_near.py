"""Names that look like what was typed."""

from __future__ import annotations

from collector.market.near import did_you_mean, near


def test_near_matches_forgive_case_and_separators() -> None:
    known = ["BTC/USDT", "ETH/USDT", "SOL/USDC"]
    assert near("btc-usdt", known)[0] == "BTC/USDT"
    assert near("BTCUSDT", known)[0] == "BTC/USDT"
    assert did_you_mean("BTC/USTD", ["BTC/USDT"]) == "; did you mean BTC/USDT?"
    assert did_you_mean("binace", ["binance", "binanceus"]).endswith("binance or binanceus?")
    assert did_you_mean("qqqq", known) == ""


def test_what_differs_only_in_letters_comes_after_what_differs_in_none() -> None:
    symbols = ["BTC/USDT", "BTC/USDT:USDT", "ETH/USDT", "SOL/USDC"]
    assert near("btc-usdt", symbols)[0] == "BTC/USDT"
    assert near("SOL/USDT", symbols)[0] == "SOL/USDC"
    assert near("???", symbols) == ()
