"""Which events are accepted, and which trade an input is."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from collector.clock import ManualClock
from collector.history.event import Op, Side, parse_event
from collector.history.exchange_trades import exchange_event, scaled
from collector.history.layout import checked_network
from collector.history.pair import Asset, Pair
from collector.history.policy import CrossNet, CrossNetWarnings, Outcome, outcome_of
from collector.history.refusal import Refused
from collector.history.uint256 import LIMIT, SCALE
from tests.support.history_trades import CROSS, GOLD, OIL, PAIR, T0, sale, trade


def document(**changes: Any) -> dict[str, Any]:
    """An event as it is posted; changes that name no field of an event are its input's."""
    given = {
        "side": "ASK",
        "sell": {"net_id": "1", "token": "GOLD"},
        "buy": {"net_id": "1", "token": "OIL"},
        "price": str(2 * SCALE),
        "value": "10",
        "residual": "0",
        "payout": "20",
    }
    event = {"op": "a", "tx_hash": "0xab", "ts": T0}
    given |= {name: value for name, value in changes.items() if name in given}
    return event | {"inputs": [given]} | {k: v for k, v in changes.items() if k not in given}


def test_an_event_is_read_as_it_is_posted() -> None:
    event = parse_event(document(residual="4"))
    assert (event.op, event.tx_hash, event.ts) == (Op.ADD, "0xab", T0)
    (given,) = event.inputs
    assert (given.sell, given.buy, given.executed) == (GOLD, OIL, 6)


@pytest.mark.parametrize(
    "changes",
    [
        {"op": "x"},
        {"tx_hash": ""},
        {"tx_hash": None},
        {"tx_hash": "\ud800"},
        {"buy": {"net_id": "1", "token": "\ud800"}},
        {"ts": -1},
        {"ts": "soon"},
        {"inputs": []},
        {"inputs": ["GOLD"]},
        {"price": "0"},
        {"price": "-1"},
        {"price": 1.5},
        {"price": True},
        {"price": str(LIMIT)},
        {"value": "9" * 79},
        {"residual": "11"},
        {"side": "BID"},
        {"buy": {"net_id": "1", "token": "GOLD"}},
        {"buy": {"net_id": "1", "token": "a b"}},
        {"buy": {"net_id": "../..", "token": "OIL"}},
        {"buy": "1:OIL"},
        {"price": str(LIMIT - 1), "value": str(LIMIT - 1)},
    ],
)
def test_an_event_that_cannot_be_right_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        parse_event(document(**changes))


def test_only_the_first_input_may_have_a_residual() -> None:
    (first,) = document()["inputs"]
    second = first | {"residual": "1"}
    assert len(parse_event(document(inputs=[second, first])).inputs) == 2
    with pytest.raises(Refused, match="only the first"):
        parse_event(document(inputs=[first, second]))


def test_the_base_is_the_smaller_asset_and_numbers_count_by_value() -> None:
    nine, ten = Asset.of("9", "B"), Asset.of(10, "A")
    assert Pair.between(ten, nine) == Pair.between(nine, ten) == Pair(nine, ten)
    assert Pair.between(Asset.of("kelvin", "A"), ten).base == ten
    assert Asset.of("007", "X") == Asset.of(7, "X")
    assert Asset.parse("1:a:b") == Asset("1", "a:b")
    assert Pair.parse(str(PAIR)) == PAIR


def test_a_reversed_pair_is_refused_with_the_name_of_the_canonical_one() -> None:
    with pytest.raises(Refused, match="1:GOLD/1:OIL"):
        Pair.canonical(OIL, GOLD)


def test_pairs_have_folders_of_their_own_whatever_they_are_called() -> None:
    lower = Pair.between(Asset("1", "a" * 42), Asset("1", "b" * 42))
    other = Pair.between(Asset("1", "a" * 42), Asset("1", "c" * 42))
    folders = {pair.folder for pair in (PAIR, CROSS, lower, other)}
    assert len(folders) == 4
    assert all("/" not in folder and len(folder) <= 200 for folder in folders)


def test_networks_are_plain_lower_case_words() -> None:
    assert checked_network("riemann") == "riemann"
    for name in ("", "..", "A", "_x", "a/b"):
        with pytest.raises(Refused):
            checked_network(name)


