"""The documentation as a site: built, opened in a browser without a server, and searched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

from api.app import all_routes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "-c", "docs/site"]
    built = subprocess.run(
        [*command, ".", out], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return out


def test_every_route_is_in_the_reference(site: Path) -> None:
    text = (site / "docs" / "rest-reference.html").read_text("utf-8")
    missing = [each.path for each in all_routes() if f"{each.method} {each.path}" not in text]
    assert missing == ["/openapi.json"], "which does not describe itself"


async def test_it_is_read_and_searched_without_a_server_or_another_host(site: Path) -> None:
    program = shutil.which("chromium")
    if program is None and not os.environ.get("CI"):
        pytest.skip("NO BROWSER: chromium is not installed, the site was NOT opened")
    assert program is not None, "CI needs chromium"
    asked: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = await browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        await page.goto((site / "index.html").as_uri())
        await page.wait_for_url("**/docs/index.html")
        for name in ("README.html", "docs/quickstart.html", "docs/job-states.html"):
            await page.goto((site / name).as_uri())
        await page.goto((site / "search.html").as_uri() + "?q=backpressure")
        await page.locator("ul.search li a").first.wait_for()
        found = await page.locator("ul.search li a").all_inner_texts()
        await browser.close()
    assert any("Publication" in title for title in found), found
    assert {url.partition(":")[0] for url in asked} == {"file"}
