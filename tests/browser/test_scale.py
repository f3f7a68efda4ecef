"""Thousands of jobs and many series: a view asks and shows no more than on an empty system.

How long that takes is measured by a benchmark, `make bench dashboard`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import visiting
from tests.support.crowd import fill_jobs, fill_lake
from tests.support.local_api import fresh_database, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Request

JOBS, SERIES = 6_000, 60
MOST_BYTES = 250_000
MOST_ROWS = 50
VIEWS = {
    "/jobs": (".table.jobs tbody tr", 6),
    "/jobs?state=failed": (".table.jobs tbody tr", 6),
    "/jobs?search=c14": (".table.jobs tbody tr", 6),
    "/quality": (".strip", 6),
    "/quality?show=missing": (".table tbody tr", 6),
    "/": (".cards .card", 6),
}
"""For each address what shows that it is painted, and how many requests to the API that takes: the
key's role, four of the fleet, and its own."""


@pytest.fixture(scope="module")
async def crowded(
    browser: Browser, mongo_uri: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    root = tmp_path_factory.mktemp("crowd")
    async with fresh_database(mongo_uri) as database:
        await fill_jobs(database, JOBS)
        fill_lake(root, await database.now_ms(), SERIES)
        async with serving(database, root) as client:
            yield str(client.session._base_url).rstrip("/")


@pytest.mark.parametrize("path", VIEWS)
async def test_a_crowd_costs_what_a_page_of_it_costs(
    browser: Browser, crowded: str, path: str
) -> None:
    content, most = VIEWS[path]
    async with visiting(browser, crowded) as visit:
        finished: list[Request] = []
        visit.page.on("requestfinished", lambda request: finished.append(request))
        page = await visit.open(path)
        await page.wait_for_selector(content)
        asked = [each for each in finished if "/api/v1/" in each.url and "events" not in each.url]
        sizes = [(await each.sizes())["responseBodySize"] for each in asked]
        assert len(asked) <= most, [each.url for each in asked]
        assert sum(sizes) < MOST_BYTES
        assert await page.locator("tbody tr").count() <= 2 * MOST_ROWS
