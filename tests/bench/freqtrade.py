"""`freqtrade download-data` on an exchange of this machine, in an environment of its own.

The environment is made once, by pip, in a cache folder outside the project: freqtrade pins other
versions of what we use. It is told of the address by its own settings, `ccxt_config`, and fetches
by ccxt alone: its shortcut to Binance's archive of whole days would leave this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.feather

from tests.bench.peer_environment import environment_with, own
from tests.bench.stage import Cost

if TYPE_CHECKING:
    import pyarrow as pa

    from collector.market.interval import Interval

VERSION = "2026.9"
_DOWNLOAD_S = 300


@dataclass(frozen=True, slots=True)
class FreqtradeRun:
    """What one download took, and the bars it stored: date, open, high, low, close, volume."""

    wall_s: float
    cost: Cost
    bars: pa.Table


def installed() -> Path:
    """The program, installed when it is not there yet, which takes minutes. Raises NotInstalled."""
    return environment_with("freqtrade", VERSION) / "freqtrade"


def download(
    program: Path, url: str, symbol: str, stretch: Interval, *, throttled: bool
) -> FreqtradeRun:
    """The minutes of whole days, from the start of the process to its end.

    `throttled`: with ccxt's own pause between requests, which is how freqtrade is set up.
    """
    with tempfile.TemporaryDirectory(prefix="collector-freqtrade-") as home:
        folder = Path(home)
        config = folder / "config.json"
        config.write_text(json.dumps(settings(url, symbol, throttled=throttled)), "utf-8")
        days = "-".join(_day(ms) for ms in (stretch.from_ms, stretch.to_ms))
        command = [program, "download-data", "--config", config, "--userdir", folder]
        command += ["--datadir", folder / "data", "--pairs", symbol]
        command += ["--timeframes", "1m", "--timerange", days]
        log = folder / "log"
        started = time.monotonic()
        code, cost = _measured(command, log)
        wall_s = time.monotonic() - started
        files = list((folder / "data").glob("*-1m.feather"))
        if code or len(files) != 1:
            raise RuntimeError(f"freqtrade ended with {code}: {log.read_text('utf-8')[-2000:]}")
        bars = pyarrow.feather.read_table(files[0], memory_map=False)
    return FreqtradeRun(wall_s, cost, bars)


def settings(url: str, symbol: str, *, throttled: bool) -> dict[str, Any]:
    """Its own settings, with the address of an exchange of this machine."""
    ccxt: dict[str, Any] = {
        "urls": {"api": {"public": f"{url}/api/v3"}},
        "options": {
            "fetchMarkets": {"types": ["spot"]},
            "fetchCurrencies": False,
            "fetchMargins": False,
        },
    }
    if not throttled:
        ccxt["enableRateLimit"] = False
    return {
        "stake_currency": "USDT",
        "stake_amount": 1,
        "dry_run": True,
        "trading_mode": "spot",
        "exchange": {
            "name": "binance",
            "pair_whitelist": [symbol],
            "only_from_ccxt": True,
            "enable_ws": False,
            "ccxt_config": ccxt,
        },
    }


def _day(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y%m%d")


def _measured(command: list[Any], log: Path) -> tuple[int, Cost]:
    """Runs a program to its end: its exit code, and what the kernel counted for it."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=log.parent, env=own(), stdout=out, stderr=subprocess.STDOUT
        )
    too_long = threading.Timer(_DOWNLOAD_S, process.kill)
    too_long.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    finally:
        too_long.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
