"""`repair`: what is damaged or lost comes back, from what is left or from the exchange."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import TYPE_CHECKING

from collector.cli import main
from collector.store.store import Store
from tests.support.datalayer_stage import BTC, DAYS
from tests.support.file_damage import flip, footer_span, page_place
from tests.support.local_collector import DAY, no_more_gap_jobs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.datalayer_stage import Stage


def folder(stage: Stage) -> Path:
    return stage.root / "data" / "simulated" / "BTC-USDT"


def check_whole(stage: Stage) -> None:
    """Every bar of the exchange is there, read by somebody who knows nothing."""
    start, end = stage.first_ms, stage.first_ms + DAYS * DAY
    stage.collecting.store = Store(stage.root / "data")
    assert stage.collecting.stored(start, end) == stage.collecting.truth(start, end)


async def test_a_folder_that_was_deleted_is_fetched_again_by_backfill(stage: Stage) -> None:
    await stage.run("backfill --symbols BTCUSDT --json")
    shutil.rmtree(folder(stage).parent)  # With the group parts, which would bring it back.
    made = (await stage.run("backfill --symbols BTCUSDT --json")).facts
    assert made["series"][0]["first_ts"] == stage.first_ms
    assert made["series"][0]["bars"] >= DAYS * 1440
    assert made["series"][0]["missing"] == 0
    check_whole(stage)


async def test_repair_asks_for_a_folder_that_was_deleted(stage: Stage) -> None:
    await stage.run("backfill --symbols BTCUSDT --json")
    shutil.rmtree(folder(stage).parent)  # With the group parts, which would bring it back.
    facts = (await stage.run("repair --symbols BTCUSDT --json")).facts
    assert facts["damaged"] == []
    [job] = facts["fetching"]
    assert (job["symbol"], job["ts_from"]) == ("BTC/USDT", stage.first_ms)
    await no_more_gap_jobs(stage.collecting)
    check_whole(stage)


async def test_a_damaged_sealed_file_is_told_repaired_and_made_whole(stage: Stage) -> None:
    await stage.run("backfill --symbols BTCUSDT --json")
    sealed = folder(stage) / "1m.parquet"
    data = sealed.read_bytes()
    sealed.write_bytes(flip(data, footer_span(data).start + 50))

    told = await stage.run("repair --symbols ALL --dry-run --json")
    assert told.code == 7
    assert [each["path"] for each in json.loads(told.out)["damaged"]] == [
        "simulated/BTC-USDT/1m.parquet"
    ]
    assert told.err.splitlines()[-1].startswith("E_WRITE: simulated/BTC-USDT/1m.parquet is damaged")
    assert sealed.exists()

    facts = (await stage.run("repair --symbols BTCUSDT --json")).facts
    assert [each["set_aside"] for each in facts["damaged"]] == [
        "simulated/BTC-USDT/1m.parquet.corrupt"
    ]
    await no_more_gap_jobs(stage.collecting)
    check_whole(stage)
    again = await stage.run("repair --symbols BTCUSDT")
    assert (again.code, again.out) == (
        0,
        "simulated: every file is what was written, and nothing is lost\n",
    )


async def test_parts_that_were_not_swept_yet_bring_a_deleted_folder_back(stage: Stage) -> None:
    await stage.run("backfill --symbols BTCUSDT --json")
    shutil.rmtree(folder(stage))
    facts = (await stage.run("repair --symbols BTCUSDT --json")).facts
    assert (facts["damaged"], facts["fetching"]) == ([], [])
    assert (folder(stage) / "1m.parquet").exists()
    check_whole(stage)


async def test_validate_names_the_damaged_file_and_reports_on_the_others(stage: Stage) -> None:
    await stage.run("backfill --symbols BTCUSDT,ETHUSDT --json")
    sealed = folder(stage) / "1m.parquet"
    data = sealed.read_bytes()
    sealed.write_bytes(flip(data, page_place(data)))
    checked = await stage.run("validate --symbols ALL --tfs 1m --samples 0 --json")
    assert checked.code == 7
    assert checked.err.splitlines()[-1].startswith(
        "E_WRITE: simulated/BTC-USDT/1m.parquet is damaged"
    )
    btc, eth = json.loads(checked.out)["series"]
    assert [name for name, check in btc["checks"].items() if not check["ok"]] == ["files"]
    assert all(check["ok"] for check in eth["checks"].values())
    assert eth["rows"] >= DAYS * 1440


async def test_collector_repair_is_the_same(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    await stage.run("backfill --symbols BTCUSDT --json")
    (folder(stage) / "5m.parquet").write_bytes(b"")
    assert await asyncio.to_thread(main.run, ["repair", "--json"], main.app) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in facts["damaged"]] == ["sealed"]
    assert BTC.symbol in facts["symbols"]
