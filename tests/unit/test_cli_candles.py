"""`collector read` and `collector export` on a lake of a few hours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from collector.cli.main import run
from collector.market.candles import CANDLE_SCHEMA
from collector.store.store import Store
from tests.support.bars import BTC, at, bars, span

if TYPE_CHECKING:
    from pathlib import Path

SERIES = ["binance", "BTC/USDT", "1m"]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four hours; half past every hour a minute without trade."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.delenv("COLLECTOR_DATA", raising=False)
    prices = {slot: 100.0 + slot for slot in range(240) if slot % 60 != 30}
    Store(tmp_path / "data").append_page(BTC, bars(prices), span(0, 240), fence=1, known_at=1)
    return tmp_path


def read_json(capsys: pytest.CaptureFixture[str], *options: str) -> list[list[object]]:
    assert run(["read", *SERIES, *options, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["columns"] == CANDLE_SCHEMA.names
    rows: list[list[object]] = answer["rows"]
    return rows


def times(rows: list[list[object]]) -> list[object]:
    return [row[0] for row in rows]


def test_read_shows_the_newest_bars_or_those_from_a_start_on(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert times(read_json(capsys, "--limit", "2")) == [at(238), at(239)]
    early = read_json(capsys, "--start", "2024-01-01T00:29Z", "--limit", "3")
    assert times(early) == [at(29), at(30), at(31)]
    ended = read_json(capsys, "--end", "2024-01-01T01:00Z", "--limit", "1")
    assert times(ended) == [at(59)]


def test_gaps_can_be_left_out_and_are_named(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = read_json(capsys, "--end", str(at(33)), "--gaps", "omit", "--limit", "4")
    assert times(few) == [at(28), at(29), at(31), at(32)]
    assert len(read_json(capsys, "--gaps", "omit", "--limit", "1000")) == 236
    assert run(["read", *SERIES, "--start", str(at(30)), "--limit", "1"]) == 0
    shown = capsys.readouterr().out
    assert "2024-01-01 00:30:00" in shown
    assert "no_trade" in shown


def test_a_timeframe_that_is_not_stored_is_made(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["read", "binance", "BTC/USDT", "1h", "--json"]) == 0
    assert [row[0] for row in json.loads(capsys.readouterr().out)["rows"]] == [
        at(hour * 60) for hour in range(4)
    ]


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (("binance", "BTC/USTD", "1m"), "did you mean BTC/USDT?"),
        (("binanse", "BTC/USDT", "1m"), "did you mean binance?"),
    ],
)
def test_what_is_not_stored_is_not_found(
    lake: Path, capsys: pytest.CaptureFixture[str], series: tuple[str, ...], words: str
) -> None:
    assert run(["read", *series]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("E_API: nothing is stored for ")
    assert words in err


def test_an_empty_range_is_said_in_words(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["read", *SERIES, "--start", "2025-01-01"]) == 0
    assert capsys.readouterr().out == "no bars in this range\n"
    assert run(["read", *SERIES, "--start", "2025-01-02", "--end", "2025-01-01"]) == 2


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_every_form_holds_the_same_rows(
    lake: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    out = lake / f"bars.{form}"
    assert run(["export", *SERIES, "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"out": str(out), "format": form, "rows": 240, "bytes": out.stat().st_size}
    if form == "csv":
        assert out.read_text().splitlines()[0] == ",".join(CANDLE_SCHEMA.names)
        found = pa.csv.read_csv(out)
    elif form == "parquet":
        found = pa.parquet.read_table(out)
    else:
        found = pa.ipc.open_file(out).read_all()
    assert found["ts"].to_pylist() == [at(slot) for slot in range(240)]
    assert found["c"][5].as_py() == 106.0


def test_a_file_is_replaced_only_by_force_and_never_left_half(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = lake / "bars.csv"
    out.write_text("mine")
    assert run(["export", *SERIES, "--out", str(out)]) == 7
    assert "E_WRITE: " in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert run(["export", *SERIES, "--out", str(out), "--force"]) == 0
    assert "240 bars in" in capsys.readouterr().out
    assert run(["export", *SERIES, "--out", str(lake / "no" / "where.csv")]) == 7
    assert capsys.readouterr().err.count("\n") == 1
    assert {path.name for path in lake.iterdir()} == {"bars.csv", "data"}


def test_csv_goes_to_standard_output_for_a_pipe(
    lake: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["export", *SERIES, "--out", "-", "--format", "csv", "--end", str(at(2))]) == 0
    out, err = capfdbinary.readouterr()
    assert out.count(b"\n") == 3
    assert err == b"2 bars\n"
    assert run(["export", *SERIES, "--out", "-", "--format", "csv", "--json"]) == 2


def test_the_older_names_of_the_ends_mean_the_same(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = ("2024-01-01T01:00Z", "2024-01-01T01:02Z")
    new = read_json(capsys, "--since", ends[0], "--until", ends[1])
    assert [row[0] for row in new] == [at(60), at(61)]
    assert read_json(capsys, "--start", ends[0], "--end", ends[1]) == new
    assert read_json(capsys, f"--start={ends[0]}", f"--end={ends[1]}") == new
