"""`python -m tests.browser.screenshots [--out FOLDER]`: every view, light and dark, desk and phone.

Two of them are the pictures of the documentation: overview-light-desk.png and chart-dark-desk.png.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from collector import logs
from collector.mongo.embedded import EmbeddedMongo
from tests.browser.chromium import DESK, PHONE, chromium, visiting
from tests.browser.stage import Stage, stage
from tests.support.until import until

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

VIEWS = {
    "overview": ("/", ".cards .card .share-bar"),
    "jobs": ("/jobs?exchange_id=simulated", ".table.jobs tbody tr"),
    "job": ("/jobs/{long}", ".fact-groups"),
    "failed": ("/jobs/{failed}", ".panel.bad"),
    "chart": ("/chart?exchange_id=simulated&symbol=BTC/USDT&timeframe=1m", "canvas"),
    "gap": ("/chart?exchange_id=simulated&symbol=SOL/USDT&timeframe=5m&at={hole}", "canvas"),
    "quality": ("/quality", ".strip"),
    "missing": ("/quality?show=missing", ".table tbody tr"),
    "prices": ("/prices", ".table.prices tbody tr"),
    "add": ("/add", ".market-list label"),
}
SIZES = {"desk": DESK, "phone": PHONE}
LOOKS = 8
"""Updates that are waited for on views that gather something while one looks."""


async def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="screenshots-") as home:
        place = Path(home)
        async with (
            await EmbeddedMongo.start(place / "home", purpose="screenshots") as mongo,
            stage(mongo.uri, "screenshots", place / "lake") as made,
            chromium() as browser,
        ):
            for device, size in SIZES.items():
                for dark in (False, True):
                    await _all_views(browser, made, out, device, size, dark=dark)


async def _all_views(
    browser: Browser, made: Stage, out: Path, device: str, size: tuple[int, int], *, dark: bool
) -> None:
    words = {**made.jobs, "hole": _iso(made.lake.hole.from_ms)}
    async with visiting(browser, made.url, size=size, dark=dark) as visit:
        for name, (path, content) in VIEWS.items():
            page = await visit.open(path.format(**words))
            await page.wait_for_selector(content)
            await page.wait_for_selector(".connection.live")
            await _settled(page, name, device)
            file = out / f"{name}-{'dark' if dark else 'light'}-{device}.png"
            await page.screenshot(path=file, full_page=device == "phone")
            print(file)


async def _settled(page: Page, name: str, device: str) -> None:
    """Until there is something to see of what moves."""
    if device == "phone":
        return
    if name == "overview":
        for _ in range(LOOKS):
            async with page.expect_response(lambda response: "/connectors" in response.url):
                pass
    if name == "prices":
        points = ".table.prices tbody tr:last-child polyline"

        async def moved() -> bool:
            found = await page.locator(points).get_attribute("points") or ""
            return len(found.split()) >= LOOKS

        await page.wait_for_selector(points)
        await until(moved, "prices have moved", 60)
    if name == "chart":
        await page.wait_for_selector("text=live, not closed yet")


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.browser.screenshots")
    parser.add_argument("--out", type=Path, default=Path("screenshots"), help="the folder")
    logs.configure("CRITICAL", "json")
    asyncio.run(main(parser.parse_args().out))
