"""Quality: days, missing ranges with their owner and a remedy, refused rows, and checks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.browser.lake import HOLE_MINUTES, MENDABLE_MINUTES

if TYPE_CHECKING:
    from tests.browser.chromium import Visit
    from tests.browser.stage import Stage


async def test_every_series_has_a_row_and_every_day_a_cell(visit: Visit) -> None:
    page = await visit.open("/quality?search=sol")
    row = page.locator(".table.heat tbody tr")
    await expect(row).to_have_count(1)
    await expect(row).to_contain_text("SOL/USDT 1m")
    strip = row.get_by_role("img")
    await expect(strip).to_have_attribute("aria-label", re.compile(f"Missing on .*{HOLE_MINUTES}"))
    await expect(strip).to_have_attribute("viewBox", "0 0 90 10")
    await page.get_by_role("navigation", name="Range").get_by_role("link", name="30 days").click()
    await expect(strip).to_have_attribute("viewBox", "0 0 30 10")
    await page.reload()
    await expect(strip).to_have_attribute("viewBox", "0 0 30 10")


async def test_pointing_at_a_day_reads_it_and_a_click_shows_it(visit: Visit) -> None:
    page = await visit.open("/quality?search=sol&days=30")
    strip = page.locator(".strip")
    box = await strip.bounding_box()
    assert box is not None
    # Yesterday: of today nothing is expected until its first bars are due.
    x, y = box["x"] + box["width"] * 28.5 / 30, box["y"] + 8
    await page.mouse.move(x, y)
    pointed = page.locator(".heat-pointed")
    await expect(pointed).to_contain_text(re.compile(r"SOL/USDT 1m, .* bars"))
    await page.mouse.click(x, y)
    await expect(page).to_have_url(re.compile(r"/chart\?.*at="))


async def test_a_missing_range_is_repaired_with_one_click(visit: Visit, stage: Stage) -> None:
    page = await visit.open("/quality?show=missing&search=sol")
    rows = page.locator(".table tbody tr")
    hole = rows.filter(has_text="1 h 30 min")
    await expect(hole).to_contain_text("no job")
    await expect(hole).to_contain_text(str(HOLE_MINUTES))
    mendable = rows.filter(has_text="40 min")
    await expect(mendable).to_contain_text(str(MENDABLE_MINUTES))
    await mendable.get_by_role("button", name="Repair").click()
    await expect(page.get_by_text(f"{MENDABLE_MINUTES} bars will be fetched")).to_be_visible()
    await expect(mendable).to_have_count(0)
    found = (await stage.ask("GET", "/reports/gaps", search="sol"))["items"]
    assert stage.lake.mendable.from_ms not in [each["start"] for each in found]


async def test_the_owner_of_what_is_being_fetched_is_named(visit: Visit, stage: Stage) -> None:
    page = await visit.open("/quality?show=missing&search=eth")
    row = page.locator(".table tbody tr").filter(has_text="History")
    await expect(row.first).to_contain_text("ETH/USDT 1m")
    await row.first.get_by_role("link", name="History").click()
    await expect(page).to_have_url(re.compile(stage.jobs["long"]))


async def test_refused_rows_are_shown_as_they_came(visit: Visit) -> None:
    page = await visit.open("/quality?show=quarantine")
    row = page.locator(".table tbody tr").first
    await expect(row).to_contain_text("high_below_low")
    await expect(row).to_contain_text("[")


async def test_stored_bars_are_checked_on_demand(visit: Visit) -> None:
    page = await visit.open("/quality?show=validation&search=sol")
    await expect(page.get_by_text("Not checked yet")).to_be_visible()
    await page.get_by_role("button", name="Check now").click()
    stored = page.get_by_role("region", name="Stored bars")
    await expect(stored.locator("tbody tr").first).to_contain_text("SOL/USDT 1m")
    await expect(stored).to_contain_text("Checked")
