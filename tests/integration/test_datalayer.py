"""`datalayer` as a script sees it, and its functions as a notebook sees them."""

from __future__ import annotations

import asyncio
import csv
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from prometheus_client import REGISTRY

import datalayer
from collector.clock import SystemClock
from collector.jobs.gap_jobs import gap_jobs
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.pipeline.evidence import Silence
from collector.simulated.faults.catalogue import parse_faults
from tests.support.bars import at, flat, span
from tests.support.datalayer_stage import BTC, DAYS, Stage
from tests.support.local_collector import DAY, MINUTE


async def test_backfill_resample_validate_and_report(stage: Stage) -> None:
    made = (await stage.run("backfill --symbols ETHUSDT,BTC/USDT --json")).facts
    assert made["worker_started"] is False, "somebody works already"
    assert [each["symbol"] for each in made["series"]] == ["BTC/USDT", "ETH/USDT"]
    for each in made["series"]:
        assert each["first_ts"] == stage.first_ms
        assert each["missing"] == 0
        assert each["bars"] >= DAYS * 1440

    again = stage.klines()
    repeated = (await stage.run("backfill --symbols BTCUSDT,ETHUSDT --json")).facts
    assert len(repeated["series"]) == 2
    assert stage.klines() - again < 10, "what is there was fetched again"

    tfs = "--tfs 1m,5m,15m,1h"
    await stage.run("resample --symbols BTCUSDT,ETHUSDT --tfs 5m,15m,1h --json")
    folder = stage.root / "data" / "simulated" / "BTC-USDT"
    assert {f"{tf}.parquet" for tf in ("1m", "5m", "15m", "1h")} <= {
        p.name for p in folder.iterdir()
    }

    checked = await stage.run(f"validate --symbols ALL {tfs} --out reports/validate.json --json")
    report = json.loads((stage.root / "reports" / "validate.json").read_text())
    assert checked.facts["summary"] == report["summary"]
    assert report["summary"]["ok"] is True
    assert report["summary"]["bars_compared"] == 400
    assert [(each["symbol"], each["tf"]) for each in report["series"]] == [
        (symbol, tf) for symbol in ("BTC/USDT", "ETH/USDT") for tf in ("1m", "5m", "15m", "1h")
    ]
    minutes, fives = report["series"][:2]
    assert {"source", "clock"} <= set(minutes["checks"])
    assert minutes["checks"]["source"]["ok"]
    assert fives["checks"]["volume_sum"]["ok"]

    reported = await stage.run(f"missing-report --symbols ALL {tfs} --out reports/missing.csv")
    assert (reported.code, reported.err) == (0, "")
    with (stage.root / "reports" / "missing.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert {row["gaps_count"] for row in rows} == {"0"}
    assert {row["exchange"] for row in rows} == {"simulated"}


async def test_history_is_extended_and_mended(stage: Stage) -> None:
    late = (await stage.run(f"backfill --symbols BTCUSDT --since {stage.day(2)} --json")).facts
    assert late["series"][0]["first_ts"] == stage.first_ms + 2 * DAY
    before = stage.klines()
    early = (await stage.run(f"backfill --symbols BTCUSDT --since {stage.day(1)} --json")).facts
    assert early["series"][0]["first_ts"] == stage.first_ms + DAY
    assert early["series"][0]["missing"] == 0
    assert stage.klines() - before <= 10, "more was fetched than was missing"

    # As if a worker had stored an hour and lost what lies behind it.
    hour = Interval(stage.first_ms, stage.first_ms + 60 * MINUTE)
    stage.keep(CandleBatch.of(stage.collecting.truth(hour.from_ms, hour.to_ms)), hour)
    missing = await stage.run("missing-report --symbols BTCUSDT --tfs 1m")
    assert missing.code == 10
    assert "gaps_over_limit" in missing.err
    assert missing.err.splitlines()[-1].startswith("E_GAPS: simulated BTC/USDT 1m lacks 1,380 of")
    summary = json.loads((stage.root / "reports" / "missing.summary.json").read_text())
    assert summary["worst"][0]["bars"] == 1440 - 60
    failed = await stage.run("validate --symbols BTCUSDT --tfs 1m --samples 0 --json")
    assert failed.code == 10
    [series] = json.loads(failed.out)["series"]
    assert [name for name, check in series["checks"].items() if not check["ok"]] == ["calendar"]

    mended = (await stage.run("backfill --symbols BTCUSDT --json")).facts
    assert mended["series"][0]["first_ts"] == stage.first_ms
    assert mended["series"][0]["missing"] == 0

    queue = stage.collecting.queue
    [job] = await queue.find({"type": "ohlcv_incremental", "exchange_id": "simulated"})
    await queue.pause(job.id)
    refused = await stage.run("backfill --symbols BTCUSDT")
    assert refused.code == 3
    assert f"collector job resume {job.id}" in refused.err


async def test_unconfirmed_slots_are_not_waited_for_and_are_counted(stage: Stage) -> None:
    """A gap job has heard that forty minutes are empty, and asks again in an hour."""
    await stage.run(f"backfill --symbols BTCUSDT --since {stage.day(1)} --json")
    store, database = stage.collecting.store, stage.collecting.database
    begin, covered = stage.first_ms + DAY, store.covered(BTC)
    hole = Interval(begin + DAY, begin + DAY + 40 * MINUTE)
    parts = [Interval(begin, hole.from_ms), Interval(hole.to_ms, covered[-1].to_ms)]
    kept = [CandleBatch.from_arrow(store.rows(BTC, each.from_ms, each.to_ms)) for each in parts]
    for path in stage.root.joinpath("data").rglob("*.parquet"):
        path.unlink()
    for batch, stretch in zip(kept, parts, strict=True):
        stage.keep(batch, stretch)
    now_ms = await database.now_ms()
    due_ms = now_ms + 3_600_000
    heard = Silence(hole.from_ms, hole.to_ms, 1, now_ms, now_ms, hole.from_ms, due_ms)
    [spec] = gap_jobs(BTC, [hole], silences=[heard])
    await stage.collecting.queue.add(spec)
    line = f"backfill --symbols BTCUSDT --since {stage.day(1)}"
    made = await stage.run(f"{line} --json")
    [series] = made.facts["series"]
    assert (series["missing"], series["unconfirmed"]) == (0, 40)
    assert "40 slots are unconfirmed" in made.err
    assert "40" in (await stage.run(line)).out
    [job] = await stage.collecting.queue.find({"type": "gap_backfill"})
    assert (job.next_run_at, job.document["stats"]["runs"]) == (due_ms, 0)
    reported = await stage.run("missing-report --symbols BTCUSDT --tfs 1m,5m")
    assert (reported.code, "unconfirmed, asked again at" in reported.out) == (0, True)


async def test_what_was_asked_for_and_is_lost_is_told(stage: Stage) -> None:
    """The first two days are lost; the job that fetched them remembers where it began."""
    await stage.run(f"backfill --symbols BTCUSDT --since {stage.day(0)} --json")
    [job] = await stage.collecting.queue.find({"type": "ohlcv_incremental"})
    await stage.collecting.queue.pause(job.id)
    store = stage.collecting.store
    end_ms = store.cursor(BTC).until_ms
    rest = Interval(stage.first_ms + 2 * DAY, end_ms)
    kept = CandleBatch.from_arrow(store.rows(BTC, rest.from_ms, rest.to_ms))
    for path in stage.root.joinpath("data").rglob("*.parquet"):
        path.unlink()
    stage.keep(kept, rest)
    reported = await stage.run("missing-report --symbols BTCUSDT --tfs 1m,5m --json")
    assert reported.code == 10
    assert "at its head) and 1 more series" in reported.err.splitlines()[-1]
    minutes, fives = json.loads(reported.out)["rows"]
    assert (minutes["ts_from"], minutes["head_missing"]) == (stage.first_ms, 2 * 1440)
    assert fives["head_missing"] == 2 * 288
    checked = await stage.run("validate --symbols BTCUSDT --tfs 1m --samples 0 --json")
    assert checked.code == 10
    [series] = json.loads(checked.out)["series"]
    assert (series["head_missing"], series["rows"] < series["expected"]) == (2 * 1440, True)


async def test_without_a_database_calendars_begin_where_files_do(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.keep(flat(0, 5), span(0, 5))
    # One that nobody has migrated, and then none at all.
    monkeypatch.setenv("COLLECTOR_MONGO_DB", "nobodys")
    for _ in range(2):
        reported = await stage.run("missing-report --symbols BTCUSDT --tfs 1m --json")
        assert reported.code == 10
        assert "calendars begin where files do" in reported.err
        [row] = json.loads(reported.out)["rows"]
        assert (row["ts_from"], row["head_missing"]) == (at(0), 0)
        monkeypatch.delenv("COLLECTOR_MONGO_URI", raising=False)


async def test_a_delisted_symbol_does_not_keep_others_from_being_checked(stage: Stage) -> None:
    """The exchange knows nothing of GONE/USDT any more."""
    await stage.run(f"backfill --symbols BTCUSDT --since {stage.day(2)} --json")
    gone = Series.of("simulated", "GONE/USDT", "1m")
    stage.collecting.store.append_page(gone, flat(0, 30), span(0, 30), fence=1, known_at=1_000)
    unknown = await stage.run("validate --symbols ALL --tfs 1m --json")
    assert unknown.code == 3, "nobody said that it was delisted"
    market = {"exchange_id": "simulated", "symbol": "GONE/USDT", "active": False}
    database = stage.collecting.database
    await database.markets.insert_many([{**market, "delisted_at": at(30)}])
    checked = (await stage.run("validate --symbols ALL --tfs 1m --json")).facts
    btc, gone_series = checked["series"]
    assert btc["checks"]["source"] == {"ok": True, "count": 0, "examples": []}
    source = gone_series["checks"]["source"]
    assert source["ok"] is True
    assert "GONE/USDT" in source["examples"][0]["delisted"]
    assert checked["summary"]["ok"] is True


async def test_what_the_exchange_says_otherwise_is_found(stage: Stage) -> None:
    wrong = replace(flat(0, 1), ts=np.array([stage.first_ms], dtype=np.int64))
    minute = Interval(stage.first_ms, stage.first_ms + MINUTE)
    stage.keep(wrong, minute)
    checked = await stage.run("validate --symbols BTCUSDT --tfs 1m --json")
    assert checked.code == 5
    assert checked.err.splitlines()[-1] == "E_SCHEMA: simulated BTC/USDT 1m: source failed once"


async def test_an_exchange_that_is_away_is_e_api_and_the_report_is_written(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.keep(flat(0, 5), span(0, 5))
    monkeypatch.setenv("COLLECTOR_EXCHANGE_URLS", '{"simulated": "http://127.0.0.1:9"}')
    checked = await stage.run("validate --symbols BTCUSDT --tfs 1m --out v.json")
    assert checked.code == 3
    assert checked.err.splitlines()[-1].startswith("E_API: ")
    [series] = json.loads((stage.root / "v.json").read_text())["series"]
    for name in ("clock", "source"):
        assert "not_reached" in series["checks"][name]["examples"][0]


async def test_an_unknown_symbol_is_refused_with_what_was_meant(stage: Stage) -> None:
    refused = await stage.run("backfill --symbols BTCUSTD")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("E_USAGE: simulated has no 'BTCUSTD'; did you mean ")
    assert "BTC/USDT" in refused.err


async def test_functions_of_the_seed(stage: Stage) -> None:
    async def notebook() -> None:
        """Calls that wait, inside a loop that runs, as in a notebook's cell."""
        datalayer.backfill(["BTCUSDT"], since=stage.day(2))
        datalayer.resample(["BTCUSDT"])
        frame = datalayer.DataReader("BTCUSDT", "1h").read(stage.day(2), stage.day(3))
        assert len(frame) == 24
        assert list(frame.columns[:6]) == ["ts", "o", "h", "l", "c", "v"]
        report = datalayer.validate(["BTCUSDT"], ["1m", "5m"], samples=20)
        assert report.ok, report.document()
        assert report.summary()["bars_compared"] == 20
        missing = datalayer.missing_report(["ALL"], ["1m", "5m"])
        assert list(missing["gaps_count"]) == [0, 0]
        assert missing.attrs["summary"]["missing"] == 0

    await asyncio.to_thread(asyncio.run, notebook())


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ({"kind": "server_error", "endpoint": "klines"}, 3, "E_API: BTC/USDT: failed 1 times"),
        ({"kind": "ban", "endpoint": "klines", "retry_after_s": 300}, 4, "E_RATE_LIMIT: simulated"),
    ],
    ids=["server_error", "ban"],
)
async def test_an_exchange_that_refuses_has_a_code_of_its_own(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any], code: int, said: str
) -> None:
    monkeypatch.setenv("COLLECTOR_API__MAX_RETRIES", "1")
    for each in parse_faults(fault):
        stage.collecting.exchange.faults.add(each)
    refused = await stage.run("backfill --symbols BTCUSDT")
    assert (refused.code, refused.err.count("\n")) == (code, 1), refused
    assert refused.err.startswith(said)


