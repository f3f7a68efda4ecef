"""Login and roles: a key is asked for, kept in the tab, and decides what can be done."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.chromium import visiting
from tests.browser.stage import KEYS, api, with_keys

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Page

    from tests.browser.stage import Stage

REFUSED = ("401", "403")
DESTRUCTIVE = re.compile("Delete|Remove")
CHANGING = re.compile("^(Run now|Pause|Resume|Lift|Repair|Run all|Delete)")


@pytest.fixture(scope="module")
async def locked(stage: Stage) -> AsyncIterator[str]:
    """The same collector behind an API that asks for a key."""
    async with api(**with_keys(stage.settings)) as (url, _):
        yield url


async def sign_in(page: Page, role: str) -> None:
    await page.get_by_label("Key", exact=True).fill(KEYS[role])
    await page.get_by_role("button", name="Sign in").click()


async def test_without_a_key_one_is_asked_for_and_then_led_on(
    browser: Browser, locked: str
) -> None:
    async with visiting(browser, locked, allowed=REFUSED) as visit:
        page = await visit.open("/jobs?state=idle")
        await expect(page).to_have_url(re.compile("/login"))
        await page.get_by_label("Key", exact=True).fill("no such key")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert").first).to_contain_text("There is no such key.")
        found = await visit.violations()
        assert not found, "\n".join(found)
        await sign_in(page, "operator")
        await expect(page).to_have_url(re.compile(r"/jobs\?state=idle"))
        await expect(page.locator(".table.jobs tbody tr").first).to_contain_text("Idle")


async def test_the_key_is_in_no_address_and_in_no_lasting_storage(
    browser: Browser, locked: str
) -> None:
    async with visiting(browser, locked, allowed=REFUSED) as visit:
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(request.url))
        page = await visit.open()
        await sign_in(page, "admin")
        await expect(page.locator(".cards .card").first).to_be_visible()
        assert not [url for url in asked if KEYS["admin"] in url]
        kept = await page.evaluate("[JSON.stringify(localStorage), document.cookie]")
        assert KEYS["admin"] not in str(kept)
        await page.reload()
        await expect(page.locator(".cards .card").first).to_be_visible()
        other = await page.context.new_page()
        await other.goto(locked)
        await expect(other).to_have_url(re.compile("/login"))
        await page.get_by_role("button", name="Sign out").click()
        await expect(page).to_have_url(re.compile("/login"))
        assert await page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
async def test_buttons_are_those_of_the_role(
    browser: Browser, stage: Stage, locked: str, role: str
) -> None:
    async with visiting(browser, locked, allowed=REFUSED) as visit:
        page = await visit.open()
        await sign_in(page, role)
        await expect(page.locator(".cards .card").first).to_be_visible()
        changing = page.get_by_role("button", name=CHANGING)
        await expect(changing).to_have_count(0) if role == "viewer" else await expect(
            changing.first
        ).to_be_visible()
        for path, content in (
            ("/jobs", ".table.jobs tbody tr"),
            (f"/jobs/{stage.jobs['failed']}", ".fact-groups"),
            ("/quality?show=missing", ".table tbody tr"),
        ):
            await page.evaluate("path => history.pushState(null, '', path)", path)
            await page.reload()
            await page.wait_for_selector(content)
            deleting = await page.get_by_role("button", name=DESTRUCTIVE).count()
            changes = await page.get_by_role("button", name=CHANGING).count()
            assert bool(changes) == (role != "viewer"), path
            assert bool(deleting) == (role == "admin" and "jobs" in path), path
        add = page.get_by_role("navigation", name="Views").get_by_role("link", name="Add")
        assert await add.count() == (role != "viewer")


async def test_the_api_refuses_what_no_button_offers(
    browser: Browser, stage: Stage, locked: str
) -> None:
    async with visiting(browser, locked, allowed=REFUSED) as visit:
        page = await visit.open()
        await sign_in(page, "viewer")
        await expect(page.locator(".cards .card").first).to_be_visible()
        job = f"/api/v1/jobs/{stage.jobs['long']}"
        statuses = await page.evaluate(
            """async ([key, asked]) => Promise.all(asked.map(async ([method, path]) =>
                (await fetch(path, {method, headers: {Authorization: `Bearer ${key}`}})).status
            ))""",
            [
                KEYS["viewer"],
                [
                    ["DELETE", job],
                    ["POST", f"{job}/pause"],
                    ["POST", "/api/v1/connectors/simulated/pause"],
                    ["POST", "/api/v1/connectors/kraken/unblock"],
                ],
            ],
        )
        assert statuses == [403] * 4
    assert (await stage.ask("GET", f"/jobs/{stage.jobs['long']}"))["status"] == "active"
    assert (await stage.ask("GET", "/connectors/simulated"))["status"] == "active"
