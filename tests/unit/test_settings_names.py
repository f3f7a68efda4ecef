"""Misspelt settings: refused where they are read, with the name that was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.errors import ConfigError
from collector.settings import Settings, load
from collector.settings_names import unknown_variables

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("exchnages: {}", r"exchnages: there is no such setting; did you mean exchanges"),
        ("worker: {concurency: 3}", r"worker\.concurency: .*did you mean concurrency"),
        ("exchanges: {kraken: {ratelimit: 3}}", r"exchanges\.kraken\.ratelimit: .*rate_limit"),
        (
            "exchanges: {kraken: {circuit: {circuit_window_secs: 3}}}",
            r"circuit\.circuit_window_secs: .*did you mean circuit_window_sec",
        ),
        (
            "streams: [{exchange: a, symbol: b, timeframe: 1m, snice: 1}]",
            r"streams\.0\.snice.*since",
        ),
        ("fxcm: {stream: {}, usr: D1}", r"fxcm\.usr: there is no such setting; did you mean user"),
    ],
)
def test_an_unknown_key_is_refused_with_a_near_match(
    tmp_path: Path, text: str, complaint: str
) -> None:
    (tmp_path / "collector.yaml").write_text(f"{text}\n")
    with pytest.raises(ConfigError, match=complaint):
        load()


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("COLLECTOR_MONGO_URL", "COLLECTOR_MONGO_URL: .*COLLECTOR_MONGO_URI"),
        ("COLLECTOR_WORKR__CONCURRENCY", "did you mean COLLECTOR_WORKER__CONCURRENCY"),
        ("COLLECTOR_WORKER__CONCURENCY", "worker.concurency: .*did you mean concurrency"),
        ("COLLECTOR_QQQQQQ", "COLLECTOR_QQQQQQ: there is no such setting$"),
    ],
)
def test_an_unknown_name_in_the_environment_is_refused_with_a_near_match(
    name: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "3")
    with pytest.raises(ConfigError, match=complaint):
        load()


def test_names_that_other_parts_read_and_those_of_kubernetes_are_accepted() -> None:
    own = {"COLLECTOR_SECRET_BYBIT_READ": "x", "COLLECTOR_DEBUG": "1", "PATH": "/bin"}
    assert unknown_variables(Settings, own) == []
    services = {
        "COLLECTOR_API_SERVICE_HOST": "10.0.0.1",
        "COLLECTOR_API_PORT": "tcp://10.0.0.1:8000",
        "COLLECTOR_API_PORT_8000_TCP_ADDR": "10.0.0.1",
    }
    assert len(unknown_variables(Settings, services)) == 3
    assert unknown_variables(Settings, {**services, "KUBERNETES_SERVICE_HOST": "10.0.0.2"}) == []


def test_a_stream_that_stands_twice_is_refused(tmp_path: Path) -> None:
    one = "{exchange: binance, symbol: BTC/USDT, timeframe: 1h}"
    same = "{exchange: binance, symbol: BTC/USDT, timeframe: H1, since: 2024-01-01}"
    (tmp_path / "collector.yaml").write_text(f"streams: [{one}, {same}]\n")
    with pytest.raises(
        ConfigError, match="streams: binance BTC/USDT 1h stands twice, as 0 and as 1"
    ):
        load()
