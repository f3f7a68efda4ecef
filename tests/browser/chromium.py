"""A real Chromium, and pages in it that report every error."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import async_playwright

from tests.support.chromium import FLAGS, chromium_binary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, ConsoleMessage, Page

DESK, PHONE = (1440, 900), (390, 844)
PATIENCE_MS = 60_000
"""Bounds a hang. No test waits for so long on any machine that works."""
AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text("utf-8")


def chromium_path() -> str:
    """Where Chromium is. Without one a test is skipped loudly, and in CI it fails."""
    found = chromium_binary()
    if found is not None:
        return found
    words = "no Chromium is installed: THE DASHBOARD IS NOT TESTED (apt-get install chromium)"
    if os.environ.get("CI"):
        pytest.fail(words)
    pytest.skip(words)


@asynccontextmanager
async def chromium(*flags: str) -> AsyncIterator[Browser]:
    """A browser of its own."""
    path = chromium_path()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=[*FLAGS, *flags], headless=True
        )
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Visit:
    """One page, and what it has complained about."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)
    allowed: tuple[str, ...] = ()
    """Patterns of complaints that a test brings about itself."""

    def note(self, words: str) -> None:
        if not any(re.search(each, words) for each in self.allowed):
            self.errors.append(words)

    async def open(self, path: str = "/") -> Page:
        await self.page.goto(self.url + path)
        return self.page

    async def violations(self) -> list[str]:
        """What axe finds on the page as it is, one line each."""
        await self.page.evaluate(AXE)
        found: dict[str, Any] = await self.page.evaluate(
            "axe.run(document, {resultTypes: ['violations']})"
        )
        return [
            f"{each['id']}: {each['help']}: {node['html'][:200]} {node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"]
        ]


@asynccontextmanager
async def visiting(
    browser: Browser,
    url: str,
    *,
    size: tuple[int, int] = DESK,
    dark: bool = False,
    allowed: tuple[str, ...] = (),
) -> AsyncIterator[Visit]:
    """A page in a context of its own. Fails at the end when the page has complained."""
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    visit = Visit(page, url, allowed=allowed)

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            visit.note(f"{message.type}: {message.text}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: visit.note(f"exception: {error}"))
    try:
        yield visit
    finally:
        await context.close()
    assert visit.errors == []
