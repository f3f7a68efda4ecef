"""Prices: live ones with the age of their tick, streams, FXCM's budget and back-off."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.support.until import until

if TYPE_CHECKING:
    from tests.browser.chromium import Visit
    from tests.browser.stage import Stage


async def test_prices_change_while_one_looks_and_say_how_old_they_are(visit: Visit) -> None:
    page = await visit.open("/prices")
    row = page.locator(".table.prices tbody tr").filter(has_text="BTC/USDT")
    await expect(row.locator("time")).to_have_text(re.compile(r"\d+ s (ok|late|stale)"))
    before = await row.inner_text()

    async def changed() -> bool:
        return await row.locator("td").nth(2).inner_text() not in before

    await until(changed, "another price is shown", 60)


async def test_every_stream_has_its_state_and_silence(visit: Visit) -> None:
    page = await visit.open("/prices")
    card = page.get_by_role("region", name="Streams").get_by_role("article", name="simulated")
    await expect(card).to_contain_text(re.compile("Streaming|Idle|Recovering"))
    await expect(card).to_contain_text("Silent for")
    await expect(card).to_contain_text("Market open")
    fxcm = page.get_by_role("region", name="Streams").get_by_role("article", name="fxcm")
    await expect(fxcm).to_contain_text("Recovering")


async def test_fxcm_shows_its_budget_and_its_back_off(visit: Visit, stage: Stage) -> None:
    page = await visit.open("/prices")
    budget = page.get_by_role("region", name="History budget").get_by_role("article", name="fxcm")
    known = (await stage.ask("GET", "/connectors/fxcm"))["history_budget"]
    await expect(budget).to_contain_text(f"0 of {known['limit_60s']}")
    await expect(budget).to_contain_text("calls in an hour")
    pause = page.get_by_role("region", name="Back-off").locator("tbody tr")
    await expect(pause).to_contain_text("fxcm_history")
    await expect(pause).to_contain_text("45 s")
