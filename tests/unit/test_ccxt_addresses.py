"""COLLECTOR_EXCHANGE_URLS: every address moves, every path stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import ccxt.async_support
import pytest

from collector.clock import ManualClock
from collector.errors import ConfigError
from collector.exchanges.ccxt.addresses import checked_address, moved
from collector.exchanges.ccxt.exchange import CcxtExchange
from tests.support.no_permit import NoPermit

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS = "http://127.0.0.1:9001"


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)


def path_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[2]


def with_bars() -> list[str]:
    return [name for name in ccxt.async_support.exchanges if _class(name).has["fetchOHLCV"]]


def _class(exchange_id: str) -> Any:
    return getattr(ccxt.async_support, exchange_id)()


def test_no_exchange_keeps_a_host_of_its_own() -> None:
    names = with_bars()
    assert len(names) > 80
    for name in names:
        before = list(leaves(_class(name).urls["api"]))
        exchange = CcxtExchange(name, NoPermit(), urls={name: ADDRESS}, clock=ManualClock())
        after = list(leaves(exchange._ccxt.urls["api"]))
        assert {urlsplit(url).netloc for url in after} == {"127.0.0.1:9001"}, name
        assert {urlsplit(url).scheme for url in after} <= {"http", "ws"}, name
        assert [path_of(url) for url in after] == [path_of(url) for url in before], name


def test_one_exchanges_address_is_not_anothers() -> None:
    exchange = CcxtExchange("binance", NoPermit(), urls={"bybit": ADDRESS}, clock=ManualClock())
    assert exchange._ccxt.urls["api"]["public"] == "https://api.binance.com/api/v3"


def test_the_simulated_exchange_never_leaves_this_machine() -> None:
    exchange = CcxtExchange("simulated", NoPermit(), clock=ManualClock())
    hosts = {urlsplit(url).hostname for url in leaves(exchange._ccxt.urls["api"])}
    assert hosts == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.binance.com/api/v3", "http://127.0.0.1:9001/api/v3"),
        ("https://api.{hostname}", "http://127.0.0.1:9001"),
        ("https://{hostname}/v2/{x}", "http://127.0.0.1:9001/v2/{x}"),
        ("wss://stream.binance.com:9443/ws", "ws://127.0.0.1:9001/ws"),
    ],
)
def test_scheme_host_and_port_change_and_the_path_stays(url: str, expected: str) -> None:
    assert moved({"a": {"b": [url]}}, ADDRESS) == {"a": {"b": [expected]}}


def test_a_secure_address_keeps_websockets_secure() -> None:
    assert moved("ws://a/b", "https://gateway.example") == "wss://gateway.example/b"


@pytest.mark.parametrize("address", [ADDRESS, ADDRESS + "/", "https://gateway.example"])
def test_an_address_is_scheme_host_and_port(address: str) -> None:
    assert checked_address("binance", address) == address.rstrip("/")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1:9001",
        "ftp://127.0.0.1",
        "http://",
        "http://127.0.0.1:9001/api",
        "http://127.0.0.1:9001?x=1",
        "http://127.0.0.1:nine",
        "http://user:secret@127.0.0.1",
    ],
)
def test_anything_else_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="COLLECTOR_EXCHANGE_URLS: binance"):
        checked_address("binance", address)
