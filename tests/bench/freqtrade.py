"""`freqtrade download-data` on an exchange of this machine, in an environment of its own.

The environment is made once, by pip, in a cache folder outside the project: freqtrade pins other
versions of what we use. It is told of the address by its own settings, `ccxt_config`, and fetches
by ccxt alone: its shortcut to Binance's archive of whole days would leave this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.feather

from tests.bench.stage import Cost

if TYPE_CHECKING:
    import pyarrow as pa

    from collector.market.interval import Interval

VERSION = "2026.9"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "collector-bench"
_INSTALL_S, _DOWNLOAD_S = 900, 300


class NotInstalled(Exception):
    """pip could not make the environment; the text is its last words."""


@dataclass(frozen=True, slots=True)
class FreqtradeRun:
    """What one download took, and the bars it stored: date, open, high, low, close, volume."""

    wall_s: float
    cost: Cost
    bars: pa.Table


def installed() -> Path:
    """The program, installed when it is not there yet, which takes minutes. Raises NotInstalled."""
    folder = _CACHE / f"freqtrade-{VERSION}-python{sys.version_info[0]}.{sys.version_info[1]}"
    program, whole = folder / "bin" / "freqtrade", folder / "installed"
    if not whole.exists():
        # What an installation that was cut off left behind is no use to anyone.
        shutil.rmtree(folder, ignore_errors=True)
        try:
            venv.create(folder, with_pip=True)
            pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
            _run([*pip, f"freqtrade=={VERSION}"], _INSTALL_S)
            _run([program, "--version"], _INSTALL_S)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            raise NotInstalled("\n".join(said.strip().splitlines()[-5:])) from error
        whole.touch()
    return program


def download(
    program: Path, url: str, symbol: str, stretch: Interval, *, throttled: bool
) -> FreqtradeRun:
    """The minutes of whole days, from the start of the process to its end.

    `throttled`: with ccxt's own pause between requests, which is how freqtrade is set up.
    """
    with tempfile.TemporaryDirectory(prefix="collector-freqtrade-") as home:
        folder = Path(home)
        settings = folder / "config.json"
        settings.write_text(json.dumps(_settings(url, symbol, throttled)), "utf-8")
        days = "-".join(_day(ms) for ms in (stretch.from_ms, stretch.to_ms))
        command = [program, "download-data", "--config", settings, "--userdir", folder]
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


def _settings(url: str, symbol: str, throttled: bool) -> dict[str, Any]:
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


def _run(command: list[Any], seconds: float) -> None:
    subprocess.run(
        command, env=_environment(), check=True, capture_output=True, text=True, timeout=seconds
    )


def _environment() -> dict[str, str]:
    """Without what would lead it to this project's modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _measured(command: list[Any], log: Path) -> tuple[int, Cost]:
    """Runs a program to its end: its exit code, and what the kernel counted for it."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=log.parent, env=_environment(), stdout=out, stderr=subprocess.STDOUT
        )
    too_long = threading.Timer(_DOWNLOAD_S, process.kill)
    too_long.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    finally:
        too_long.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
