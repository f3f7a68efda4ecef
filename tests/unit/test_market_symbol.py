"""Symbols as folder names."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.market.series import Series
from collector.market.symbol import checked_exchange_id, name_to_symbol, symbol_to_name

if TYPE_CHECKING:
    from collections.abc import Callable

nasty = st.sampled_from(
    ["..", ".", "/", "\\", "-", "_", "~", "%", ":", "C:", "~2D", "NUL", "parts", "PARTS", "\0", "İ"]
)
symbols = st.one_of(
    st.text(min_size=1, max_size=12),
    st.lists(nasty, min_size=1, max_size=4).map("".join),
    st.from_regex(
        r"[A-Za-z0-9]{1,6}/[A-Za-z]{3,5}(:[A-Z]{3,4}(-\d{6}(-\d{1,6}-[CP])?)?)?", fullmatch=True
    ),
)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("BTC/USDT", "BTC-USDT"),
        ("BTC/USDT:USDT", "BTC-USDT_USDT"),
        ("1000SHIB/USDT", "1000SHIB-USDT"),
        ("BTC/USD:BTC-240628-70000-C", "BTC-USD_BTC~2D240628~2D70000~2DC"),
        ("kPEPE/USDC:USDC", "~6BPEPE-USDC_USDC"),
        ("BTC-USDT", "BTC~2DUSDT"),
        ("..", "~2E~2E"),
        ("NUL", "~4EUL"),
        ("PARTS", "~50ARTS"),
    ],
)
def test_a_symbol_has_one_name(symbol: str, name: str) -> None:
    assert symbol_to_name(symbol) == name
    assert name_to_symbol(name) == symbol


@given(symbols)
def test_the_name_tells_the_symbol(symbol: str) -> None:
    try:
        name = symbol_to_name(symbol)
    except ValueError:
        return
    assert name_to_symbol(name) == symbol


def twist(char: str, other: str) -> Callable[[str], str]:
    return lambda symbol: symbol.replace(char, other)


look_alikes = st.sampled_from(
    [
        str.lower,
        str.upper,
        str.swapcase,
        symbol_to_name,
        *(twist(a, b) for a, b in permutations(["/", "-", ":", "_", "~2D", "~2F", ".."], 2)),
    ]
)


@given(symbols, look_alikes)
def test_two_symbols_never_share_a_folder_even_where_case_is_ignored(
    one: str, alike: Callable[[str], str]
) -> None:
    try:
        two = alike(one)
        names = [symbol_to_name(one), symbol_to_name(two)]
    except ValueError:
        return
    assert (names[0].casefold() == names[1].casefold()) == (one == two)


@given(symbols)
def test_a_symbol_never_leaves_its_folder(symbol: str) -> None:
    try:
        name = symbol_to_name(symbol)
    except ValueError:
        return
    assert re.fullmatch(r"[A-Z0-9_~-]+", name)
    for flavour in (PurePosixPath, PureWindowsPath):
        path = flavour("root") / name / "1m.parquet"
        assert path.parent.parent == flavour("root")
        assert path.parent.name == name
    assert name.casefold() != "parts"


@pytest.mark.parametrize("symbol", ["", "\ud800", "X" * 300])
def test_a_symbol_that_cannot_be_a_folder_is_refused(symbol: str) -> None:
    with pytest.raises(ValueError, match=r"symbol|text"):
        symbol_to_name(symbol)


@pytest.mark.parametrize(
    "name", ["", "..", "btc-usdt", "~2d", "~", "~4", "A.B", "~FF", "~41", "NUL"]
)
def test_a_folder_no_symbol_has_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"folder|empty"):
        name_to_symbol(name)


@pytest.mark.parametrize("exchange", ["..", "", "Binance", "a/b", "con", "bi nance", "x" * 80, "é"])
def test_an_exchange_id_is_a_plain_word(exchange: str) -> None:
    with pytest.raises(ValueError, match="exchange id"):
        checked_exchange_id(exchange)
    with pytest.raises(ValueError, match="exchange id"):
        Series.of(exchange, "BTC/USDT", "1m")
