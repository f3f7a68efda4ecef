"""One browser and one stage for all tests, and a page for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import chromium, visiting
from tests.browser.stage import stage as on_stage
from tests.support.databases import new_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

    from tests.browser.chromium import Visit
    from tests.browser.stage import Stage


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
async def stage(
    browser: Browser,  # First, so that nothing is started where no browser is.
    mongo_uri: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Stage]:
    async with on_stage(mongo_uri, new_name(), tmp_path_factory.mktemp("lake")) as made:
        yield made


@pytest.fixture
async def visit(browser: Browser, stage: Stage) -> AsyncIterator[Visit]:
    """A page of the stage's dashboard, light and on a desk."""
    async with visiting(browser, stage.url) as visit:
        yield visit