def test_selling_base_keeps_the_price_and_selling_quote_inverts_it() -> None:
    sale = parse_event(document(price=str(3 * SCALE + 1), value="7")).inputs[0]
    ask = sale.trade(T0)
    assert (ask.pair, sale.side, ask.price) == (PAIR, Side.ASK, 3 * SCALE + 1)
    assert (ask.base, ask.quote) == (7, 7 * (3 * SCALE + 1) // SCALE)
    turned = document(
        side="BID",
        sell={"net_id": 1, "token": "OIL"},
        buy={"net_id": 1, "token": "GOLD"},
        price=str(3 * SCALE),
        value="7",
    )
    purchase = parse_event(turned).inputs[0]
    bid = purchase.trade(T0)
    assert (bid.pair, purchase.side, bid.price) == (PAIR, Side.BID, 10**36 // (3 * SCALE))
    assert (bid.base, bid.quote) == (21, 7)


def test_a_price_that_rounds_to_nothing_in_canonical_terms_is_refused() -> None:
    turned = {"side": "BID", "sell": {"net_id": 1, "token": "OIL"}}
    turned |= {"buy": {"net_id": 1, "token": "GOLD"}, "value": "1"}
    assert parse_event(document(**turned, price=str(10**36))).inputs[0].trade(T0).price == 1
    with pytest.raises(Refused, match="less than 10\\^-18"):
        parse_event(document(**turned, price=str(10**36 + 1)))


def test_amounts_near_256_bits_stay_exact() -> None:
    given = parse_event(document(price=str(SCALE), value=str(LIMIT - 1))).inputs[0]
    made = given.trade(T0)
    assert (made.base, made.quote) == (LIMIT - 1, LIMIT - 1)


def test_what_was_not_paid_or_not_executed_is_no_trade() -> None:
    assert outcome_of(sale(1, payout=0), trade(0, 1), CrossNet.WARN) is Outcome.NO_PAYOUT
    assert outcome_of(sale(1, residual=10), trade(0, 1), CrossNet.WARN) is Outcome.NOT_EXECUTED
    assert outcome_of(sale(1), trade(0, 1), CrossNet.REJECT) is Outcome.ADDED


def test_cross_net_trades_are_rejected_or_counted_by_policy() -> None:
    crossing = trade(0, 1, pair=CROSS)
    assert outcome_of(sale(1), crossing, CrossNet.REJECT) is Outcome.CROSS_NET
    assert outcome_of(sale(1), crossing, CrossNet.WARN) is Outcome.ADDED_CROSS_NET


def test_a_pair_is_warned_about_once_a_minute() -> None:
    clock = ManualClock()
    warnings = CrossNetWarnings("riemann", clock)
    with capture_logs() as lines:
        for seconds in (0, 59, 2, 1):
            clock.advance(seconds)
            warnings.warn(trade(0, 1, pair=CROSS))
    assert [line["event"] for line in lines] == ["history_cross_net_trade"] * 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", SCALE),
        ("0.000000000000000001", 1),
        ("0.0010", 10**15),
        ("1e-18", 1),
        ("1.5e2", 150 * SCALE),
        ("12.", 12 * SCALE),
        ("1.0000000000000000000", SCALE),
    ],
)
def test_decimal_digits_become_integers_exactly(text: str, value: int) -> None:
    assert scaled(text) == value


@pytest.mark.parametrize(
    "text", ["", "-1", "nan", "1.0000000000000000001", "1e-19", "1e60", ".5", "0x1", "1_0", "١"]
)
def test_digits_that_cannot_be_kept_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        scaled(text)


def test_an_exchanges_trade_is_an_event_in_the_canonical_pair() -> None:
    event = exchange_event("77", T0, OIL, GOLD, "0.25", "8")
    made = event.inputs[0].trade(event.ts)
    assert (made.pair, made.price) == (PAIR, 4 * SCALE)
    assert (made.base, made.quote) == (2 * SCALE, 8 * SCALE)
    with pytest.raises(Refused):
        exchange_event("78", T0, OIL, GOLD, "0", "8")
