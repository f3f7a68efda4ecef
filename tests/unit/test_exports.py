"""Files for freqtrade and Nautilus, against what these programs' own files were seen to be.

`python -m tests.bench exports` has the programs themselves read them.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.errors import DataInvalid, InvalidInput, NotStored, StoreError
from collector.market.interval import Interval
from collector.market.series import Series
from collector.operations.exports import fixed_point, freqtrade, nautilus
from collector.operations.exports.nautilus import Target
from collector.reader import CandleReader
from collector.store.store import Store
from tests.support.bars import BTC, MINUTE, T0, CandleBatch, bars
from tests.support.verbs import run_here

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FREQTRADE = {
    "BTC/USDT 1m": "BTC_USDT-1m.feather",
    "BTC/USDT 1M": "BTC_USDT-1Mo.feather",
    "BTC/USDT:USDT 1h": "futures/BTC_USDT_USDT-1h-futures.feather",
    "A.B/C$ 5m": "A_B_C_-5m.feather",
}
"""Names as freqtrade 2026.9 gave them to files that it stored."""
NAUTILUS_PRICES = {
    # 100.12 and 101.50, and a volume of 1.234567, as nautilus_trader 1.231.0 stored them.
    100.12: "00001f6d18fae40d0000000000000000",
    101.5: "0080054f1f01160e0000000000000000",
    1.234567: "003cdd4a52dc2b000000000000000000",
}
ONE_MINUTE = "BTCUSDT.BINANCE-1-MINUTE-LAST-EXTERNAL"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Ten minutes, of which the fourth had no trade and the seventh is missing."""
    store = Store(tmp_path / "data")
    prices = {slot: 100.25 + slot for slot in range(10) if slot not in (3, 6)}
    whole = Interval(T0, T0 + 10 * MINUTE)
    known = CandleBatch.of(list(zip(*_columns(prices), strict=True)))
    before, behind = (
        Interval(whole.from_ms, T0 + 6 * MINUTE),
        Interval(T0 + 7 * MINUTE, whole.to_ms),
    )
    for part in (before, behind):
        inside = known.take((known.ts >= part.from_ms) & (known.ts < part.to_ms))
        store.append_page(BTC, inside, part, fence=1, known_at=1)
    return tmp_path / "data"


def _columns(prices: dict[int, float]) -> Iterator[list[float]]:
    made = bars(prices)
    yield from (made.ts.tolist(), made.o.tolist(), made.h.tolist(), made.l.tolist())
    yield from (made.c.tolist(), made.v.tolist())


def batches(lake: Path) -> Iterator[pa.RecordBatch]:
    return CandleReader("BTC/USDT", "1m", "binance", lake).batches(gaps="omit")


@pytest.mark.parametrize(("series", "name"), FREQTRADE.items())
def test_freqtrade_finds_the_file_by_its_name(series: str, name: str) -> None:
    symbol, _, timeframe = series.rpartition(" ")
    assert str(freqtrade.file_name(Series.of("binance", symbol, timeframe))) == name


def test_freqtrade_reads_the_columns_it_writes(lake: Path, tmp_path: Path) -> None:
    made = freqtrade.export(BTC, batches(lake), tmp_path / "binance")
    assert (made.rows, made.path.name) == (8, "BTC_USDT-1m.feather")
    with pa.ipc.open_file(made.path) as file:
        table = file.read_all()
    assert [(each.name, str(each.type)) for each in table.schema] == [
        ("date", "timestamp[us, tz=UTC]"),
        *((name, "double") for name in ("open", "high", "low", "close", "volume")),
    ]
    first, last = table.slice(0, 1).to_pylist()[0], table.slice(7).to_pylist()[0]
    assert first["date"].isoformat() == "2024-01-01T00:00:00+00:00"
    assert (first["open"], first["high"], first["volume"]) == (100.25, 102.25, 1002.5)
    assert last["date"].isoformat() == "2024-01-01T00:09:00+00:00"
    with pytest.raises(StoreError, match="is there already"):
        freqtrade.export(BTC, batches(lake), tmp_path / "binance")
    assert freqtrade.export(BTC, batches(lake), tmp_path / "binance", force=True).rows == 8
    assert [each.name for each in (tmp_path / "binance").iterdir()] == ["BTC_USDT-1m.feather"]


