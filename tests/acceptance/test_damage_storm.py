"""Damages one by one, a thousand in the long form; and many at once, mended from the exchange."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from collector.market.series import Series
from collector.store.store import Store
from tests.support.damage_storm import KINDS, fill, make_small, storm, strike
from tests.support.datalayer_stage import DAYS
from tests.support.fleet import LONG
from tests.support.local_collector import DAY
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.datalayer_stage import Stage

PIECES, DAMAGES = (4, 250) if LONG else (1, 100)
ROUNDS, AT_ONCE = (40, 25) if LONG else (2, 25)
SYMBOLS = ("BTC/USDT", "ETH/USDT")


@pytest.mark.parametrize("piece", range(PIECES))
def test_damages_one_by_one_lose_nothing_silently_and_all_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    make_small(monkeypatch)
    fill(tmp_path / "pristine")
    rng = random.Random(100 + piece)
    tally = storm(tmp_path / "pristine", tmp_path / "struck", DAMAGES, rng)
    print(f"{tally}")
    assert set(tally.by_kind) == KINDS
    assert tally.refused
    assert tally.missing
    assert tally.harmless


async def test_the_exchange_brings_back_what_damage_has_cost(stage: Stage) -> None:
    """Many files at once are damaged beside a worker at work; after `repair` every bar is back."""
    rng = random.Random(7)
    await stage.run("backfill --symbols BTCUSDT,ETHUSDT --json")
    await stage.run("repair --json")
    for _ in range(ROUNDS):
        files = sorted(
            each
            for each in (stage.root / "data").rglob("*")
            if each.is_file() and not each.name.startswith(".") and ".corrupt" not in each.name
        )
        for file in rng.sample(files, min(AT_ONCE, len(files))):
            strike(stage.root, file, rng)
        assert (await stage.run("repair --json")).code == 0
        await _no_gap_jobs(stage)
        _check_whole(stage)
    assert (await stage.run("repair --dry-run")).code == 0


async def _no_gap_jobs(stage: Stage) -> None:

    async def none_is_left() -> bool:
        return not await stage.collecting.queue.find({"type": "gap_backfill"})

    await until(none_is_left, "no gap job is left", 180)


def _check_whole(stage: Stage) -> None:
    start, end = stage.first_ms, stage.first_ms + DAYS * DAY
    stage.collecting.store = Store(stage.root / "data")
    for symbol in SYMBOLS:
        series = Series.of("simulated", symbol, "1m")
        truth = stage.collecting.truth(start, end, symbol=symbol.replace("/", ""))
        assert stage.collecting.stored(start, end, series) == truth
