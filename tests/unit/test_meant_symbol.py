"""The symbol that is meant when it is written in another way."""

from __future__ import annotations

import pytest

from collector.errors import InvalidInput
from collector.operations.meant_symbol import is_pattern, like, meant, searched

KNOWN = ["BTC/USDT", "BTC/USDT:USDT", "ETH/USDT", "1INCH/USDT", "XAU/USD"]


@pytest.mark.parametrize("name", ["ETHUSDT", "ethusdt", "eth-usdt", "ETH_USDT"])
def test_one_market_is_meant_however_it_is_written(name: str) -> None:
    assert meant(name, KNOWN, "binance") == "ETH/USDT"


@pytest.mark.parametrize("name", ["ETH/USDT", "DOGE/USDT", "DOGEUSDT", "USDT", "1h", "ETHUSD"])
def test_what_is_whole_or_unknown_stays_as_it_is(name: str) -> None:
    assert meant(name, KNOWN, "binance") == name


def test_several_are_an_error_that_names_them() -> None:
    with pytest.raises(InvalidInput) as refused:
        meant("BTCUSDT", KNOWN, "binance", field="symbols")
    assert (refused.value.field, refused.value.code) == ("symbols", "ambiguous_symbol")
    assert refused.value.near == ("BTC/USDT", "BTC/USDT:USDT")


def test_a_name_that_is_a_symbol_itself_is_that_symbol() -> None:
    assert meant("EURUSD", ["EURUSD", "EUR/USD"], "fxcm") == "EURUSD"


def test_patterns() -> None:
    assert not is_pattern("BTC/USDT:USDT")
    assert like("*/USDT", KNOWN) == ["BTC/USDT", "ETH/USDT", "1INCH/USDT"]
    assert like("[BE]T?/*", KNOWN) == ["BTC/USDT", "BTC/USDT:USDT", "ETH/USDT"]
    assert searched("*/usd", KNOWN) == ["XAU/USD"]
    assert searched("btcusd", KNOWN) == ["BTC/USDT", "BTC/USDT:USDT"]
