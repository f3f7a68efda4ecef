"""What `datalayer` makes of what was typed: names, options, refusals."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest
import typer.main
from bson import ObjectId
from rich.console import Console

from collector import progress
from collector.cli.arguments import split
from collector.cli.datalayer import app
from collector.cli.main import run
from collector.datalayer import DataReader
from collector.errors import NotFound
from collector.jobs.job import Job
from collector.operations.tickers import spelt_so, stored_symbols
from collector.store.store import Store
from tests.support.bars import BTC, at, flat, span

if TYPE_CHECKING:
    from pathlib import Path

STORED = ["ETH/USDT", "BTC/USDT", "BTC/USDT:USDT"]


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_the_verbs_of_the_seed_are_there_with_examples() -> None:
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(verbs) == {"backfill", "resample", "validate", "missing-report", "repair"}
    for name, command in verbs.items():
        assert f"Example: `datalayer {name} --symbols" in command.help


@pytest.mark.parametrize("name", ["BTCUSDT", "BTC/USDT", "btcusdt", "BTC-USDT"])
def test_a_symbol_may_be_written_as_venues_do(name: str) -> None:
    assert stored_symbols([name], "binance", STORED) == ["BTC/USDT"]


def test_symbols_come_in_one_order_and_once() -> None:
    typed = split("ETHUSDT, BTC/USDT,,BTCUSDT", "--symbols")
    assert stored_symbols(typed, "binance", STORED) == ["BTC/USDT", "ETH/USDT"]
    assert stored_symbols(["ALL"], "binance", STORED) == sorted(STORED)


def test_a_contract_is_meant_only_by_its_own_name() -> None:
    assert stored_symbols(["BTC/USDT:USDT"], "binance", STORED) == ["BTC/USDT:USDT"]
    assert spelt_so("BTCUSDT", ["BTC/USDT:USDT"]) == "BTC/USDT:USDT"


def test_an_unknown_symbol_is_answered_with_those_like_it() -> None:
    with pytest.raises(NotFound, match="did you mean BTC/USDT"):
        stored_symbols(["BTCUSTD"], "binance", STORED)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("backfill --symbols ,", 2, "E_USAGE: --symbols names nothing"),
        ("backfill --symbols X --exchange simulatd", 2, "E_USAGE: there is no exchange called"),
        ("validate --symbols BTCUSDT --samples 0", 3, "E_API: nothing is stored for bybit"),
        ("missing-report --symbols ALL", 3, "E_API: nothing is stored for bybit yet"),
        ("missing-report --symbols ALL --out x.xls", 2, "E_USAGE: --out x.xls: end its name"),
        ("resample --symbols BTCUSDT --tfs 30s", 2, "E_USAGE: 30s cannot be made of 1m bars"),
        ("resample --symbols BTCUSDT --tfs 7x", 2, "E_USAGE: '7x' is not a timeframe"),
        ("nonsense", 2, "E_USAGE: No such command 'nonsense'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    line: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split(), app) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(said)


def test_a_named_timeframe_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    hours = BTC.of("binance", "BTC/USDT", "1h")
    store = Store(tmp_path / "data")
    store.append_page(hours, flat(0, 1), span(0, 60), fence=1, known_at=1_000)
    verb = ["missing-report", "--exchange", "binance"]
    assert run([*verb, "--symbols", "BTCUSDT", "--tfs", "1m"], app) == 3
    # What stopped on the first day of 2024 lacks everything since.
    assert run([*verb, "--symbols", "ALL", "--tfs", "1m,1h"], app) == 10


def test_a_reader_takes_exchange_and_place_from_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "collector.yaml").write_text(
        "api: {adapter: binance}\nstorage: {base_dir: lake}\n", encoding="utf-8"
    )
    Store(tmp_path / "lake").append_page(BTC, flat(0, 10), span(0, 10), fence=1, known_at=1_000)
    assert len(DataReader("BTCUSDT", "1m").read()) == 10
    assert len(DataReader("BTC/USDT", "5m", exchange="binance").read()) == 2


def test_progress_shows_jobs_bars_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = io.StringIO()
    terminal = Console(file=seen, force_terminal=True, width=160)
    monkeypatch.setattr(progress, "console", lambda to_stderr: terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    document = {
        "_id": ObjectId(),
        "exchange_id": "simulated",
        "type": "ohlcv_backfill",
        "symbol": "BTC/USDT",
        "timeframe": "1m",
        "status": "active",
        "state": "running",
        "priority": 70,
        "next_run_at": 0,
        "cursor": {"since_ms": at(1_500)},
        "progress": {"from_ms": at(0), "until_ms": at(3_000)},
        "waiting_for": "window",
    }
    with progress.progress_of_jobs() as shown:
        shown([Job.from_document(document)], 0)
    assert "0/1 jobs, waits: window" in seen.getvalue()
    assert "1,500/3,000 bars" in seen.getvalue()
    assert "/s" in seen.getvalue()
