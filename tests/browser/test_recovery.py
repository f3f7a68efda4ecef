"""The API killed during a visit: the page says so, keeps what it knows, and recovers by itself."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.browser.chromium import visiting
from tests.browser.stage import api

if TYPE_CHECKING:
    from playwright.async_api import Browser, Route

    from tests.browser.stage import Stage

CUT = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_CONNECTION_RESET", "ERR_EMPTY")


async def test_the_api_is_killed_and_started_again(browser: Browser, stage: Stage) -> None:
    async with visiting(browser, "", allowed=CUT) as visit:
        page = visit.page
        banner = page.locator('[data-banner="cut"]')
        async with api(**stage.settings) as (url, process):
            await page.goto(f"{url}/jobs")
            await expect(page.locator(".connection")).to_have_text("Live")
            rows = page.locator(".table.jobs tbody tr")
            shown = await rows.count()
            process.signal(signal.SIGKILL)
            await process.ended()
            await expect(banner).to_contain_text("Collector does not answer since")
            await expect(page.locator(".connection")).to_have_text("Not connected")
            assert await rows.count() == shown, "what was known stays"
            await expect(
                page.get_by_role("status").filter(has_text="does not answer")
            ).to_have_count(1)
            found = await visit.violations()
            assert not found, "\n".join(found)
        port = url.rpartition(":")[2]
        async with api("--port", port, **stage.settings):
            await expect(banner).to_have_count(0)
            await expect(page.locator(".connection")).to_have_text("Live")
            job = stage.jobs["failed"]
            await page.get_by_label("Search for a symbol").fill("goneusd")
            await expect(page.locator(f'tr[data-job="{job}"]')).to_contain_text("Failed")


async def test_a_view_that_cannot_be_loaded_says_so_and_can_be_tried_again(
    browser: Browser, stage: Stage
) -> None:
    async with visiting(browser, stage.url, allowed=("503", "500")) as visit:
        page = visit.page
        broken = True

        async def answer(route: Route) -> None:
            if broken:
                body = '{"detail": "MongoDB cannot be reached", "code": "database_unavailable"}'
                await route.fulfill(status=503, body=body, content_type="application/problem+json")
            else:
                await route.continue_()

        await page.route(re.compile(r"/api/v1/(jobs|coverage/days|live|series)"), answer)
        for path, content in (
            ("/jobs", ".table.jobs tbody tr"),
            ("/quality", ".strip"),
            ("/prices", ".table.prices tbody tr"),
        ):
            broken = True
            await visit.open(path)
            alert = page.get_by_role("alert").filter(has_text="MongoDB cannot be reached")
            await expect(alert).to_be_visible()
            broken = False
            await alert.get_by_role("button", name="Try again").click()
            await page.wait_for_selector(content)
        broken = True
        await visit.open("/chart?exchange_id=simulated&symbol=SOL/USDT&timeframe=1m")
        await expect(page.get_by_role("alert").first).to_contain_text("MongoDB cannot be reached")


async def test_old_data_is_marked_as_old(browser: Browser, stage: Stage) -> None:
    is_broken = False

    async def answer(route: Route) -> None:
        if is_broken:
            await route.fulfill(status=503, body="{}", content_type="application/json")
        else:
            await route.continue_()

    async with visiting(browser, stage.url, allowed=("503",)) as visit:
        # Before the page is opened: a request that is sent right after may not be caught.
        await visit.page.route(re.compile(r"/api/v1/jobs"), answer)
        page = await visit.open("/jobs")
        await page.wait_for_selector(".table.jobs tbody tr")
        is_broken = True
        await page.keyboard.press("r")
        await expect(page.get_by_text("it could not be loaded again")).to_be_visible()
        await expect(page.locator(".table.jobs tbody tr").first).to_be_visible()
