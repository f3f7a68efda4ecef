"""Which exchanges there are, without paying for ccxt to find out."""

from __future__ import annotations

import subprocess
import sys

import ccxt.async_support
import pytest

from collector.clock import ManualClock
from collector.errors import ConfigError
from collector.exchanges.registry import known_exchanges, near_matches, open_exchange
from tests.support.no_permit import NoPermit


def test_every_exchange_of_ccxt_is_known_and_so_are_ours() -> None:
    assert set(known_exchanges()) == {*ccxt.async_support.exchanges, "simulated", "fxcm"}
    assert list(known_exchanges()) == sorted(known_exchanges())


def test_looking_up_names_and_quirks_does_not_import_ccxt() -> None:
    program = (
        "import sys\n"
        "from collector.exchanges.registry import quirks_for\n"
        "from collector.exchanges.registry import known_exchanges, near_matches\n"
        "assert len(known_exchanges()) > 100 and near_matches('binanec') and quirks_for('bybit')\n"
        "assert not {'ccxt', 'aiohttp'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "likely"),
    [("binanec", "binance"), ("ByBit", "bybit"), (" kraken ", "kraken"), ("simulate", "simulated")],
)
def test_near_matches_come_likeliest_first(name: str, likely: str) -> None:
    assert near_matches(name)[0] == likely


def test_nothing_is_near_to_nonsense() -> None:
    assert near_matches("zzzzzzzzzz") == ()


async def test_opening_sends_nothing() -> None:
    exchange = open_exchange("binance", NoPermit(), urls={}, clock=ManualClock())
    assert exchange.id == "binance"
    await exchange.close()


@pytest.mark.parametrize("name", ["binanec", "../binance", "__class__", "Exchange", "base", ""])
def test_only_exchanges_can_be_opened(name: str) -> None:
    with pytest.raises(ConfigError, match="there is no exchange called"):
        open_exchange(name, NoPermit(), urls={}, clock=ManualClock())


def test_a_name_nearly_right_is_told() -> None:
    with pytest.raises(ConfigError, match="did you mean binance"):
        open_exchange("binanec", NoPermit(), urls={}, clock=ManualClock())
