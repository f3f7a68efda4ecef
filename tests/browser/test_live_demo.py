"""The dashboard of `collector up --demo`, as a newcomer sees it while the backfill runs."""

from __future__ import annotations

import asyncio
import re
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.browser.chromium import visiting
from tests.support.processes import program
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser

VIEWS = {
    "/": ".cards .card",
    "/jobs": ".table.jobs tbody tr",
    "/chart?exchange_id=simulated&symbol=BTC/USDT&timeframe=1m": "canvas",
    "/quality": ".strip",
    "/prices": ".table.prices tbody tr",
    "/add?exchange_id=simulated": ".market-list label",
}


@asynccontextmanager
async def demo(home: Path) -> AsyncIterator[str]:
    """The address of its API; ended with Ctrl-C."""
    arguments = ("collector.cli", "up", "--demo", "--port", "0")
    async with program(*arguments, COLLECTOR_HOME=str(home)) as process:
        while "API on" not in (line := await process.line()):
            assert process.running, process.said
        # Nobody may have to wait because a pipe is full.
        rest = asyncio.create_task(process.output())
        found = re.search(r"http://[^\s,]+", line)
        assert found is not None, line
        url = found[0].rstrip("/")

        async def answers() -> bool:
            host, _, port = url.removeprefix("http://").partition(":")
            try:
                _, out = await asyncio.open_connection(host, int(port))
            except ConnectionRefusedError:
                return False
            out.close()
            return True

        try:
            await until(answers, "the API listens")
            yield url
        finally:
            process.signal(signal.SIGINT)
            await rest
        assert await process.ended() == 0, process.said


async def test_every_view_of_the_demo_is_whole_and_a_backfill_obeys(
    browser: Browser, tmp_path: Path
) -> None:
    async with demo(tmp_path) as url, visiting(browser, url) as visit:
        for path, content in VIEWS.items():
            page = await visit.open(path)
            await page.wait_for_selector(content)
            await page.wait_for_selector(".connection.live")
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                found = await visit.violations()
                assert not found, f"{path}, {scheme}:\n" + "\n".join(found)
        page = await visit.open("/jobs?type=ohlcv_backfill")
        first = page.locator(".table.jobs tbody tr").first
        await first.get_by_role("link").first.click()
        await page.get_by_role("button", name="Pause").click()
        await page.get_by_role("button", name="Resume").click()
        await expect(page.get_by_role("button", name="Pause")).to_be_visible()