async def test_a_clock_that_is_off_is_e_time_drift(stage: Stage) -> None:
    minute = Interval(stage.first_ms, stage.first_ms + MINUTE)
    stage.keep(CandleBatch.of(stage.collecting.truth(minute.from_ms, minute.to_ms)), minute)
    for each in parse_faults({"kind": "clock_drift", "ms": 60_000}):
        stage.collecting.exchange.faults.add(each)
    checked = await stage.run("validate --symbols BTCUSDT --tfs 1m")
    assert checked.code == 6, checked
    assert checked.err.splitlines()[-1].startswith("E_TIME_DRIFT: this machine's clock is -")


async def test_the_nightly_scan_tells_the_share_of_gaps(stage: Stage) -> None:
    """What Prometheus reads from a worker, without anybody asking for a report."""
    for first in (0, 75):
        stage.keep(flat(first, 25), span(first, first + 25))
    scan = await stage.collecting.job("full_scan", symbol=None, timeframe=None)
    await stage.collecting.until(scan, lambda job: job.document["stats"]["success"] > 0)
    labels = {"exchange": "simulated", "symbol": "BTC/USDT", "timeframe": "1m"}
    # Of all the time since the first of 2024, 50 minutes are there.
    slots = (SystemClock().wall_ms() - at(0)) // MINUTE
    ratio = REGISTRY.get_sample_value("collector_gap_ratio", labels)
    assert ratio == pytest.approx(1 - 50 / slots, abs=1e-6)