def test_an_empty_range_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotStored, match="no bars in this range"):
        freqtrade.export(BTC, [], tmp_path / "binance")
    with pytest.raises(NotStored, match="no bars in this range"):
        nautilus.export(BTC, [], tmp_path / "catalog", Target.of(BTC))
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_nautilus_finds_schema_metadata_and_interval(lake: Path, tmp_path: Path) -> None:
    made = nautilus.export(BTC, batches(lake), tmp_path, Target.of(BTC))
    assert made.path.relative_to(tmp_path).as_posix() == (
        f"data/bar/{ONE_MINUTE}/"
        "2024-01-01T00-01-00-000000000Z_2024-01-01T00-10-00-000000000Z.parquet"
    )
    schema = pq.read_schema(made.path)
    assert [(each.name, str(each.type), each.nullable) for each in schema] == [
        *((n, "fixed_size_binary[16]", False) for n in ("open", "high", "low", "close", "volume")),
        ("ts_event", "uint64", False),
        ("ts_init", "uint64", False),
    ]
    assert schema.metadata == {
        b"bar_type": ONE_MINUTE.encode(),
        b"instrument_id": b"BTCUSDT.BINANCE",
        b"price_precision": b"2",
        b"size_precision": b"1",
    }
    table = pq.read_table(made.path)
    assert table["ts_init"].to_pylist() == table["ts_event"].to_pylist()
    closes = [(T0 + (slot + 1) * MINUTE) * 1_000_000 for slot in (0, 1, 2, 4, 5, 7, 8, 9)]
    assert table["ts_event"].to_pylist() == closes, "a bar is dated by its close"
    assert int.from_bytes(table["open"][0].as_py(), "little") == 10025 * 10**14


@pytest.mark.parametrize(("value", "stored"), NAUTILUS_PRICES.items())
def test_numbers_are_stored_as_nautilus_stores_them(value: float, stored: str) -> None:
    values = np.array([value])
    [raw] = fixed_point.raw(values, fixed_point.decimals_of(values)).to_pylist()
    assert raw.hex() == stored


@given(
    st.lists(
        st.tuples(st.integers(0, 10**15 - 1), st.integers(0, 16)).filter(
            lambda each: each[0] // 10 ** each[1] <= 17_014_118_346_046
        ),
        min_size=1,
    )
)
def test_a_decimal_of_15_digits_is_stored_exactly_or_to_what_a_double_holds(
    given: list[tuple[int, int]],
) -> None:
    exact = [Decimal(digits).scaleb(-places) for digits, places in given]
    values = np.array([float(each) for each in exact])
    decimals = fixed_point.decimals_of(values)
    assert decimals <= max(places for _, places in given)
    for value, stored in zip(exact, fixed_point.raw(values, decimals).to_pylist(), strict=True):
        number = Decimal(int.from_bytes(stored, "little")).scaleb(-16)
        assert abs(number - value) <= value * Decimal("5e-16"), (number, value, decimals)
        with localcontext(prec=40):  # 10^12 with 16 decimals are more digits than the usual 28.
            assert number.scaleb(decimals) % 1 == 0, "no digits behind its precision"


def test_noise_of_sums_is_no_precision() -> None:
    assert fixed_point.decimals_of(np.array([0.1 + 0.2, 1.1 * 3])) == 1
    assert fixed_point.decimals_of(np.array([5.0, 1e12])) == 0
    assert fixed_point.decimals_of(np.array([1e-8])) == 8


def test_a_given_precision_is_kept(lake: Path, tmp_path: Path) -> None:
    target = Target.of(BTC, price_digits=4, size_digits=8)
    made = nautilus.export(BTC, batches(lake), tmp_path, target)
    metadata = pq.read_schema(made.path).metadata
    assert (metadata[b"price_precision"], metadata[b"size_precision"]) == (b"4", b"8")


@pytest.mark.parametrize("digits", [{"price_digits": 1}, {"size_digits": 0}])
def test_a_precision_that_would_round_is_refused(
    lake: Path, tmp_path: Path, digits: dict[str, int]
) -> None:
    (field, few), *_ = digits.items()
    with pytest.raises(InvalidInput, match=f"have more than {few} decimals") as refused:
        nautilus.export(BTC, batches(lake), tmp_path / "catalog", Target("BTC.X", **digits))
    assert refused.value.field == field.replace("digits", "precision")
    assert not [*(tmp_path / "catalog").rglob("*.parquet")]


def test_every_contract_of_a_pair_is_an_instrument_of_its_own() -> None:
    names = {
        "BTC/USDT": "BTCUSDT",
        "BTC/USDT:USDT": "BTCUSDT-PERP",
        "BTC/USDT:USDT-261225": "BTCUSDT-261225",
        "BTC/USDT:USDT-270326": "BTCUSDT-270326",
        "BTC/USDT:USDT-261225-100000-C": "BTCUSDT-261225-100000-C",
        "BTC/USDT:USDT-261225-100000-P": "BTCUSDT-261225-100000-P",
        "XRP/USDT:USDT-261225-0.55-C": "XRPUSDT-261225-0.55-C",
        "BTC/USD:USD": "BTCUSD-PERP",
        "BTC/USD:BTC": "BTCUSD-BTC-PERP",
        "BTC/USD:BTC-261225": "BTCUSD-BTC-261225",
    }
    series = {symbol: Series.of("binance", symbol, "1m") for symbol in names}
    made = {symbol: Target.of(each).instrument for symbol, each in series.items()}
    assert made == {symbol: f"{name}.BINANCE" for symbol, name in names.items()}


