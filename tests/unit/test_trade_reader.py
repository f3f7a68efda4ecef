"""Ranges in, trades out."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import numpy as np
import polars
import pytest

import datalayer
from collector.errors import NotFound, NotStored
from collector.market.trade import Trade
from collector.reader import StoredTrades
from collector.store.disk import LocalDisk
from collector.store.port import Corrupt
from collector.store.trade_rows import TRADE_SCHEMA
from collector.store.trades import append_trades
from tests.support.bars import T0

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3_600_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A trade every hour for three days; every other one came later, as parts."""
    for first in (0, 1):
        trades = [Trade(str(n), T0 + n * HOUR, 100.0 + n, 0.25, "buy") for n in range(first, 72, 2)]
        append_trades(LocalDisk(tmp_path), "binance", "BTC/USDT", trades, known_at=first)
    return tmp_path


def test_every_output_has_the_same_trades(root: Path) -> None:
    reader = StoredTrades("BTC/USDT", exchange="binance", root=root)
    frame = reader.read("2024-01-02", "2024-01-03")
    assert list(frame.columns) == TRADE_SCHEMA.names
    assert frame["id"].tolist() == [str(n) for n in range(24, 48)]
    assert reader.arrow("2024-01-02", "2024-01-03").to_pandas().equals(frame)
    assert isinstance(reader.polars(), polars.DataFrame)
    assert reader.polars()["price"].to_list() == [100.0 + n for n in range(72)]
    batches = list(reader.batches())
    assert len(batches) >= 3, "a day is in memory at a time"
    assert sum(map(len, batches)) == 72


@pytest.mark.parametrize(
    "start",
    [
        "20240102",
        T0 // 1000 + 86_400,
        np.datetime64("2024-01-02"),
        date(2024, 1, 2),
        datetime(2024, 1, 2, tzinfo=UTC),
    ],
)
def test_moments_are_written_in_any_form(root: Path, start: object) -> None:
    reader = StoredTrades("BTC/USDT", "binance", root)
    assert reader.read(start)["id"].iloc[0] == "24"  # type: ignore[arg-type]


def test_what_is_not_stored_is_an_error_with_names_like_it(root: Path) -> None:
    with pytest.raises(NotStored, match="did you mean BTC/USDT"):
        StoredTrades("BTC/USDC", "binance", root).read()
    with pytest.raises(NotStored, match="did you mean binance"):
        StoredTrades("BTC/USDT", "binanse", root).read()
    with pytest.raises(ValueError, match="symbol"):
        StoredTrades("", "binance", root)
    assert StoredTrades("BTC/USDT", "binance", root).read("2025-01-01").empty


def test_a_damaged_day_can_be_left_out(root: Path) -> None:
    (root / "binance/BTC-USDT/trades/2024-01-02.parquet").write_bytes(b"not parquet")
    reader = StoredTrades("BTC/USDT", "binance", root)
    with pytest.raises(Corrupt, match="2024-01-02"):
        reader.read()
    days = reader.read(damaged="skip")["ts"] // (24 * HOUR)
    assert (days - days.iloc[0]).unique().tolist() == [0, 2]
    with pytest.raises(ValueError, match="damaged"):
        reader.read(damaged="ignore")  # type: ignore[arg-type]


def test_the_data_layer_knows_the_place_and_plain_names(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLLECTOR_DATA", str(root))
    assert len(datalayer.TradeReader("BTCUSDT", exchange="binance").read()) == 72
    with pytest.raises(NotFound):
        datalayer.TradeReader("XMREUR", exchange="binance")
