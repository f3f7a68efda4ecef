"""`collector up` applies the settings file at its start, and `collector apply` every later edit."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.simulated.listing import listings
from collector.simulated.server import SimulatedExchange
from tests.support.local_collector import DAY
from tests.support.until import until
from tests.support.verbs import run_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

STREAM = "{{exchange: simulated, symbol: {}, timeframe: 1m, since: {}}}"


class Home:
    """A home with a settings file, and the programs that use it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, *streams: tuple[str, int], rate_limit: int) -> None:
        listed = ", ".join(STREAM.format(*each) for each in streams)
        limits = f"exchanges: {{simulated: {{rate_limit: {rate_limit}}}}}\n"
        (self._path / "collector.yaml").write_text(f"{limits}streams: [{listed}]\n")

    async def job(self, symbol: str) -> Any:
        words = ("--type", "ohlcv_backfill", "--symbol", symbol)
        (found,) = (await run_here("job", "list", *words, "--json")).facts["items"]
        return found

    @asynccontextmanager
    async def up(self) -> AsyncIterator[str]:
        """Yields what it printed until the API was announced."""
        said = self._path / "said.txt"
        with said.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "collector.cli"),
                *("up", "--workers", "1", "--port", "0"),
                cwd=self._path,
                stdout=out,
                start_new_session=True,
            )

        async def announced() -> bool:
            return "API on" in said.read_text("utf-8")

        try:
            await until(announced, "it is up")
            yield said.read_text("utf-8")
        finally:
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(120):
                await process.wait()
        assert process.returncode == 0


async def test_up_applies_the_file_and_apply_every_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = SystemClock().wall_ms() // DAY * DAY
    async with SimulatedExchange(listed=listings(3, listed_ms=today - 30 * DAY)) as exchange:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
        monkeypatch.setenv("COLLECTOR_EXCHANGE_URLS", json.dumps({"simulated": exchange.url}))
        home = Home(tmp_path)
        since = today - 2 * DAY
        home.write(("BTC/USDT", since), ("ETH/USDT", since), rate_limit=50)
        async with home.up() as said:
            assert "created simulated BTC/USDT 1m ohlcv_backfill" in said

            async def finished() -> bool:
                return bool((await home.job("BTC/USDT"))["cursor"]["done"])

            async def both_finished() -> bool:
                return await finished() and bool((await home.job("ETH/USDT"))["cursor"]["done"])

            # Of both: a history that ends between the plan and its application is not paused.
            await until(both_finished, "the histories are stored", 120)
            home.write(("BTC/USDT", since - 2 * DAY), rate_limit=40)
            planned = (await run_here("plan", "--json")).facts
            applied = (await run_here("apply", "--json")).facts
            assert applied["changes"] == planned["changes"]
            done = {(each["action"], each["symbol"], each["type"]) for each in applied["changes"]}
            assert done >= {
                ("change", None, None),
                ("extend", "BTC/USDT", "ohlcv_backfill"),
                ("pause", "ETH/USDT", "ohlcv_incremental"),
            }
            await until(finished, "the earlier history is stored", 120)
            assert (await home.job("BTC/USDT"))["progress"]["from_ms"] == since - 2 * DAY
        home.write(("BTC/USDT", since - 2 * DAY), rate_limit=30)
        async with home.up() as said:
            assert "changed connector simulated: rate_limit 40 -> 30" in said
            assert (await run_here("plan", "--json")).facts["changes"] == []