def test_two_files_of_a_catalog_never_overlap(lake: Path, tmp_path: Path) -> None:
    reader = CandleReader("BTC/USDT", "1m", "binance", lake)

    def part(first: int, end: int, *, force: bool = False) -> str:
        rows = reader.batches(T0 + first * MINUTE, T0 + end * MINUTE, gaps="omit")
        return nautilus.export(BTC, rows, tmp_path, Target.of(BTC), force=force).path.name

    names = {part(0, 3), part(7, 10)}
    with pytest.raises(StoreError, match="overlaps the new file"):
        part(2, 6, force=True)
    with pytest.raises(StoreError, match="is there already"):
        part(0, 3)
    folder = tmp_path / "data" / "bar" / ONE_MINUTE
    assert {each.name for each in folder.iterdir()} == names
    whole = part(0, 10, force=True)
    assert {each.name for each in folder.iterdir()} == {whole}


@pytest.mark.parametrize(
    ("symbol", "timeframe", "expected"),
    [
        ("BTC/USDT", "15m", "BTCUSDT.BINANCE-15-MINUTE-LAST-EXTERNAL"),
        ("BTC/USDT:USDT", "4h", "BTCUSDT-PERP.BINANCE-4-HOUR-LAST-EXTERNAL"),
        ("BTC/USDT", "1M", "BTCUSDT.BINANCE-1-MONTH-LAST-EXTERNAL"),
        ("BTC/USDT", "3d", "BTCUSDT.BINANCE-3-DAY-LAST-EXTERNAL"),
    ],
)
def test_bar_types_are_spelt_as_nautilus_does(symbol: str, timeframe: str, expected: str) -> None:
    series = Series.of("binance", symbol, timeframe)
    assert nautilus.bar_type(Target.of(series).instrument, series.timeframe) == expected


@pytest.mark.parametrize("timeframe", ["7m", "60m", "5h", "24h", "5M"])
def test_bars_that_nautilus_does_not_have_are_refused(timeframe: str) -> None:
    series = Series.of("binance", "BTC/USDT", timeframe)
    with pytest.raises(InvalidInput, match="no bars of"):
        nautilus.bar_type("BTCUSDT.BINANCE", series.timeframe)


@pytest.mark.parametrize("instrument", ["BTCUSDT", "../up.V", "A/B.V", "a b.V"])
def test_what_cannot_be_an_instrument_is_refused(instrument: str) -> None:
    with pytest.raises(InvalidInput, match="not an instrument"):
        Target(instrument)


def test_a_volume_that_its_numbers_cannot_hold_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    huge = CandleBatch.of([(T0, 1.0, 1.0, 1.0, 1.0, 4e13)])
    store.append_page(BTC, huge, Interval(T0, T0 + MINUTE), fence=1, known_at=1)
    with pytest.raises(DataInvalid, match="a volume that"):
        nautilus.export(BTC, batches(tmp_path / "data"), tmp_path / "catalog", Target.of(BTC))


@pytest.mark.parametrize("form", ["freqtrade", "nautilus"])
async def test_the_verb_writes_into_the_other_programs_folder(
    form: str, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_DATA", str(lake))
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    line = ("export", "binance", "BTC/USDT", "1m", "--format", form, "--out", "there", "--json")
    facts = (await run_here(*line)).facts
    assert (facts["format"], facts["rows"]) == (form, 8)
    assert (tmp_path / facts["out"]).stat().st_size == facts["bytes"]
    again = await run_here(*line)
    assert (again.code, "use --force" in again.err) == (7, True)
    for wrong, words in (
        (("--gaps", "include"), "no rows for slots"),
        (("--out", "-"), "is a folder"),
    ):
        refused = await run_here(*line, *wrong)
        assert (refused.code, words in refused.err) == (2, True)


async def test_options_of_nautilus_are_refused_elsewhere(tmp_path: Path) -> None:
    series = ("binance", "BTC/USDT", "1m")
    refused = await run_here("export", *series, "--out", "a.csv", "--instrument", "BTCUSDT.BINANCE")
    assert (refused.code, "--format nautilus" in refused.err) == (2, True)
