"""`collector market-rate` and `collector volume`, on files alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from collector.cli.actions.history import decimal
from collector.cli.main import run
from collector.history.writer import HistoryWriter
from collector.store.disk import LocalDisk
from tests.support.history_trades import added, sale

if TYPE_CHECKING:
    from pathlib import Path

PAIR = ("riemann", "1:GOLD", "1:OIL")


@pytest.fixture(autouse=True)
def _lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three trades, two of them in one minute."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLLECTOR_HISTORY__NETWORKS", '["riemann"]')
    writer = HistoryWriter(LocalDisk(tmp_path / "data"), "riemann")
    trades = [("0x1", 0, 5), ("0x2", 0.5, 7), ("0x3", 2, 6)]
    writer.apply(
        [
            (number, added(tx, minute, sale(price)))
            for number, (tx, minute, price) in enumerate(trades, start=1)
        ]
    )


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_price_is_that_of_the_last_trade(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "market-rate", *PAIR)["price"] == str(6 * 10**18)
    assert run(["market-rate", *PAIR]) == 0
    assert capsys.readouterr().out == "6 at 2024-01-01 00:02:00\n"


def test_candles_are_listed_and_the_rest_follows_the_cursor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = said(capsys, "market-rate", *PAIR, "--mode", "ohlcv", "--limit", "1")
    assert [each["trades"] for each in first["items"]] == [2]
    rest = said(capsys, "market-rate", *PAIR, "--mode", "ohlcv", "--cursor", first["next_cursor"])
    assert [each["trades"] for each in rest["items"]] == [1]
    assert run(["market-rate", *PAIR, "--mode", "ohlcv", "--fill"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_volume_is_summed_and_by_the_bucket(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "volume", *PAIR)["sum_base"] == "30"
    assert run(["volume", *PAIR, "--bucket", "120"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    mean = said(capsys, "market-rate", *PAIR, "--mode", "vwap")
    assert mean["trades"] == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["market-rate", "riemann", "1:OIL", "1:GOLD"], "the canonical pair is 1:GOLD/1:OIL"),
        (["market-rate", "nowhere", "1:GOLD", "1:OIL"], "there is no network 'nowhere'"),
        (["volume", "riemann", "GOLD", "1:OIL"], "not NET:TOKEN"),
        (["volume", *PAIR, "--bucket", "90"], "a multiple of 60 seconds"),
        (["volume", *PAIR, "--start", "2025-02-01", "--end", "2025-01-01"], "--until is not after"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_a_usage_error(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("price", "shown"),
    [("1", "0.000000000000000001"), (str(10**18), "1"), (str(15 * 10**17), "1.5")],
)
def test_a_price_is_shown_with_every_digit(price: str, shown: str) -> None:
    assert decimal(price) == shown
