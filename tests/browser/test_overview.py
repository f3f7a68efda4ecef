"""Overview: troubles with what helps, a card for each exchange, workers, and a fresh system."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

from collector.durations import DAY_MS
from tests.browser.chromium import PATIENCE_MS, visiting
from tests.browser.stage import api, fail
from tests.support.local_api import fresh_database

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Page

    from tests.browser.chromium import Visit
    from tests.browser.stage import Stage

expect.set_options(timeout=PATIENCE_MS)


async def test_troubles_come_first_each_with_what_helps(visit: Visit, stage: Stage) -> None:
    page = await visit.open()
    troubles = page.get_by_role("list", name="Troubles")
    blocked = troubles.get_by_role("article").filter(has_text="Blocked by the exchange")
    await expect(blocked).to_contain_text("418 I'm a teapot")
    await expect(blocked).to_contain_text("collector connector unblock kraken")
    failed = troubles.get_by_role("article").filter(has_text="Jobs have failed")
    await expect(failed.get_by_role("link", name="Show jobs")).to_have_attribute(
        "href", "/jobs?exchange_id=kraken&state=failed"
    )
    count = await troubles.get_by_role("article").count()
    await expect(page.get_by_role("heading", name=re.compile("needs? you"))).to_contain_text(
        str(count)
    )
    first = await troubles.bounding_box()
    cards = await page.locator(".cards").bounding_box()
    assert first is not None
    assert cards is not None
    assert first["y"] < cards["y"]


async def test_a_block_is_lifted_after_a_question(visit: Visit, stage: Stage) -> None:
    page = await visit.open()
    card = page.get_by_role("article", name="kraken")
    await expect(card).to_contain_text("Blocked")
    await card.get_by_role("button", name="Lift").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(card).to_contain_text("Blocked")
    await card.get_by_role("button", name="Lift").click()
    await dialog.get_by_role("button", name="Lift the block").click()
    await expect(card).to_contain_text("Working")
    await expect(page.get_by_text("kraken may work again.")).to_be_visible()
    assert not (await stage.ask("GET", "/connectors/kraken"))["blocked"]
    again = {
        "blocked_until": await stage.database.now_ms() + DAY_MS,
        "blocked_for_ms": DAY_MS,
    }
    await stage.database.connectors.update_one({"exchange_id": "kraken"}, {"$set": again})


async def test_an_exchange_is_paused_and_resumed(visit: Visit, stage: Stage) -> None:
    page = await visit.open()
    card = page.get_by_role("article", name="fxcm")
    await card.get_by_role("button", name="Pause").click()
    await page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    await expect(card).to_contain_text("Paused")
    assert (await stage.ask("GET", "/connectors/fxcm"))["status"] == "paused"
    await card.get_by_role("button", name="Resume").click()
    await expect(card).to_contain_text("Working")


async def test_a_card_shows_budget_lag_errors_and_jobs_by_state(visit: Visit) -> None:
    page = await visit.open()
    card = page.get_by_role("article", name="simulated")
    await expect(card).to_contain_text("requests in 1 s")
    for words in ("Behind", "Errors", "Denied tokens"):
        await expect(card.locator("dt", has_text=words)).to_be_visible()
    await expect(card.locator(".budget")).to_contain_text("requests/s")
    done = card.get_by_role("link", name=re.compile("idle"))
    await done.click()
    await expect(page).to_have_url(re.compile(r"/jobs\?exchange_id=simulated&state=idle"))
    await expect(page.locator(".table.jobs tbody tr").first).to_contain_text("Idle")


async def test_workers_that_are_alive_are_listed(visit: Visit, stage: Stage) -> None:
    page = await visit.open()
    [worker] = (await stage.ask("GET", "/workers"))["items"]
    await expect(page.get_by_role("rowheader", name=worker["id"])).to_be_visible()


async def test_all_failed_jobs_are_run_again(visit: Visit, stage: Stage) -> None:
    page = await visit.open()
    trouble = page.get_by_role("article").filter(has_text="Jobs have failed")
    await trouble.get_by_role("button", name="Run all failed again").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("of kraken will be queued now")
    await dialog.get_by_role("button", name=re.compile("Run ")).click()
    await expect(page.get_by_text(re.compile(r"\d+ jobs? queued\."))).to_be_visible()
    await expect(trouble).to_have_count(0)
    await fail(stage.database, stage.jobs["failed"])


async def test_a_trouble_appears_while_one_looks(visit: Visit, stage: Stage) -> None:
    page = await visit.open()
    await page.wait_for_selector(".connection.live")
    await fail(stage.database, stage.jobs["failed"])
    trouble = page.get_by_role("article").filter(has_text="Jobs have failed")
    await expect(trouble).to_contain_text("has no market GONE/USD")


async def test_a_fresh_system_says_what_to_do_first(
    browser: Browser, mongo_uri: str, tmp_path: Path
) -> None:
    async with fresh_database(mongo_uri) as database:
        settings = {
            "COLLECTOR_MONGO_URI": mongo_uri,
            "COLLECTOR_MONGO_DB": database.raw.name,
            "COLLECTOR_DATA": str(tmp_path),
        }
        async with api(**settings) as (url, _), visiting(browser, url) as visit:
            page = await visit.open()
            await expect(page.get_by_text("Nothing is collected yet")).to_be_visible()
            await expect(page.get_by_text("All is well")).to_be_visible()
            for link, words in (
                ("Jobs", "There are no jobs yet"),
                ("Chart", "No bars are stored yet"),
                ("Prices", "No price stream is running"),
                ("Quality", "No stored series fits"),
                ("Missing ranges", "No stored series fits"),
                ("Quarantine", "No row was refused"),
                ("Overview", "Nothing is collected yet"),
            ):
                await page.get_by_role("link", name=link, exact=True).click()
                await expect(page.get_by_text(words)).to_be_visible()
            await page.get_by_role("link", name="Add a series").click()
            await _first_series(page)


async def _first_series(page: Page) -> None:
    """Connects the first exchange from nothing."""
    await page.get_by_label("Exchange").select_option("simulated")
    await page.get_by_role("button", name="Connect simulated").click()
    await expect(page.get_by_text("simulated is connected.")).to_be_visible()
    await expect(page.get_by_text("Its markets are not known yet")).to_be_visible()
