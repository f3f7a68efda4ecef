"""Names that cannot be meant, known before an exchange is asked."""

from __future__ import annotations

import pytest

from collector.exchanges.ccxt.catalog import ccxt_class, ccxt_ids
from collector.exchanges.mistaken import kind_of, mistaken_symbol, without_bars
from collector.exchanges.quirks.lookup import WRITTEN_DOWN


def test_every_exchange_without_bars_is_known_to_have_none() -> None:
    silent = {each for each in ccxt_ids() if without_bars(each) is not None}
    assert silent == {
        each for each in ccxt_ids() if ccxt_class(each)().has.get("fetchOHLCV") is not True
    }
    assert {"bitflyer", "coincheck", "zaif"} <= silent


def test_trades_are_named_where_there_are_some() -> None:
    bitflyer, blockchain = without_bars("bitflyer"), without_bars("blockchaincom")
    assert bitflyer is not None
    assert bitflyer.reason.startswith("bitflyer serves no bars; a job of type ohlcv_from_trades")
    assert blockchain is not None
    assert blockchain.reason == "blockchaincom serves no bars"


@pytest.mark.parametrize(
    ("exchange_id", "symbol", "sibling"),
    [
        ("binance", "BTC/USDT:USDT", "binanceusdm"),
        ("binance", "BTC/USDT:USDT-260327", "binanceusdm"),
        ("binance", "BTC/USD:BTC", "binancecoinm"),
        ("binanceusdm", "BTC/USDT", "binance"),
        ("binanceusdm", "BTC/USD:BTC", "binancecoinm"),
        ("binancecoinm", "BTC/USDT:USDT", "binanceusdm"),
        ("kraken", "BTC/USD:USD", "krakenfutures"),
        ("kucoin", "BTC/USDT:USDT", "kucoinfutures"),
        ("kucoinfutures", "BTC/USDT", "kucoin"),
    ],
)
def test_a_market_of_a_sibling_names_it(exchange_id: str, symbol: str, sibling: str) -> None:
    mistake = mistaken_symbol(exchange_id, symbol)
    assert mistake is not None
    assert (mistake.code, mistake.instead) == ("other_exchange", (sibling,))
    assert mistake.reason == f"{exchange_id} has no {symbol!r}: such markets are on {sibling}"


@pytest.mark.parametrize(
    ("exchange_id", "symbol"),
    [
        ("binance", "BTC/USDT"),
        ("binanceusdm", "BTC/USDT:USDT"),
        ("binanceus", "BTC/USDT:USDT"),
        ("bybit", "BTC/USDT:USDT"),
        ("simulated", "BTC/USDT:USDT"),
        ("gmocoin", "BTC/USDT:USDT"),
    ],
)
def test_what_may_be_there_is_no_mistake(exchange_id: str, symbol: str) -> None:
    assert mistaken_symbol(exchange_id, symbol) is None


@pytest.mark.parametrize("symbol", ["1h", "1m", "1M", "H1"])
def test_a_timeframe_is_no_symbol(symbol: str) -> None:
    mistake = mistaken_symbol("bybit", symbol)
    assert mistake is not None
    assert mistake.code == "symbol_is_timeframe"


def test_siblings_are_exchanges() -> None:
    named = {each for quirks in WRITTEN_DOWN.values() for each in quirks.elsewhere.values()}
    assert named <= ccxt_ids()


def test_kinds_of_symbols() -> None:
    symbols = ("BTC/USDT", "BTC/USDT:USDT", "BTC/USD:BTC-260327", "ETH/USD:BTC", "BTCUSDT")
    assert [kind_of(each) for each in symbols] == ["spot", "linear", "inverse", None, None]


def test_an_exchange_of_another_provider_is_not_looked_up_at_ccxt() -> None:
    assert without_bars("an_archive") is None
