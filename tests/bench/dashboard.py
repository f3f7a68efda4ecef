"""How soon Jobs and Quality are painted with very many jobs and series, against an empty system."""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from playwright.async_api import async_playwright

from tests.bench.harness import Bench, Figure, in_turn, ratio
from tests.support.chromium import FLAGS, chromium_binary
from tests.support.crowd import fill_jobs, fill_lake
from tests.support.processes import Process, program

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import Browser

VIEWS = {
    "Jobs": ("/jobs", ".table.jobs tbody tr, main .nothing"),
    "Jobs, failed": ("/jobs?state=failed", ".table.jobs tbody tr, main .nothing"),
    "Jobs, searched": ("/jobs?search=c123", ".table.jobs tbody tr, main .nothing"),
    "Quality": ("/quality", ".strip, main .nothing"),
    "Overview": ("/", ".cards .card, main .first-steps"),
}
MOST_TIMES_EMPTY = 3.0
MOST_MEMORY_MB = 300
PAINTED = """(content) => {
    window.painted = new Promise((done) => {
        const look = () => {
            if (document.querySelector(content) === null) return;
            watch.disconnect();
            requestAnimationFrame(() => done(performance.now()));
        };
        const watch = new MutationObserver(look);
        watch.observe(document, {childList: true, subtree: true});
    });
}"""


async def run(bench: Bench) -> list[Figure]:
    jobs, series = bench.pick((100_000, 500), (20_000, 100))
    figures: list[Figure] = []
    async with AsyncExitStack() as stack:
        urls: dict[str, str] = {}
        processes: dict[str, Process] = {}
        for name, sizes in (("empty", (0, 0)), ("crowded", (jobs, series))):
            database = await stack.enter_async_context(bench.database())
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-lake-")))
            if sizes[0]:
                await fill_jobs(database, sizes[0])
                fill_lake(root, await database.now_ms(), sizes[1])
            settings = {
                "COLLECTOR_MONGO_URI": bench.uri,
                "COLLECTOR_MONGO_DB": database.raw.name,
                "COLLECTOR_DATA": str(root),
            }
            processes[name] = await stack.enter_async_context(
                program("api", "--port", "0", **settings)
            )
            urls[name] = await processes[name].address()
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(
            executable_path=chromium_binary(), args=list(FLAGS), headless=True
        )
        stack.push_async_callback(browser.close)
        rows: list[list[Any]] = []
        for name, (path, content) in VIEWS.items():
            contenders: dict[str, Callable[[], Any]] = {
                size: partial(_painted_ms, browser, url + path, content)
                for size, url in urls.items()
            }
            samples = await in_turn(contenders, rounds=bench.pick(9, 5))
            times = ratio(samples, "crowded", "empty")
            rows.append([name, *(median(each) for each in samples.values()), times])
            figures.append(
                Figure(f"dashboard.{name}: crowded / empty", times, at_most=MOST_TIMES_EMPTY)
            )
        memory = _peak_mb(processes["crowded"])
    bench.show(
        f"until painted, ms; {jobs:,} jobs, {series} series",
        ["", "empty", "crowded", "times"],
        rows,
    )
    figures.append(Figure("dashboard.memory of the API", memory, " MB", at_most=MOST_MEMORY_MB))
    return figures


async def _painted_ms(browser: Browser, url: str, content: str) -> float:
    """From the start of the navigation to the frame after the content has come."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = await context.new_page()
        await page.add_init_script(f"({PAINTED})({content!r})")
        await page.goto(url)
        return float(await page.evaluate("window.painted"))
    finally:
        await context.close()


def _peak_mb(process: Process) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024
