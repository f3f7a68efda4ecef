"""Every snippet of the cookbook, run in order, as a reader would type it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.moment import epoch_ms
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.store.copies import Copies
from collector.store.store import Store
from tests.support.verbs import run_here
from tests.unit.docs.pages import page

if TYPE_CHECKING:
    from pathlib import Path

MINUTE, DAYS = 60_000, 3
START = epoch_ms("2025-01-01")
QUIET, OWED = 100, range(200, 210)
"""Minutes of the first day: one without a trade, ten that no answer covers."""
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", page("cookbook.md"), re.S)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "lake"
    store = Store(root, copies=Copies((Timeframe.parse("5m"), Timeframe.parse("1h")), 14))
    for symbol in ("BTC/USDT", "ETH/USDT"):
        series = Series.of("binance", symbol, "1m")
        for first, end in ((0, OWED.start), (OWED.stop, DAYS * 1440)):
            slots = np.array([slot for slot in range(first, end) if slot != QUIET])
            prices = np.round(100 + np.sin(slots / 50), 2)
            columns = (
                START + slots * MINUTE,
                prices,
                prices + 1,
                prices - 1,
                prices,
                slots % 7 + 1,
            )
            covered = Interval(START + first * MINUTE, START + end * MINUTE)
            batch = CandleBatch.of(np.column_stack(columns).tolist())
            store.append_page(series, batch, covered, fence=1, known_at=START)
        store.compact(series)
    monkeypatch.setenv("COLLECTOR_DATA", str(root))
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return root


async def test_every_snippet_runs(lake: Path, tmp_path: Path) -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "sh", "console", "pycon"}
    names: dict[str, Any] = {}
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text, "cookbook.md", "exec"), names)
        elif kind == "sh":
            for line in text.splitlines():
                program, *arguments = shlex.split(line)
                ended = await run_here(*arguments)
                assert (program, ended.code) == ("collector", 0), ended.err
    check_frames(names)
    check_files(tmp_path)


def check_frames(names: dict[str, Any]) -> None:
    """What the page says of its results."""
    assert len(names["bars"]) == 2 * 1440
    assert dict(names["counts"]) == {"bar": 2 * 1440 - 11, "missing": 10, "no_trade": 1}
    assert (len(names["owed"]), len(names["quiet"])) == (10, 1)
    assert len(names["only_bars"]) == 2 * 1440 - 11
    assert len(names["hourly"]) == len(names["hours"]) == 48
    assert len(names["incomplete"]) == 2, "the hours of the quiet minute and of the missing ones"
    assert len(names["known_then"]) == 2 * 1440
    assert names["volume"] > 0
    assert names["daily"]["v"].to_list()[1] == names["hours"].v.iloc[24:].sum()
    assert set(names["closes"].symbol) == {"BTC-USDT", "ETH-USDT"}
    assert len(names["largest"]) == 3


def check_files(folder: Path) -> None:
    written = {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}
    for name in ("btc.csv", "btc.parquet", "user_data/data/binance/ETH_USDT-5m.feather"):
        assert name in written
    assert any(name.startswith("catalog/data/bar/BTCUSDT.BINANCE-5-MINUTE") for name in written)
