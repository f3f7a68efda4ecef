"""Markets of the simulated exchange that leave, come back and change their names."""

from __future__ import annotations

import orjson
import pytest
from aiohttp import ClientSession

from collector.simulated.exchange_info import ExchangeInfo
from collector.simulated.listing import WELL_KNOWN, SimulatedMarket
from collector.simulated.relisting import changed, delisted, relisted, renamed
from collector.simulated.server import SimulatedExchange
from collector.simulated.truth import Truth

MINUTE = 60_000
T0 = 1_704_067_200_000


def at(minute: int) -> int:
    return T0 + minute * MINUTE


def minutes(listings: tuple[SimulatedMarket, ...], symbol: str = "BTC/USDT") -> list[int]:
    """The minutes from 0 to 100 that have a bar."""
    opens = Truth(listings=listings).bars(symbol, "1m", T0, at(100)).open_ms
    return [(int(ts) - T0) // MINUTE for ts in opens]


def statuses(listings: tuple[SimulatedMarket, ...], minute: int) -> dict[str, str]:
    body = orjson.loads(ExchangeInfo(listings).body(at(minute)))
    return {each["symbol"]: each["status"] for each in body["symbols"]}


def test_a_delisted_market_has_no_bars_any_more_and_says_so() -> None:
    gone = delisted(WELL_KNOWN, "BTC/USDT", at(40) + 30_000)
    assert minutes(gone) == list(range(40))
    assert statuses(gone, 39)["BTCUSDT"] == "TRADING"
    assert statuses(gone, 40)["BTCUSDT"] == "BREAK"


def test_a_hidden_one_is_not_in_the_list() -> None:
    gone = delisted(WELL_KNOWN, "BTC/USDT", at(40), hidden=True)
    assert "BTCUSDT" in statuses(gone, 39)
    assert "BTCUSDT" not in statuses(gone, 40)


def test_a_relisted_market_has_the_bars_it_would_have_had_but_for_the_time_away() -> None:
    back = relisted(delisted(WELL_KNOWN, "BTC/USDT", at(40), hidden=True), "BTC/USDT", at(60))
    assert minutes(back) == [*range(40), *range(60, 100)]
    whole = Truth().bars("BTC/USDT", "1m", at(60), at(100)).columns()
    again = Truth(listings=back).bars("BTC/USDT", "1m", at(60), at(100)).columns()
    assert {name: list(values) for name, values in again.items()} == {
        name: list(values) for name, values in whole.items()
    }
    assert "BTCUSDT" not in statuses(back, 59)
    assert statuses(back, 60)["BTCUSDT"] == "TRADING"


def test_a_renamed_market_keeps_its_bars_and_the_exchanges_own_name() -> None:
    new = renamed(WELL_KNOWN, "BTC/USDT", "BTCX/USDT")
    assert minutes(new, "BTCUSDT") == minutes(WELL_KNOWN)
    (entry,) = [
        each
        for each in orjson.loads(ExchangeInfo(new).body(T0))["symbols"]
        if each["symbol"] == "BTCUSDT"
    ]
    assert entry["baseAsset"] == "BTCX"


def test_the_same_by_word() -> None:
    gone = changed(WELL_KNOWN, {"op": "delist", "symbol": "BTC/USDT", "hidden": True}, at(40))
    assert gone == delisted(WELL_KNOWN, "BTC/USDT", at(40), hidden=True)
    back = changed(gone, {"op": "relist", "symbol": "BTC/USDT", "at_ms": at(60)}, at(70))
    assert back == relisted(gone, "BTC/USDT", at(60))
    new = changed(WELL_KNOWN, {"op": "rename", "symbol": "BTC/USDT", "to": "BTCX/USDT"}, T0)
    assert new == renamed(WELL_KNOWN, "BTC/USDT", "BTCX/USDT")
    with pytest.raises(ValueError, match="not one of"):
        changed(WELL_KNOWN, {"op": "burn", "symbol": "BTC/USDT"}, T0)


async def test_another_process_can_ask_for_it() -> None:
    async with SimulatedExchange() as exchange, ClientSession() as client:
        asked = {"op": "rename", "symbol": "BTC/USDT", "to": "BTCX/USDT"}
        async with client.post(f"{exchange.url}/sim/listings", json=asked) as answer:
            assert "BTCX/USDT" in (await answer.json())["symbols"]
        async with client.post(f"{exchange.url}/sim/listings", json=["no"]) as answer:
            assert answer.status == 400
        async with client.get(f"{exchange.url}/api/v3/exchangeInfo") as answer:
            bases = {each["baseAsset"] for each in (await answer.json())["symbols"]}
    assert "BTCX" in bases
    assert "BTC" not in bases


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="no market"):
        delisted(WELL_KNOWN, "NOT/THERE", T0)
    with pytest.raises(ValueError, match="not delisted"):
        relisted(WELL_KNOWN, "BTC/USDT", T0)
    with pytest.raises(ValueError, match="not a symbol"):
        renamed(WELL_KNOWN, "BTC/USDT", "BTCX")
