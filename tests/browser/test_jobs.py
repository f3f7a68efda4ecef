"""Jobs: filters in the address, pages, and every action; the page of one job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Locator, Page

    from tests.browser.chromium import Visit
    from tests.browser.stage import Stage

MANY = 120
ROWS = ".table.jobs tbody tr"


@pytest.fixture(scope="module")
async def many(stage: Stage) -> AsyncIterator[list[str]]:
    """Jobs of an exchange that nobody works for; their ids, oldest first."""
    queue = JobQueue(stage.database)
    specs = [JobSpec("kraken", "count", f"C{number:03}/USD", "1m") for number in range(MANY)]
    ids = [str((await queue.add(spec))[0].id) for spec in specs]
    yield ids
    await stage.database.jobs.delete_many({"type": "count"})


def row(page: Page, job_id: str) -> Locator:
    return page.locator(f'tr[data-job="{job_id}"]')


async def test_filters_are_in_the_address_and_survive_reload_back_and_forward(
    visit: Visit, many: list[str]
) -> None:
    page = await visit.open("/jobs")
    await page.get_by_label("Exchange").select_option("kraken")
    await expect(page).to_have_url(re.compile("exchange_id=kraken"))
    await page.get_by_role("navigation", name="State").get_by_role("link", name="Queued").click()
    await expect(page).to_have_url(re.compile("state=queued"))
    await page.get_by_label("Search for a symbol").fill("c007")
    await expect(page.locator(ROWS)).to_have_count(1)
    await expect(page.locator(ROWS)).to_contain_text("C007/USD")
    await page.reload()
    await expect(page.locator(ROWS)).to_have_count(1)
    await expect(page.get_by_label("Search for a symbol")).to_have_value("c007")
    await expect(page.get_by_label("Exchange")).to_have_value("kraken")
    await page.locator(ROWS).get_by_role("link").click()
    await expect(page.get_by_role("heading", name="C007/USD 1m")).to_be_visible()
    await page.go_back()
    await expect(page.locator(ROWS)).to_have_count(1)
    await page.go_forward()
    await expect(page.get_by_role("heading", name="C007/USD 1m")).to_be_visible()


async def test_a_shared_address_shows_the_same_in_a_new_tab(visit: Visit, many: list[str]) -> None:
    page = await visit.open("/jobs?exchange_id=kraken&search=c01&order=oldest")
    await expect(page.locator(ROWS)).to_have_count(10)
    other = await page.context.new_page()
    await other.goto(page.url)
    await expect(other.locator(ROWS)).to_have_count(10)
    await expect(other.locator(ROWS).first).to_contain_text("C010/USD")


async def test_pages_go_forward_and_back(visit: Visit, many: list[str]) -> None:
    page = await visit.open("/jobs?exchange_id=kraken&type=count&order=oldest")
    pages = page.get_by_role("navigation", name="Pages")
    await expect(page.locator(ROWS).first).to_contain_text("C000/USD")
    await pages.get_by_role("link", name="Next").click()
    await expect(page.locator(ROWS).first).to_contain_text("C050/USD")
    await pages.get_by_role("link", name="Next").click()
    await expect(page.locator(ROWS).first).to_contain_text("C100/USD")
    await expect(page.locator(ROWS)).to_have_count(MANY - 100)
    await expect(pages.get_by_role("link", name="Next")).to_have_count(0)
    await pages.get_by_role("link", name="Before").click()
    await expect(page.locator(ROWS).first).to_contain_text("C050/USD")
    await pages.get_by_role("link", name="Before").click()
    await expect(page.locator(ROWS).first).to_contain_text("C000/USD")
    await expect(pages.get_by_role("link", name="Before")).to_have_count(0)
    await page.go_back()
    await expect(page.locator(ROWS).first).to_contain_text("C050/USD")


async def test_a_job_is_paused_resumed_run_and_deleted(
    visit: Visit, stage: Stage, many: list[str]
) -> None:
    page = await visit.open("/jobs?exchange_id=kraken&search=c119")
    mine = row(page, many[119])
    await mine.get_by_role("button", name="Pause").click()
    await expect(mine).to_contain_text("Paused")
    await mine.get_by_role("button", name="Resume").click()
    await expect(mine).to_contain_text("Queued")
    await stage.database.jobs.update_one(
        {"symbol": "C119/USD"}, {"$set": {"state": "idle", "next_run_at": 2**45}}
    )
    await page.reload()
    await expect(mine).to_contain_text("Idle")
    await mine.get_by_role("button", name="Run now").click()
    await expect(mine).to_contain_text("Queued")
    await mine.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(mine).to_contain_text("Deleted")
    found = await stage.ask("GET", "/jobs", status="deleted", symbol="C119/USD")
    assert len(found["items"]) == 1


async def test_chosen_jobs_are_changed_together_after_a_question(
    visit: Visit, stage: Stage, many: list[str]
) -> None:
    page = await visit.open("/jobs?exchange_id=kraken&search=c02&order=oldest")
    await expect(page.locator(ROWS)).to_have_count(10)
    for number in (20, 21, 22):
        await row(page, many[number]).get_by_role("checkbox").check()
    bar = page.get_by_role("group", name="Chosen jobs")
    await expect(bar).to_contain_text("3 jobs chosen")
    await bar.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("3 of 3 will change.")
    await dialog.get_by_role("button", name="Pause").click()
    await expect(page.get_by_text("3 jobs paused.")).to_be_visible()
    await expect(row(page, many[21])).to_contain_text("Paused")
    await expect(row(page, many[23])).to_contain_text("Queued")
    await expect(bar).to_have_count(0)


async def test_all_that_fit_are_changed_beyond_the_page(
    visit: Visit, stage: Stage, many: list[str]
) -> None:
    page = await visit.open("/jobs?exchange_id=kraken&type=count")
    await page.get_by_label("Choose all jobs of this page").check()
    bar = page.get_by_role("group", name="Chosen jobs")
    await expect(bar).to_contain_text("50 jobs chosen")
    await bar.get_by_role("button", name="Choose all that fit").click()
    await bar.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    left = len((await stage.ask("GET", "/jobs", type="count", limit=1000))["items"])
    assert left > 100
    await expect(dialog).to_contain_text(f"{left} of {left} will change.")
    await dialog.get_by_role("button", name="Cancel").click()
    assert len((await stage.ask("GET", "/jobs", type="count", limit=1000))["items"]) == left
    await bar.get_by_role("button", name="Pause").click()
    await dialog.get_by_role("button", name="Pause").click()

    async def all_paused() -> bool:
        paused = await stage.ask("GET", "/jobs", type="count", state="paused", limit=1000)
        return len(paused["items"]) == left

    await until(all_paused, "every job is paused", 60)


async def test_progress_moves_with_its_rate_date_and_time_left(visit: Visit, stage: Stage) -> None:
    page = await visit.open("/jobs?type=ohlcv_backfill&search=ethusdt")
    mine = row(page, stage.jobs["long"])
    await expect(mine.locator(".progress")).to_contain_text(re.compile(r"to \d+ \w+ \d{4}"))
    await expect(mine.locator(".progress")).to_contain_text("bars/s")
    await expect(mine.locator(".progress")).to_contain_text("left")
    before = await mine.locator(".progress-fill").bounding_box()
    assert before is not None

    async def further() -> bool:
        now = await mine.locator(".progress-fill").bounding_box()
        return now is not None and before is not None and now["width"] > before["width"]

    await until(further, "the bar grows while one looks", 60)


async def test_the_page_of_a_job_shows_cursor_lease_fence_and_runs(
    visit: Visit, stage: Stage
) -> None:
    page = await visit.open(f"/jobs/{stage.jobs['long']}")
    await expect(page.get_by_role("heading", name="ETH/USDT 1m")).to_be_visible()
    for group in ("Cursor", "Lease", "Schedule", "Counts"):
        await expect(page.get_by_role("region", name=group)).to_be_visible()
    lease = page.get_by_role("region", name="Lease")
    [worker] = (await stage.ask("GET", "/workers"))["items"]
    await expect(lease).to_contain_text(worker["id"])
    await expect(lease).to_contain_text("Fence")
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator(".page-head")).to_contain_text("Paused")
    await expect(page.get_by_role("region", name="Runs").locator("tbody tr").first).to_be_visible()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator(".page-head")).to_contain_text(re.compile("Running|Queued|Waits"))


async def test_a_failed_job_says_what_went_wrong_and_what_to_do(visit: Visit, stage: Stage) -> None:
    page = await visit.open(f"/jobs/{stage.jobs['failed']}")
    alert = page.get_by_role("alert").filter(has_text="GONE/USDT")
    await expect(alert).to_contain_text("What to do:")
    await expect(alert).to_contain_text("correct the job, or delete it")
    await expect(alert).to_contain_text("bad_request")
    await visit.open("/jobs?state=failed")
    await expect(page.get_by_role("button", name="Run all failed again")).to_be_visible()


async def test_a_job_that_is_not_there_is_said(visit: Visit) -> None:
    visit.allowed = ("404",)
    page = await visit.open(f"/jobs/{'0' * 24}")
    await expect(page.get_by_role("alert").first).to_contain_text("There is no job")
