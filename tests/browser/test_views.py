"""Every view, light and dark: it shows something, axe finds nothing, the console stays empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import PHONE, visiting

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from tests.browser.chromium import Visit
    from tests.browser.stage import Stage

VIEWS = {
    "overview": ("/", ".cards .card"),
    "jobs": ("/jobs", ".table.jobs tbody tr"),
    "job": ("/jobs/{failed}", ".panel.bad"),
    "chart": ("/chart?exchange_id=simulated&symbol=SOL/USDT&timeframe=1m", "canvas"),
    "pair": ("/chart?network=riemann&base=1:GOLD&quote=1:OIL", "canvas"),
    "quality": ("/quality", ".strip"),
    "missing": ("/quality?show=missing", ".table tbody tr"),
    "quarantine": ("/quality?show=quarantine", ".table tbody tr"),
    "checks": ("/quality?show=validation", ".nothing"),
    "prices": ("/prices", ".table.prices tbody tr"),
    "add": ("/add", ".market-list label"),
}
TOO_WIDE = """() => {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    const wide = (node) => node.getBoundingClientRect().right > innerWidth + 1;
    return [...document.querySelectorAll("main *")].filter(wide).map((node) => node.outerHTML);
}"""


@pytest.mark.parametrize("name", VIEWS)
async def test_a_view_is_whole_and_open_to_everyone_light_and_dark(
    visit: Visit, stage: Stage, name: str
) -> None:
    path, content = VIEWS[name]
    page = await visit.open(path.format(**stage.jobs))
    await page.wait_for_selector(content)
    await page.wait_for_selector(".connection.live")
    colours = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        found = await visit.violations()
        assert not found, scheme + "\n".join(found)
        colours.append(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]


@pytest.mark.parametrize("name", ["overview", "jobs", "chart", "quality", "prices", "add"])
async def test_a_phone_shows_all_of_it_without_scrolling_sideways(
    browser: Browser, stage: Stage, name: str
) -> None:
    path, content = VIEWS[name]
    async with visiting(browser, stage.url, size=PHONE) as visit:
        page = await visit.open(path)
        await page.wait_for_selector(content)
        assert await page.evaluate(TOO_WIDE) == []
        nav = page.get_by_role("navigation", name="Views")
        assert await nav.get_by_role("link").count() == 6
        found = await visit.violations()
        assert not found, "\n".join(found)
