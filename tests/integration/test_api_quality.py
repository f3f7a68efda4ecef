"""What each day lacks, the longest missing ranges with their owners, and stored markets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.durations import DAY_MS
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.pipeline.evidence import Silence
from collector.reports.check import Check
from collector.reports.source_reports import SourceReports
from collector.store.copies import Copies
from collector.store.store import Store
from tests.support.bars import BTC, ETH, at, flat, span
from tests.support.local_api import serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

DAYS, GAPS = "/api/v1/coverage/days", "/api/v1/reports/gaps"
MINUTES = 1440
RANGE = {"start": at(0), "end": at(3 * MINUTES)}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BTC: three days of minutes, 100 of the second missing. ETH: one day, sealed, with copies."""
    root = tmp_path_factory.mktemp("lake")
    store = Store(root, copies=Copies((Timeframe.parse("5m"), Timeframe.parse("1h")), 0))
    for first, count in ((0, MINUTES + 200), (MINUTES + 300, 2 * MINUTES - 300)):
        batch, covered = flat(first, count), span(first, first + count)
        store.append_page(BTC, batch, covered, fence=1, known_at=1_000)
    store.append_page(ETH, flat(0, MINUTES), span(0, MINUTES), fence=1, known_at=1_000)
    store.compact(ETH)
    return root


async def gone(database: Database, *symbols: str) -> None:
    """The markets left after three days, so that nothing is expected later."""
    await database.markets.insert_many(
        [
            {
                "exchange_id": "binance",
                "symbol": symbol,
                "active": False,
                "delisted_at": at(3 * MINUTES),
            }
            for symbol in symbols
        ]
    )


async def test_every_day_has_what_is_expected_and_what_is_missing(
    database: Database, root: Path
) -> None:
    await gone(database, "BTC/USDT", "ETH/USDT")
    async with serving(database, root) as client:
        body = (await client.get(DAYS, params=RANGE)).body
    assert (body["start"], body["end"]) == (at(0), at(3 * MINUTES))
    found = {item["symbol"]: item for item in body["items"]}
    assert found.keys() == {"BTC/USDT", "ETH/USDT"}
    assert {item["timeframe"] for item in body["items"]} == {"1m"}, "copies are no series"
    assert found["BTC/USDT"]["expected"] == [MINUTES] * 3
    assert found["BTC/USDT"]["missing"] == [0, 100, 0]
    assert found["ETH/USDT"]["missing"] == [0, MINUTES, MINUTES]
    assert not found["ETH/USDT"]["damaged"]


async def test_days_come_in_pages_and_by_letters(database: Database, root: Path) -> None:
    await gone(database, "BTC/USDT", "ETH/USDT")
    async with serving(database, root) as client:
        first = (await client.get(DAYS, params={**RANGE, "limit": 1})).body
        assert [item["symbol"] for item in first["items"]] == ["BTC/USDT"]
        asked = {**RANGE, "limit": 1, "cursor": first["next_cursor"]}
        second = (await client.get(DAYS, params=asked)).body
        assert [item["symbol"] for item in second["items"]] == ["ETH/USDT"]
        assert second["next_cursor"] is None
        some = (await client.get(DAYS, params={**RANGE, "search": "ethusdt"})).body
        assert [item["symbol"] for item in some["items"]] == ["ETH/USDT"]
        none = (await client.get(DAYS, params={**RANGE, "timeframe": "1d"})).body
        assert none["items"] == []


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"start": at(0), "end": at(0)}, "end_before_start"),
        ({"start": at(0), "end": at(500 * MINUTES)}, "too_long"),
        ({"cursor": "nonsense"}, "bad_cursor"),
        ({"exchange_id": "nosuch"}, "unknown_exchange"),
    ],
)
async def test_impossible_days_are_refused(
    database: Database, root: Path, asked: dict[str, str], code: str
) -> None:
    async with serving(database, root) as client:
        answer = await client.get(DAYS, params=asked)
    assert (answer.status, answer.code) == (422, code)


async def test_without_a_range_the_last_ninety_days_are_meant(
    database: Database, root: Path
) -> None:
    async with serving(database, root) as client:
        body = (await client.get(DAYS)).body
    now_ms = await database.now_ms()
    assert body["end"] - body["start"] == 90 * DAY_MS
    assert body["start"] < now_ms <= body["end"]
    assert len(body["items"][0]["missing"]) == 90


async def test_missing_ranges_name_the_job_that_fetches_them(
    database: Database, root: Path
) -> None:
    await gone(database, "BTC/USDT", "ETH/USDT")
    cursor = Cursor(since_ms=at(MINUTES + 250), until_ms=at(MINUTES + 280))
    gap = JobSpec("binance", "gap_backfill", "BTC/USDT", "1m", cursor=cursor)
    owner, _ = await JobQueue(database).add(gap)
    async with serving(database, root) as client:
        body = (await client.get(GAPS, params={"search": "btc"})).body
        everything = (await client.get(GAPS)).body
    pieces = [(item["start"], item["end"], item["bars"], item["owner"]) for item in body["items"]]
    job = {"id": str(owner.id), "type": "gap_backfill", "status": "active", "state": "queued"}
    assert pieces == [
        (at(MINUTES + 200), at(MINUTES + 250), 50, None),
        (at(MINUTES + 250), at(MINUTES + 280), 30, job),
        (at(MINUTES + 280), at(MINUTES + 300), 20, None),
    ]
    assert (body["ranges"], body["bars"], body["series"]) == (1, 100, 1)
    assert everything["items"][0]["symbol"] == "ETH/USDT", "the longest first"
    assert (everything["ranges"], everything["series"]) == (2, 2)


