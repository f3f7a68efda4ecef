"""`collector trades` on a lake of three days."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from collector.cli.main import run
from collector.market.trade import Trade
from collector.store.disk import LocalDisk
from collector.store.trade_rows import TRADE_SCHEMA
from collector.store.trades import append_trades
from tests.support.bars import T0

if TYPE_CHECKING:
    from pathlib import Path

MARKET = ["binance", "BTC/USDT"]
HOUR = 3_600_000


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trade every hour for three days, 72 in all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.delenv("COLLECTOR_DATA", raising=False)
    trades = [Trade(str(n), T0 + n * HOUR + 7, 100.5 + n, 0.25, "buy") for n in range(72)]
    append_trades(LocalDisk(tmp_path / "data"), *MARKET, trades, known_at=1)
    return tmp_path


def read_ids(capsys: pytest.CaptureFixture[str], *options: str) -> list[int]:
    assert run(["trades", *MARKET, *options, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert answer["columns"] == TRADE_SCHEMA.names
    return [int(row[0]) for row in answer["rows"]]


def test_the_newest_trades_or_those_from_a_start_on(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_ids(capsys, "--limit", "2") == [70, 71]
    assert read_ids(capsys, "--limit", "30") == list(range(42, 72)), "two days"
    assert read_ids(capsys, "--limit", "1000") == list(range(72))
    assert read_ids(capsys, "--start", "2024-01-01T23:00Z", "--limit", "3") == [23, 24, 25]
    assert read_ids(capsys, "--end", "2024-01-02", "--limit", "1") == [23]


def test_a_trade_is_shown_with_its_milliseconds(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trades", *MARKET, "--limit", "1"]) == 0
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["time", "(UTC)", "price", "amount", "side", "id"]
    assert row.split() == ["2024-01-03", "23:00:00.007", "171.5", "0.25", "buy", "71"]


def test_an_empty_range_is_said_in_words(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--start", "2025-01-01"], ["--end", "2023-01-01"]):
        assert run(["trades", *MARKET, *options]) == 0
        assert capsys.readouterr().out == "no trades in this range\n"
    assert run(["trades", *MARKET, "--start", "2025-01-02", "--end", "2025-01-01"]) == 2


@pytest.mark.parametrize(
    ("market", "words"),
    [
        (("binance", "BTC/USTD"), "did you mean BTC/USDT?"),
        (("binance", "XMR/EUR"), "collector job add binance trades_incremental --symbol XMR/EUR"),
        (("kraken", "BTC/USDT"), "collector job add kraken trades_incremental --symbol BTC/USDT"),
    ],
)
def test_without_trades_it_says_what_there_is_or_which_job_collects_them(
    lake: Path, capsys: pytest.CaptureFixture[str], market: tuple[str, ...], words: str
) -> None:
    assert run(["trades", *market]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("E_API: no trades are stored for ")
    assert words in err


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_every_form_holds_the_same_rows(
    lake: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    out = lake / f"trades.{form}"
    assert run(["trades", *MARKET, "--out", str(out), "--start", "2024-01-02", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"out": str(out), "format": form, "rows": 48, "bytes": out.stat().st_size}
    if form == "csv":
        assert out.read_text().splitlines()[0] == ",".join(TRADE_SCHEMA.names)
        found = pa.csv.read_csv(out)
    elif form == "parquet":
        found = pa.parquet.read_table(out)
    else:
        found = pa.ipc.open_file(out).read_all()
    assert found["ts"].to_pylist() == [T0 + n * HOUR + 7 for n in range(24, 72)]
    assert found["price"][0].as_py() == 124.5


def test_an_id_that_is_a_formula_is_escaped_on_request(lake: Path) -> None:
    trade = Trade('=cmd|"/c calc"!A1', T0 + 100 * HOUR, 1.0, 1.0, "buy")
    append_trades(LocalDisk(lake / "data"), *MARKET, [trade], known_at=1)
    early = ["--start", str(T0 + 99 * HOUR), "--out"]
    assert run(["trades", *MARKET, *early, "plain.csv"]) == 0
    assert pa.csv.read_csv("plain.csv")["id"].to_pylist() == [trade.id]
    assert run(["trades", *MARKET, *early, "escaped.csv", "--escape"]) == 0
    assert pa.csv.read_csv("escaped.csv")["id"].to_pylist() == [f"'{trade.id}"]
    assert run(["trades", *MARKET, *early, "escaped.parquet", "--escape"]) == 2
    assert run(["trades", *MARKET, "--escape"]) == 2


def test_a_file_is_replaced_only_by_force_and_never_left_half(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = lake / "trades.csv"
    out.write_text("mine")
    assert run(["trades", *MARKET, "--out", str(out)]) == 7
    assert "E_WRITE: " in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert run(["trades", *MARKET, "--out", str(out), "--force"]) == 0
    assert "72 trades in" in capsys.readouterr().out
    next(lake.rglob("2024-01-03.parquet")).write_bytes(b"not parquet")
    assert run(["trades", *MARKET, "--out", str(out), "--force"]) == 7
    assert "2024-01-03.parquet is damaged" in capsys.readouterr().err
    assert out.read_text().count("\n") == 73
    assert {path.name for path in lake.iterdir()} == {"trades.csv", "data"}


def test_csv_goes_to_standard_output_for_a_pipe(
    lake: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    early = ["--end", "2024-01-01T02:00Z"]
    assert run(["trades", *MARKET, "--out", "-", "--format", "csv", *early]) == 0
    out, err = capfdbinary.readouterr()
    assert out.count(b"\n") == 3
    assert err == b"2 trades\n"
    assert run(["trades", *MARKET, "--out", "-", "--format", "csv", "--json"]) == 2
