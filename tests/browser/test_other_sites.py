"""A page of any other site changes nothing: forms, requests of every kind, and a rebound name."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from tests.browser.chromium import chromium, visiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Page

    from tests.browser.stage import Stage

EVIL = "evil.example"
ANYTHING = (".*",)
"""A browser complains about what it does not let a page do."""


@pytest.fixture(scope="module")
async def rebound() -> AsyncIterator[Browser]:
    """A browser for which the name of the other site leads to this machine."""
    async with chromium(f"--host-resolver-rules=MAP {EVIL} 127.0.0.1") as browser:
        yield browser


@asynccontextmanager
async def site(body: str) -> AsyncIterator[str]:
    """Another site's page, on a port of its own."""

    async def page(_request: web.Request) -> web.Response:
        return web.Response(text=f"<!doctype html><body>{body}</body>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    server = web.AppRunner(app)
    await server.setup()
    try:
        listening = web.TCPSite(server, "127.0.0.1", 0)
        await listening.start()
        port = server.addresses[0][1]
        yield f"http://{EVIL}:{port}/"
    finally:
        await server.cleanup()


async def state_of(stage: Stage) -> dict[str, Any]:
    """What an attack would change."""
    connector = await stage.ask("GET", "/connectors/simulated")
    jobs = await stage.ask("GET", "/jobs", status="deleted", limit=1000)
    return {
        "status": connector["status"],
        "limit": connector["rate_limit"],
        "deleted": len(jobs["items"]),
        "connectors": [
            each["exchange_id"] for each in (await stage.ask("GET", "/connectors"))["items"]
        ],
        "job": (await stage.ask("GET", f"/jobs/{stage.jobs['long']}"))["status"],
    }


async def answers(stage: Stage) -> Counter[tuple[str, str]]:
    """How many requests the API has answered, by route and status."""
    async with aiohttp.ClientSession() as session, session.get(f"{stage.url}/metrics") as answer:
        text = await answer.text()
    found: Counter[tuple[str, str]] = Counter()
    for line in text.splitlines():
        if match := re.match(
            r'collector_api_requests_total{.*route="(.+)",status="(.+)"} (\S+)', line
        ):
            found[match[1], match[2]] += round(float(match[3]))
    return found


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]
)
async def test_a_form_of_another_site_changes_nothing(
    rebound: Browser, stage: Stage, kind: str
) -> None:
    before = await state_of(stage)
    forms = "".join(
        f'<form id="f{at}" method="post" enctype="{kind}" target="t{at}" '
        f'action="{stage.url}{path}">'
        '<input name=\'{"exchange_id": "bybit", "x": "\' value=\'"}\'></form>'
        f'<iframe name="t{at}"></iframe>'
        for at, path in enumerate(
            (
                "/api/v1/connectors/simulated/pause",
                f"/api/v1/jobs/{stage.jobs['long']}/pause",
                "/api/v1/connectors",
                "/api/v1/jobs/remove",
            )
        )
    )
    async with site(forms) as url, visiting(rebound, url, allowed=ANYTHING) as visit:
        answered: list[int] = []
        visit.page.on("response", lambda response: answered.append(response.status))
        await visit.open("")
        for at in range(4):
            async with visit.page.expect_response(lambda each: "/api/v1/" in each.url) as sent:
                await visit.page.evaluate("at => document.getElementById(`f${at}`).submit()", at)
            assert (await sent.value).status in (403, 415)
    assert await state_of(stage) == before


ATTEMPTS = """async ([url, job]) => {
    const asked = [
        [`${url}/api/v1/connectors/simulated/pause`, {method: "POST"}],
        [`${url}/api/v1/connectors/simulated/pause`, {method: "POST", mode: "no-cors"}],
        [`${url}/api/v1/connectors`, {method: "POST", mode: "no-cors",
            body: new Blob(['{"exchange_id": "bybit"}'], {type: "text/plain"})}],
        [`${url}/api/v1/connectors`, {method: "POST",
            headers: {"Content-Type": "application/json"}, body: '{"exchange_id": "bybit"}'}],
        [`${url}/api/v1/jobs/${job}`, {method: "DELETE"}],
        [`${url}/api/v1/jobs/remove`, {method: "POST",
            headers: {"Content-Type": "application/json"}, body: '{"filter": {"all": true}}'}],
        [`${url}/api/v1/connectors`, {}],
        [`${url}/api/v1/events`, {}],
    ];
    const read = await Promise.all(asked.map(([where, how]) =>
        fetch(where, how).then((answer) => answer.text()).catch(() => "")));
    navigator.sendBeacon(`${url}/api/v1/jobs/${job}/pause`);
    navigator.sendBeacon(`${url}/api/v1/jobs/remove`, '{"filter": {"all": true}}');
    return read;
}"""


async def attempts(page: Page, target: str, stage: Stage) -> list[str]:
    read: list[str] = await page.evaluate(ATTEMPTS, [target, stage.jobs["long"]])
    return read


async def test_requests_of_another_site_change_and_read_nothing(
    rebound: Browser, stage: Stage
) -> None:
    before = await state_of(stage)
    async with site("") as url, visiting(rebound, url, allowed=ANYTHING) as visit:
        page = await visit.open("")
        read = await attempts(page, stage.url, stage)
        assert not any("exchange_id" in each for each in read), "nothing of ours was read"
        # Until what was sent without waiting has arrived, too.
        await page.evaluate("url => fetch(url, {mode: 'no-cors'}).catch(() => 0)", stage.url)
    assert await state_of(stage) == before


async def test_an_image_of_another_site_starts_no_report(rebound: Browser, stage: Stage) -> None:
    paths = ("/api/v1/reports/missing", "/api/v1/reports/validation", "/api/v1/coverage")
    images = [f"{stage.url}{path}" for path in paths]
    before = await answers(stage)
    async with site("") as url, visiting(rebound, url, allowed=ANYTHING) as visit:
        page = await visit.open("")
        await page.evaluate(
            """urls => Promise.all(urls.map((url) => new Promise((ended) => {
                const image = new Image();
                image.onload = image.onerror = ended;
                image.src = url;
            })))""",
            images,
        )
    after = await answers(stage) - before
    assert after["none", "403"] == len(paths)
    assert not {route for route, _ in after} & set(paths)


async def test_a_rebound_name_reaches_nothing(rebound: Browser, stage: Stage) -> None:
    before = await state_of(stage)
    port = stage.url.rpartition(":")[2]
    here = f"http://{EVIL}:{port}"
    async with visiting(rebound, here, allowed=ANYTHING) as visit:
        answer = await visit.page.goto(f"{here}/")
        assert answer is not None
        assert answer.status == 400, "not even the page"
        read = await attempts(visit.page, here, stage)
        assert read
        assert all("bad_host" in each for each in read if each)
        assert not any("simulated" in each for each in read)
    assert await state_of(stage) == before


async def test_another_site_cannot_show_the_dashboard_in_a_frame(
    rebound: Browser, stage: Stage
) -> None:
    frame = f'<iframe src="{stage.url}/"></iframe>'
    async with site(frame) as url, visiting(rebound, url, allowed=ANYTHING) as visit:
        page = await visit.open("")
        await page.wait_for_load_state("networkidle")
        inside = [each for each in page.frames if each is not page.main_frame]
        titles = [await each.title() for each in inside]
        assert not any("Collector" in each for each in titles)
