"""Keyboard, themes, and what does not move while one looks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

if TYPE_CHECKING:
    from tests.browser.chromium import Visit

FOCUS = "getComputedStyle(document.activeElement).outlineStyle"


async def test_the_first_tab_leads_past_the_navigation(visit: Visit) -> None:
    page = await visit.open("/jobs")
    await page.wait_for_selector(".table.jobs tbody tr")
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    await expect(skip).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    inside = "document.getElementById('main').contains(document.activeElement)"
    assert await page.evaluate(inside)
    assert await page.evaluate(FOCUS) == "solid", "one sees where one is"


async def test_keys_lead_to_every_view_and_the_list_of_keys(visit: Visit) -> None:
    page = await visit.open("/")
    await page.wait_for_selector(".cards .card")
    for key, path in (
        ("j", "/jobs"),
        ("q", "/quality"),
        ("p", "/prices"),
        ("a", "/add"),
        ("o", "/"),
    ):
        await page.keyboard.press("g")
        await page.keyboard.press(key)
        await expect(page).to_have_url(re.compile(f"{path}$"))
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_contain_text("Go to Jobs")
    found = await visit.violations()
    assert not found, "\n".join(found)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_shortcuts_can_be_switched_off(visit: Visit) -> None:
    page = await visit.open("/")
    await page.wait_for_selector(".cards .card")
    await page.get_by_role("button", name="Keyboard shortcuts").click()
    await page.get_by_label("Shortcuts are on").uncheck()
    await page.get_by_role("button", name="Close").click()
    await page.keyboard.press("g")
    await page.keyboard.press("j")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url.endswith("/")


async def test_a_dialog_gives_the_focus_back(visit: Visit) -> None:
    page = await visit.open("/")
    button = page.get_by_role("article", name="simulated").get_by_role("button", name="Pause")
    await button.focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(button).to_be_focused()


async def test_a_chosen_theme_stays(visit: Visit) -> None:
    page = await visit.open("/")
    await page.wait_for_selector(".cards .card")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(ground)
    await page.get_by_role("button", name="Theme: as the system").click()
    await page.get_by_role("button", name="Theme: light").click()
    await expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    dark = await page.evaluate(ground)
    assert dark != light
    await page.reload()
    await page.wait_for_selector(".cards .card")
    assert await page.evaluate(ground) == dark


async def test_views_are_links_that_say_where_one_is(visit: Visit) -> None:
    page = await visit.open("/quality")
    await page.wait_for_selector(".strip")
    nav = page.get_by_role("navigation", name="Views")
    names = [await each.inner_text() for each in await nav.get_by_role("link").all()]
    assert [name.split("\n")[0] for name in names] == [
        "Overview",
        "Jobs",
        "Chart",
        "Quality",
        "Prices",
        "Add",
    ]
    current = nav.locator('[aria-current="page"]')
    await expect(current).to_have_text("Quality")
    await expect(page).to_have_title("Quality · Collector")
    await nav.get_by_role("link", name="Prices").click()
    await expect(current).to_have_text("Prices")
    await expect(page).to_have_title("Prices · Collector")


async def test_moments_are_local_and_have_utc_beside_them(visit: Visit) -> None:
    page = await visit.open("/jobs?type=ohlcv_incremental&search=btcusdt")
    moment = page.locator(".table.jobs tbody time").first
    await expect(moment).to_have_attribute(
        "title", re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$")
    )


async def test_live_updates_move_nothing(visit: Visit) -> None:
    page = await visit.open("/")
    for shown in (".connection.live", ".cards .card .share-bar", ".headline", "table tbody tr"):
        await page.wait_for_selector(shown)
    await page.evaluate(
        """() => {
            window.shifts = 0;
            new PerformanceObserver((list) => {
                for (const entry of list.getEntries()) window.shifts += entry.value;
            }).observe({type: "layout-shift", buffered: false});
        }"""
    )
    asked = 0
    async with page.expect_response(lambda response: "/census" in response.url):
        asked += 1
    async with page.expect_response(lambda response: "/census" in response.url):
        asked += 1
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    assert asked == 2
    assert await page.evaluate("window.shifts") < 0.02
