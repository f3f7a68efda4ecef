"""Chart: bars, gaps as gaps, the newest bar, timeframes, moments, versions and pairs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from playwright.async_api import expect

from collector.durations import DAY_MS
from tests.browser.lake import HOLE_MINUTES, MENDABLE_MINUTES, QUIET_MINUTES
from tests.support.until import until

if TYPE_CHECKING:
    from playwright.async_api import Page

    from tests.browser.chromium import Visit
    from tests.browser.stage import Stage


def address(symbol: str = "SOL/USDT", **more: object) -> str:
    asked = {"exchange_id": "simulated", "symbol": symbol, "timeframe": "1m", **more}
    return f"/chart?{urlencode(asked)}"


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


async def loaded(page: Page, least: int = 1) -> None:
    """Until so many slots are drawn."""
    await page.wait_for_selector("canvas")

    async def enough() -> bool:
        found = await page.locator(".chart-canvas").get_attribute("data-bars")
        return int(found or 0) >= least

    await until(enough, f"{least} slots are loaded", 60)


async def test_without_a_series_the_first_one_is_shown(visit: Visit) -> None:
    page = await visit.open("/chart")
    await expect(page).to_have_url(re.compile("symbol=BTC"))
    await loaded(page, 1_000)
    await expect(page.get_by_role("heading", name="BTC/USDT 1m")).to_be_visible()


async def test_what_is_missing_and_what_did_not_trade_are_told_apart(
    visit: Visit, stage: Stage
) -> None:
    middle = (stage.lake.hole.from_ms + stage.lake.quiet.to_ms) // 2
    page = await visit.open(address(at=iso(middle)))
    await loaded(page, 500)
    marks = page.locator(".marks")
    await expect(marks).to_contain_text(f"{HOLE_MINUTES} missing")
    await expect(marks).to_contain_text(f"{QUIET_MINUTES} without a trade")


async def test_another_timeframe_is_made_of_the_stored_one(visit: Visit, stage: Stage) -> None:
    page = await visit.open(address())
    await loaded(page, 500)
    await page.get_by_role("navigation", name="Timeframe").get_by_role("link", name="1h").click()
    await expect(page).to_have_url(re.compile("timeframe=1h"))
    await expect(page.get_by_role("heading", name="SOL/USDT 1h")).to_be_visible()
    await loaded(page, 24 * 19)
    await page.go_back()
    await expect(page.get_by_role("heading", name="SOL/USDT 1m")).to_be_visible()


async def test_a_series_is_found_by_letters_with_the_keyboard_alone(visit: Visit) -> None:
    page = await visit.open(address())
    await loaded(page)
    await page.keyboard.press("/")
    await page.keyboard.type("ethusdt")
    entry = page.get_by_role("list", name="Stored series").get_by_role("link")
    await expect(entry).to_have_count(1)
    await page.keyboard.press("ArrowDown")
    await expect(entry).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="ETH/USDT 1m")).to_be_visible()


async def test_an_earlier_version_is_shown_as_it_was_known(visit: Visit, stage: Stage) -> None:
    moment = iso(stage.lake.corrected_ms)
    page = await visit.open(address(at=moment))
    await loaded(page, 500)
    await page.get_by_text("The last bars as a table").click()
    await visit.open(address(at=moment, as_of=iso(stage.lake.corrected_at - 1_000)))
    await loaded(page, 500)
    await expect(page.get_by_text("As it was known at")).to_be_visible()
    await page.get_by_role("button", name="Show it as it is now").click()
    await expect(page.get_by_text("As it was known at")).to_have_count(0)
    assert "as_of" not in page.url


async def test_moving_left_loads_what_is_earlier(visit: Visit) -> None:
    page = await visit.open(address())
    await loaded(page, 1_000)
    canvas = page.locator(".chart-canvas")
    await canvas.focus()
    for _ in range(60):
        await page.keyboard.press("ArrowLeft")
    await loaded(page, 2_000)


async def test_going_to_a_date_shows_it_and_is_in_the_address(visit: Visit, stage: Stage) -> None:
    page = await visit.open(address())
    await loaded(page)
    day = datetime.fromtimestamp((stage.lake.first_ms + 2 * DAY_MS) / 1000, UTC)
    await page.get_by_label("Go to").fill(day.strftime("%Y-%m-%dT%H:%M"))
    await page.get_by_label("Go to").blur()
    await expect(page).to_have_url(re.compile("at="))
    await loaded(page, 500)
    await page.reload()
    await loaded(page, 500)
    await expect(page.get_by_label("Go to")).to_have_value(day.strftime("%Y-%m-%dT%H:%M"))


async def test_the_bar_that_is_not_closed_yet_follows_live_prices(visit: Visit) -> None:
    page = await visit.open(address("BTC/USDT"))
    await loaded(page, 1_000)
    await expect(page.locator(".legend")).to_contain_text("live, not closed yet")


async def test_a_pair_of_a_network_has_a_chart_too(visit: Visit) -> None:
    page = await visit.open("/chart?network=riemann&base=1:GOLD&quote=1:OIL")
    await loaded(page, 10)
    await expect(page.get_by_role("heading", name="GOLD/OIL")).to_be_visible()
    await (
        page.get_by_role("navigation", name="Bucket")
        .get_by_role("link", name="5m", exact=True)
        .click()
    )
    await loaded(page, 2)
    await page.get_by_text("The last bars as a table").click()
    await expect(page.get_by_role("region", name="The last bars")).to_contain_text("7")


async def test_a_series_that_is_not_stored_is_said(visit: Visit) -> None:
    visit.allowed = ("422",)
    page = await visit.open(address("NOSUCH/USDT"))
    await expect(page.get_by_role("alert").first).to_contain_text("NOSUCH/USDT")


assert MENDABLE_MINUTES != HOLE_MINUTES
