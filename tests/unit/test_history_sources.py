"""Posted notifications and trades of exchanges as events, by one protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.exchanges.ccxt.trades import written_digits
from collector.history.pair import Pair
from collector.history.sources import BadEvent, ExchangeTrades, PostedEvents
from collector.market.trade import Trade
from tests.support.history_trades import added, sale

if TYPE_CHECKING:
    from collector.history.sources import EventSource

ONE = Trade("7", 1_735_689_600_000, 0.1, 3.0, "buy", ("0.10", "3.000000000000000001"))


def test_what_is_posted_and_what_an_exchange_told_are_both_events() -> None:
    event = added("0x1", 0, sale(5))
    sources: list[EventSource] = [
        PostedEvents([event.document()]),
        ExchangeTrades("binance", "BTC/USDT", [ONE]),
    ]
    [posted], [told] = (each.events() for each in sources)
    assert posted == event
    assert (told.tx_hash, told.ts, told.inputs[0].price) == ("BTC/USDT#7", ONE.ts, 10**17)
    assert told.inputs[0].value == 3 * 10**18 + 1, "a float would have lost it"


def test_an_exchange_trades_inside_its_own_net() -> None:
    [event] = ExchangeTrades("binance", "BTC/USDT:USDT", [ONE]).events()
    pair = event.inputs[0].trade(event.ts).pair
    assert pair == Pair.parse("binance:BTC/binance:USDT:USDT")
    assert not pair.is_cross_net


def test_a_bad_event_is_named_by_its_place() -> None:
    good = added("0x1", 0, sale(5)).document()
    with pytest.raises(BadEvent, match="op is 'a' or 'd'") as caught:
        PostedEvents([good, {**good, "op": "x"}]).events()
    assert caught.value.at == 1


def test_a_trade_without_the_venues_digits_is_refused() -> None:
    without = Trade("7", 1, 0.1, 3.0)
    with pytest.raises(BadEvent, match="digits are not known"):
        ExchangeTrades("binance", "BTC/USDT", [ONE, without]).events()


@pytest.mark.parametrize(
    ("row", "market", "digits"),
    [
        ({"p": "0.10", "q": "3"}, {}, ("0.10", "3")),
        (["0.10", "3", 1735689600.1], {}, ("0.10", "3")),
        ({"p": 0.1, "q": "3"}, {}, None),
        ({"p": "0.10", "q": "3"}, {"contract": True, "contractSize": 0.001}, ("0.10", "0.003")),
        ({"p": "0.10", "q": "3"}, {"contract": True, "inverse": True, "contractSize": 100}, None),
        ("garbage", {}, None),
    ],
)
def test_digits_are_those_that_the_venue_sent_as_text(
    row: object, market: dict[str, object], digits: tuple[str, str] | None
) -> None:
    assert written_digits(row, "0.10", "3", market) == digits
