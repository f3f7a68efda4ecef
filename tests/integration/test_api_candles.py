"""Candles through REST: every format, streamed."""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from collector.market import extra
from collector.market.candles import CANDLE_SCHEMA, CandleBatch
from collector.market.series import Series
from collector.store.store import Store
from tests.integration.draining import drained
from tests.integration.tables import both_tables
from tests.support.bars import BTC, MINUTE, T0, at, bars, span
from tests.support.local_api import know_markets, serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.local_api import Client

URL = "/api/v1/candles"
ASKED = {"exchange_id": "binance", "symbol": "BTC/USDT", "timeframe": "1m"}
LONG = Series.of("binance", "LONG/USDT", "1m")
LONG_BARS = 800_000
PAGE = 50_000
ROOM_BYTES = 40 * 1024 * 1024
"""Measured: 17 and 21 MB. The csv alone has 43 MB, the json's rows as objects have more."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten minutes with a hole in it, and a series of two years."""
    root = tmp_path_factory.mktemp("lake")
    store = Store(root)
    prices = {n: 100.0 + n for n in range(10) if n != 4}
    store.append_page(BTC, bars(prices), span(0, 10), fence=1, known_at=1_000)
    for first in range(0, LONG_BARS, PAGE):
        ts = T0 + (first + np.arange(PAGE)) * MINUTE
        columns = [ts.astype(float), *(np.full(PAGE, 1.5) for _ in range(6))]
        batch = CandleBatch.of_columns(np.column_stack(columns))
        store.append_page(LONG, batch, span(first, first + PAGE), fence=1, known_at=1_000)
    store.compact(LONG)
    return root


async def test_json_has_columns_and_rows(client: Client) -> None:
    body = (await client.get(URL, params=ASKED)).body
    assert body["columns"] == CANDLE_SCHEMA.names
    assert [row[0] for row in body["rows"]] == [at(n) for n in range(10)]
    assert body["rows"][0][:7] == [at(0), 100.0, 102.0, 99.0, 101.0, 1000.0, 10000.0]
    gap = dict(zip(body["columns"], body["rows"][4], strict=True))
    assert (gap["is_gap"], gap["gap_reason"], gap["v"]) == (True, "no_trade", 0.0)


async def test_further_columns_follow_the_public_ones(
    client: Client, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extra, "EXTRA_COLUMNS", {"binance": ("ask_o",)})
    sol = Series.of("binance", "SOL/USDT", "1m")
    batch = bars({0: 5.0, 1: 6.0}).with_extra({"ask_o": np.array([5.5, np.nan])})
    Store(root).append_page(sol, batch, span(0, 2), fence=1, known_at=1_000)
    asked = {**ASKED, "symbol": "SOL/USDT"}
    body = (await client.get(URL, params=asked)).body
    assert body["columns"] == [*CANDLE_SCHEMA.names, "ask_o"]
    assert [row[-1] for row in body["rows"]] == [5.5, None]
    answer = await client.get(URL, params={**asked, "format": "csv"})
    rows = list(csv.reader(io.StringIO(answer.body)))
    assert [row[-1] for row in rows] == ["ask_o", "5.5", ""]
    arrow, packed = await both_tables(client, URL, asked)
    assert arrow.equals(packed)
    assert arrow["ask_o"].to_pylist() == [5.5, None]


async def test_csv_has_the_parquet_columns_as_header(client: Client) -> None:
    answer = await client.get(URL, params={**ASKED, "format": "csv", "gaps": "omit"})
    assert answer.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.reader(io.StringIO(answer.body)))
    assert rows[0] == CANDLE_SCHEMA.names
    assert [int(row[0]) for row in rows[1:]] == [at(n) for n in range(10) if n != 4]


async def test_arrow_and_parquet_hold_the_same_table(client: Client) -> None:
    arrow, packed = await both_tables(client, URL, ASKED)
    assert arrow.schema == CANDLE_SCHEMA
    assert arrow.equals(packed)
    assert arrow.num_rows == 10


@pytest.mark.parametrize(
    ("start", "end"), [(str(at(2)), str(at(5))), ("2024-01-01T00:02", "2024-01-01T00:05:00Z")]
)
async def test_ranges_are_epoch_ms_or_iso(client: Client, start: str, end: str) -> None:
    body = (await client.get(URL, params={**ASKED, "start": start, "end": end})).body
    assert [row[0] for row in body["rows"]] == [at(2), at(3), at(4)]


async def test_as_of_tells_what_was_known(client: Client) -> None:
    early = await client.get(URL, params={**ASKED, "as_of": "1970-01-01T00:00:00.010Z"})
    assert early.body["rows"] == []
    later = await client.get(URL, params={**ASKED, "as_of": "1970-01-01T00:00:02Z"})
    assert len(later.body["rows"]) == 10


