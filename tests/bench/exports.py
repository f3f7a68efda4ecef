"""Exported files in the hands of the programs they are for: freqtrade and Nautilus, as published.

Days of made-up minutes are exported by the verb. freqtrade loads its file and backtests on it;
Nautilus reads its catalog and backtests on that. Both must have read exactly what is stored.
Neither leaves this machine: freqtrade's markets come from the simulated exchange.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.durations import DAY_MS
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.reader import CandleReader
from collector.simulated.listing import listings
from collector.simulated.server import SimulatedExchange
from collector.simulated.truth import Truth
from collector.store.store import Store
from tests.bench import freqtrade
from tests.bench.harness import Figure
from tests.bench.peer_environment import NotInstalled, environment_with
from tests.bench.peer_environment import run as run_peer

if TYPE_CHECKING:
    import pandas as pd

    from tests.bench.harness import Bench

SYMBOL, TIMEFRAME = "BTC/USDT", "5m"
NAUTILUS = "1.221.0" if sys.version_info < (3, 12) else "1.231.0"
"""The newest for this Python."""
BAR_TYPE = "BTCUSDT.BINANCE-5-MINUTE-LAST-EXTERNAL"
_SCRIPTS = Path(__file__).parent / "peers"
_RUN_S = 600


async def run(bench: Bench) -> list[Figure]:
    figures = []
    with tempfile.TemporaryDirectory(prefix="collector-exports-") as home:
        folder = Path(home)
        stretch = _stored(folder / "lake", bench.pick(30, 7))
        bars = CandleReader(SYMBOL, TIMEFRAME, "binance", folder / "lake").read(gaps="omit")
        for name, peer in (("freqtrade", _freqtrade), ("nautilus", _nautilus)):
            _export(folder, name)
            try:
                figures += await peer(bench, folder, bars, stretch)
            except NotInstalled as error:
                bench.console.print(
                    f"[bold red]NOT SHOWN: {name} cannot be installed[/]\n{error}\n"
                )
    return figures


def _stored(lake: Path, days: int) -> Interval:
    """Whole days of minutes, and the five minutes made of them."""
    until_ms = SystemClock().wall_ms() // DAY_MS * DAY_MS
    stretch = Interval(until_ms - days * DAY_MS, until_ms)
    true = Truth(listings=listings(1, stretch.from_ms)).bars(
        "BTCUSDT", "1m", stretch.from_ms, stretch.to_ms
    )
    names = ("ts", "open", "high", "low", "close", "volume")
    columns = true.columns()
    rows = list(zip(*(columns[name] for name in names), strict=True))
    store, series = Store(lake), Series.of("binance", SYMBOL, "1m")
    store.append_page(series, CandleBatch.of(rows), stretch, fence=1, known_at=1)
    store.compact(series)
    return stretch


def _export(folder: Path, form: str) -> None:
    """By the verb, as an operator does."""
    verb = [sys.executable, "-P", "-m", "collector.cli", "export", "binance", SYMBOL, TIMEFRAME]
    options = ["--format", form, "--out", str(folder / form)]
    place = {"COLLECTOR_DATA": str(folder / "lake"), "COLLECTOR_HOME": str(folder)}
    subprocess.run([*verb, *options], check=True, env={**os.environ, **place}, cwd=folder)


async def _freqtrade(
    bench: Bench, folder: Path, bars: pd.DataFrame, stretch: Interval
) -> list[Figure]:
    program = await asyncio.to_thread(freqtrade.installed)
    python = program.with_name("python")
    read = [python, _SCRIPTS / "freqtrade_reader.py", folder / "freqtrade", SYMBOL, TIMEFRAME]
    loaded = json.loads(await asyncio.to_thread(run_peer, read, _RUN_S, folder))
    async with SimulatedExchange(listed=listings(1, stretch.from_ms)) as exchange:
        trades = await asyncio.to_thread(_backtested, program, folder, exchange.url)
    same = loaded == {"rows": len(bars), "sha256": _sha256(bars)}
    bench.show(
        f"freqtrade {freqtrade.VERSION} on an exported series",
        ["bars stored", "bars it loaded", "the same, bit for bit", "trades of its backtest"],
        [[f"{len(bars):,}", f"{loaded['rows']:,}", str(same), f"{trades:,}"]],
    )
    return [
        Figure("freqtrade: bars it loaded differ", float(not same), "", at_most=0),
        Figure("freqtrade: trades of a backtest", trades, "", at_least=1),
    ]


def _backtested(program: Path, folder: Path, url: str) -> int:
    """How many trades freqtrade's own backtest on the exported folder made."""
    settings = {
        **freqtrade.settings(url, SYMBOL, throttled=False),
        "stake_amount": 100,
        "dry_run_wallet": 1000,
        "max_open_trades": 1,
        "pairlists": [{"method": "StaticPairList"}],
        "entry_pricing": {"price_side": "same", "use_order_book": False},
        "exit_pricing": {"price_side": "same", "use_order_book": False},
    }
    config = folder / "config.json"
    config.write_text(json.dumps(settings), "utf-8")
    command = [program, "backtesting", "--config", config, "--userdir", folder]
    command += ["--datadir", folder / "freqtrade", "--strategy-path", _SCRIPTS]
    command += ["--strategy", "ThreeUp", "--cache", "none", "--export", "none"]
    said = run_peer(command, _RUN_S, folder)
    found = re.search(r"ThreeUp │\s*(\d+) │", said)
    if found is None:
        raise RuntimeError(f"freqtrade printed no result: {said[-2000:]}")
    return int(found[1])


def _sha256(bars: pd.DataFrame) -> str:
    digest = hashlib.sha256(bars["ts"].to_numpy().astype("<i8").tobytes())
    for name in ("o", "h", "l", "c", "v"):
        digest.update(bars[name].to_numpy().astype("<f8").tobytes())
    return digest.hexdigest()


async def _nautilus(
    bench: Bench, folder: Path, bars: pd.DataFrame, _stretch: Interval
) -> list[Figure]:
    programs = await asyncio.to_thread(environment_with, "nautilus_trader", NAUTILUS)
    script = _SCRIPTS / "nautilus_backtest.py"
    command = [programs / "python", script, folder / "nautilus", BAR_TYPE]
    await asyncio.to_thread(run_peer, command, _RUN_S, folder)
    told: dict[str, Any] = json.loads((folder / "nautilus.json").read_text("utf-8"))
    wrong = abs(told["rows"] - len(bars))
    for row, (ts_event, *digits) in zip(bars.itertuples(), told["bars"], strict=False):
        expected = [Decimal(repr(each)) for each in (row.o, row.h, row.l, row.c)]
        volume_off = abs(Decimal(repr(row.v)) - Decimal(digits[4])) > Decimal("1e-8")
        closes = (row.ts + 5 * 60_000) * 1_000_000
        wrong += [Decimal(each) for each in digits[:4]] != expected or volume_off
        wrong += ts_event != closes
    bench.show(
        f"nautilus_trader {NAUTILUS} on an exported catalog",
        ["bars stored", "bars it read", "wrong", "orders of its backtest"],
        [[f"{len(bars):,}", f"{told['rows']:,}", str(wrong), f"{told['orders']:,}"]],
    )
    return [
        Figure("nautilus: bars it read differ", float(wrong), "", at_most=0),
        Figure("nautilus: orders of a backtest", told["orders"], "", at_least=1),
    ]
