"""Add: markets by letters, what it takes before one confirms, and the jobs that are made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

if TYPE_CHECKING:
    from tests.browser.chromium import Visit
    from tests.browser.stage import Stage


async def test_series_are_added_after_seeing_what_it_takes(visit: Visit, stage: Stage) -> None:
    page = await visit.open("/add")
    confirm = page.get_by_role("button", name=re.compile("^Collect"))
    await expect(confirm).to_be_disabled()
    await page.get_by_label("Search markets").fill("xrpusdt")
    found = page.get_by_role("group", name="Markets found").get_by_role("checkbox")
    await expect(found).to_have_count(1)
    await found.check()
    await page.get_by_label("History since").select_option("month")
    cost = page.get_by_role("complementary", name="What it takes")
    # Thirty days and what has passed of today, a thousand minutes a request.
    await expect(cost).to_contain_text(re.compile(r"Requests\s*4[45]"))
    await expect(cost).to_contain_text(re.compile(r"About \d+ s"))
    await expect(cost).to_contain_text("1,440 requests a day")
    await page.get_by_label("5m", exact=True).check()
    await expect(confirm).to_have_text("Collect 2 series")
    await expect(cost).to_contain_text(re.compile(r"Requests\s*5[34]"))
    assert not (await stage.ask("GET", "/jobs", symbol="XRP/USDT"))["items"]
    await confirm.click()
    await expect(page.get_by_text("4 jobs made")).to_be_visible()
    made = (await stage.ask("GET", "/jobs", symbol="XRP/USDT"))["items"]
    assert {(job["type"], job["timeframe"]) for job in made} == {
        (kind, frame) for kind in ("ohlcv_backfill", "ohlcv_incremental") for frame in ("1m", "5m")
    }
    await page.get_by_role("link", name="Jobs of simulated").click()
    await expect(page).to_have_url(re.compile("/jobs"))


async def test_what_exists_is_said_and_costs_nothing(visit: Visit) -> None:
    page = await visit.open("/add")
    await page.get_by_label("Search markets").fill("btc")
    await page.get_by_role("group", name="Markets found").get_by_text("BTC/USDT").click()
    await page.get_by_label("History since").select_option("never")
    cost = page.get_by_role("complementary", name="What it takes")
    await expect(cost).to_contain_text("No history to fetch")
    await expect(cost).to_contain_text("1 series exists already")
    await page.get_by_role("button", name="Leave out BTC/USDT").click()
    await expect(cost).to_contain_text("Choose at least one market")


async def test_an_exchange_that_is_not_connected_is_offered(visit: Visit) -> None:
    page = await visit.open("/add")
    await page.get_by_label("Exchange").select_option("bybit")
    await expect(page.get_by_role("button", name="Connect bybit")).to_be_visible()