async def test_a_series_without_bars_is_empty_and_an_unknown_one_is_refused(
    client: Client,
) -> None:
    asked = {**ASKED, "exchange_id": "bybit", "format": "csv"}
    for symbol in ("BTC/USDT", "BTC/USDX"):
        # Neither stored nor known to be listed: an empty answer would be a guess.
        refused = await client.get(URL, params={**asked, "symbol": symbol})
        assert (refused.status, refused.code) == (422, "unknown_symbol")
    await know_markets(client.services.database, "bybit")
    assert (await client.get(URL, params=asked)).body == ",".join(CANDLE_SCHEMA.names) + "\n"
    empty = await client.get(URL, params={**asked, "format": "json"})
    assert empty.body == {"columns": CANDLE_SCHEMA.names, "rows": []}
    refused = await client.get(URL, params={**asked, "symbol": "BTC/USDX"})
    assert (refused.status, refused.code) == (422, "unknown_symbol")
    assert "BTC/USDT" in refused.body["errors"][0]["near"]
    misspelt = await client.get(URL, params={**ASKED, "symbol": "BTC/USTD"})
    assert (misspelt.status, misspelt.code) == (422, "unknown_symbol")
    assert misspelt.body["errors"][0]["near"][0] == "BTC/USDT"


@pytest.mark.parametrize(("form", "bars_asked"), [("csv", LONG_BARS), ("json", 200_000)])
async def test_a_long_range_is_streamed_in_bounded_memory(
    client: Client, form: str, bars_asked: int
) -> None:
    asked = {**ASKED, "symbol": "LONG/USDT", "format": form, "end": str(at(bars_asked))}
    found = await drained(client, URL, asked)
    assert found.rows >= bars_asked - 1000
    assert found.size > 40 * bars_asked
    assert found.peak < ROOM_BYTES, f"{found.peak / 2**20:.0f} MB"


async def test_a_reader_that_leaves_ends_the_stream(client: Client) -> None:
    asked = {**ASKED, "symbol": "LONG/USDT", "format": "csv"}
    async with client.session.get(URL, params=asked) as response:
        await response.content.readline()
        response.close()
    async with asyncio.timeout(120):
        assert (await client.get("/healthz")).status == 200


async def test_a_damaged_file_is_a_problem_and_not_half_an_answer(
    database: Database, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    store.append_page(BTC, bars({0: 1.0}), span(0, 1), fence=1, known_at=1_000)
    store.compact(BTC)
    sealed = next(tmp_path.rglob("1m.parquet"))
    sealed.write_bytes(b"PAR1 this is not Parquet PAR1")
    async with serving(database, tmp_path) as client:
        answer = await client.get(URL, params=ASKED)
    assert (answer.status, answer.code) == (500, "store_error")
    assert str(tmp_path) not in str(answer.body)


async def test_rows_are_limited_named_and_compressed(client: Client) -> None:
    whole = await client.get(URL, params=ASKED, headers={"Accept-Encoding": "gzip"})
    assert whole.headers["Content-Encoding"] == "gzip"
    name = f"{ASKED['exchange_id']}-BTC-USDT-1m.json"
    assert f'filename="{name}"' in whole.headers["Content-Disposition"]
    few = await client.get(URL, params={**ASKED, "limit": "3"})
    assert few.body["rows"] == whole.body["rows"][:3]
    plain = await client.get(URL, params=ASKED, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    assert plain.body == whole.body


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, zstd", "zstd"),
        ("zstd;q=0.5, gzip", "gzip"),
        ("*", "zstd"),
        ("zstd;q=0", None),
        ("br", None),
    ],
)
@pytest.mark.parametrize("form", ["csv", "json", "arrow", "parquet"])
async def test_rows_come_in_the_best_coding_that_is_accepted(
    client: Client, form: str, accepted: str, coding: str | None
) -> None:
    contents = {}
    for given in (accepted, "identity"):
        async with client.session.get(
            URL,
            params={**ASKED, "format": form},
            headers={"Accept-Encoding": given},
            auto_decompress=False,
        ) as response:
            contents[given] = await response.read()
            if given == accepted:
                found = response.headers.get("Content-Encoding")
            assert response.headers["Vary"] == "Accept-Encoding"
    assert found == (None if form == "parquet" else coding)
    packed = contents[accepted]
    if found == "zstd":
        packed = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read()
    elif found == "gzip":
        packed = gzip.decompress(packed)
    assert packed == contents["identity"]


async def test_the_newest_rows_instead_of_the_first(client: Client) -> None:
    newest = await client.get(URL, params={**ASKED, "newest": "true", "limit": "3"})
    assert [row[0] for row in newest.body["rows"]] == [at(7), at(8), at(9)]
    end = {"end": str(at(6)), "gaps": "omit"}
    bars = await client.get(URL, params={**ASKED, **end, "newest": "true", "limit": "3"})
    assert [row[0] for row in bars.body["rows"]] == [at(2), at(3), at(5)]
    assert (await client.get(URL, params={**ASKED, "newest": "true"})).code == "missing"


async def test_the_headers_say_what_is_stored(client: Client) -> None:
    some = await client.get(URL, params={**ASKED, "start": str(at(3)), "limit": "1"})
    assert some.headers["X-Stored-From"] == str(at(0))
    assert some.headers["X-Stored-To"] == str(at(10))
    short = await client.get(URL, params={**ASKED, "symbol": "BTCUSDT", "limit": "1"})
    assert short.body["rows"][0][0] == at(0)
