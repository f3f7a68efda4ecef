"""Counts of contracts, as volumes in base currency."""

from __future__ import annotations

from typing import Any

import pytest
from ccxt.base.errors import BadResponse

from collector.exchanges.ccxt.contract_volume import bars_in_base, batch_in_base, trade_in_base
from collector.market.bar_rows import BarRows

LINEAR = {"symbol": "BTC/USDT:USDT", "contract": True, "linear": True, "contractSize": 0.0001}
INVERSE = {"symbol": "BTC/USD:BTC", "contract": True, "inverse": True, "contractSize": 100}


def test_a_linear_contract_is_an_amount_of_base_currency() -> None:
    assert bars_in_base([(0, 1.0, 4.0, 1.0, 2.0, 1234, 9.5)], LINEAR) == [
        (0, 1.0, 4.0, 1.0, 2.0, 0.1234, 9.5)
    ]


def test_an_inverse_contract_is_an_amount_of_quote_currency() -> None:
    """Its count is the turnover; the volume is what that buys at the mean price."""
    assert bars_in_base([(0, 10.0, 40.0, 10.0, 20.0, 3, None)], INVERSE) == [
        (0, 10.0, 40.0, 10.0, 20.0, 15.0, 300)
    ]


@pytest.mark.parametrize("market", [LINEAR, INVERSE])
@pytest.mark.parametrize("row", [(0,), (0, 1.0, 4.0, 1.0, 2.0, None, None)])
def test_what_is_not_there_is_left_to_quarantine(market: Any, row: Any) -> None:
    assert bars_in_base([row], market) == [row]


@pytest.mark.parametrize("size", [None, 0, "many"])
def test_a_count_of_contracts_is_never_taken_for_a_volume(size: Any) -> None:
    with pytest.raises(BadResponse, match="is not known"):
        bars_in_base([(0, 1.0, 4.0, 1.0, 2.0, 1234, None)], LINEAR | {"contractSize": size})


def test_a_trades_size() -> None:
    assert trade_in_base(50, 93576, LINEAR) == 0.005
    assert trade_in_base(5, 50_000, INVERSE) == 0.01
    assert trade_in_base(5, 50_000, {"contract": False}) == 5
    assert trade_in_base(5, None, INVERSE) is None


@pytest.mark.parametrize("size", [0.0001, 0.003, 1, 100])
@pytest.mark.parametrize("market", [LINEAR, INVERSE])
def test_by_the_column_it_is_the_same_to_the_last_bit(market: Any, size: float) -> None:
    market = market | {"contractSize": size}
    rows = [(at, 0.1 + at / 7, 4.7, 0.3, 2.9, 1234 + at / 3, 9.5) for at in range(50)]
    found = batch_in_base(BarRows.of(rows), market)
    assert found is not None
    assert list(found) == list(bars_in_base(rows, market))


def test_a_mean_price_of_zero_is_left_to_the_rows() -> None:
    assert batch_in_base(BarRows.of([(0, -1.0, 2.0, -1.0, 0.0, 3.0, None)]), INVERSE) is None