async def test_unconfirmed_ranges_are_told_apart_with_the_time_of_the_next_question(
    database: Database, root: Path
) -> None:
    await gone(database, "BTC/USDT", "ETH/USDT")
    now_ms, hole = await database.now_ms(), span(MINUTES + 200, MINUTES + 300)
    due_ms = now_ms + 60_000
    heard = Silence(hole.from_ms, at(MINUTES + 230), 1, now_ms, now_ms, hole.from_ms, due_ms)
    cursor = Cursor(since_ms=hole.from_ms, until_ms=hole.to_ms)
    progress = {"silences": [heard.document()]}
    gap = JobSpec("binance", "gap_backfill", "BTC/USDT", "1m", cursor=cursor, progress=progress)
    await JobQueue(database).add(gap)
    async with serving(database, root) as client:
        body = (await client.get(GAPS, params={"search": "btc"})).body
        [days] = (await client.get(DAYS, params={**RANGE, "search": "btc"})).body["items"]
        reports = {
            name: (await client.get(f"/api/v1/{name}", params={"search": "btc"})).body
            for name in ("coverage", "reports/missing", "reports/validation")
        }
    pieces = [
        (item["start"], item["end"], item["unconfirmed"], item["asked_again"])
        for item in body["items"]
    ]
    assert pieces == [
        (at(MINUTES + 230), at(MINUTES + 300), False, None),
        (at(MINUTES + 200), at(MINUTES + 230), True, due_ms),
    ]
    assert {item["owner"]["type"] for item in body["items"]} == {"gap_backfill"}
    assert (body["ranges"], body["bars"], body["unconfirmed"]) == (2, 70, 30)
    assert (days["missing"], days["unconfirmed"]) == ([0, 70, 0], [0, 30, 0])
    for report in reports.values():
        [item] = report["items"]
        assert item["unconfirmed"] == 30
        assert item.get("missing", item.get("gaps_count")) == 70
        assert item["gaps_pct"] == 70 / (3 * MINUTES)
    summary = reports["reports/missing"]["summary"]
    assert (summary["missing"], summary["unconfirmed"]) == (70, 30)
    [told] = summary["unconfirmed_ranges"]
    assert (told["ts_from"], told["bars"], told["asked_again"]) == (hole.from_ms, 30, due_ms)


async def test_a_damaged_series_is_named_and_counts_as_unknown(
    database: Database, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    store.append_page(ETH, flat(0, 100), span(0, 100), fence=1, known_at=1_000)
    store.compact(ETH)
    (tmp_path / "binance" / "ETH-USDT" / "1m.parquet").write_bytes(b"not parquet at all")
    async with serving(database, tmp_path) as client:
        [item] = (await client.get(DAYS, params=RANGE)).body["items"]
        gaps = (await client.get(GAPS)).body
    assert item["damaged"]
    assert gaps["items"] == []


async def test_stored_markets_have_what_can_be_read(database: Database, root: Path) -> None:
    async with serving(database, root) as client:
        body = (await client.get("/api/v1/series")).body
        btc, eth = body["items"]
        assert (btc["symbol"], btc["timeframes"]) == ("BTC/USDT", ["1m"])
        assert eth["timeframes"] == ["1m", "5m", "1h"]
        assert {"15m", "1d", "1M"} < set(eth["made"])
        assert (btc["first_ts"], btc["end_ts"]) == (at(0), at(3 * MINUTES))
        page = (await client.get("/api/v1/series", params={"limit": 1})).body
        asked = {"limit": 1, "cursor": page["next_cursor"]}
        rest = (await client.get("/api/v1/series", params=asked)).body
        assert [item["symbol"] for item in rest["items"]] == ["ETH/USDT"]
        one = (await client.get("/api/v1/series", params={"search": "eth usdt"})).body
        assert [item["symbol"] for item in one["items"]] == ["ETH/USDT"]


async def test_the_newest_source_check_comes_first(database: Database, root: Path) -> None:
    reports = SourceReports(database)
    await reports.write(BTC, Check(), compared=200)
    await reports.write(Series.of("binance", "ETH/USDT", "1m"), Check(), compared=7)
    async with serving(database, root) as client:
        body = (await client.get("/api/v1/reports/source")).body
    assert {item["symbol"] for item in body["items"]} == {"BTC/USDT", "ETH/USDT"}
    moments = [item["checked_at"] for item in body["items"]]
    assert moments == sorted(moments, reverse=True)
    assert {item["ok"] for item in body["items"]} == {True}
