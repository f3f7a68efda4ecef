"""Names and errors that an exchange wrote as markup: every view shows them as the text they are."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.durations import DAY_MS, MINUTE_MS
from collector.exchanges.port import Market, Markets, Ticker
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.answer import Rejected
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.markets.book import MarketBook
from collector.markets.tickers import TickerBoard
from collector.mongo.client import Database
from collector.store.store import Store
from migrations import runner
from tests.browser.chromium import visiting
from tests.browser.stage import Stage, api, fail
from tests.support.databases import new_name
from tests.support.fleet_documents import beat, live_price

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser

MARKUP = "<img src=x onerror=window.owned=1><script>window.owned=1</script>"
BASE = "<IMG/SRC=X><B>[/A]"
SYMBOL = f"{BASE}/USDT"
EXCHANGE = "simulated"


@pytest.fixture(scope="module")
async def hostile(
    browser: Browser, mongo_uri: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """A collector whose every text from outside is markup; `jobs["failed"]` is one that failed."""
    root, name = tmp_path_factory.mktemp("lake"), new_name()
    async with Database(mongo_uri, name) as database:
        await database.read_server_clock()
        await runner.up(database)
        settings = {
            "COLLECTOR_MONGO_URI": mongo_uri,
            "COLLECTOR_MONGO_DB": name,
            "COLLECTOR_DATA": str(root),
        }
        failed = await write(database, root)
        async with api(**settings) as (url, _):
            yield Stage(url, "", database, None, settings, {"failed": failed})  # type: ignore[arg-type]
        await database.raw.client.drop_database(name)


async def write(database: Database, root: Path) -> str:
    """Fills every collection and the lake; returns the id of a job that failed."""
    now_ms = await database.now_ms()
    await ConnectorRegistry(database).ensure(EXCHANGE, Limits(6, 1_000))
    stopped = {
        "blocked_until": now_ms + DAY_MS,
        "blocked_for_ms": DAY_MS,
        "blocked_at": now_ms,
        "blocked_reason": MARKUP,
        "notes": MARKUP,
        "circuit.failing": {"count": 9, "since": now_ms - DAY_MS, "reason": MARKUP},
    }
    await database.connectors.update_one({"exchange_id": EXCHANGE}, {"$set": stopped})
    market = Market(SYMBOL, MARKUP, BASE, "USDT")
    await MarketBook(database).save(Markets(EXCHANGE, (market,), ("1m", "1h")))
    await TickerBoard(database).save(EXCHANGE, [Ticker(SYMBOL, 1.0, None, 1.0, 1.0, ts=now_ms)])
    cursor = Cursor(since_ms=now_ms - now_ms % MINUTE_MS)
    job, _ = await JobQueue(database).add(
        JobSpec(EXCHANGE, "ohlcv_incremental", SYMBOL, "1m", cursor=cursor)
    )
    await fail(database, str(job.id))
    await database.jobs.update_one({"_id": job.id}, {"$set": {"stats.last_error": MARKUP}})
    for each in (live_price(EXCHANGE, SYMBOL), beat(EXCHANGE)):
        key = f"{each['kind']}|{EXCHANGE}"
        await database.raw["live"].insert_one({**each, "_id": key, "fence": 1, "seen_at": now_ms})
    series, store = Series.of(EXCHANGE, SYMBOL, "1m"), Store(root)
    begin = now_ms - now_ms % MINUTE_MS - 60 * MINUTE_MS
    bars = [(begin + n * MINUTE_MS, 1.0, 2.0, 0.5, 1.5, 10.0) for n in range(10)]
    covered = Interval(begin, begin + 20 * MINUTE_MS)
    store.append_page(series, CandleBatch.of(bars), covered, fence=1, known_at=now_ms)
    row = (begin, 5.0, 4.0, 6.0, 5.0, 1.0)
    store.quarantine(series, [Rejected("ohlc", begin, row)], fence=1, known_at=now_ms)
    return str(job.id)


VIEWS = {
    "overview": ("/", MARKUP),
    "jobs": ("/jobs", SYMBOL),
    "search": (f"/jobs?search={quote(SYMBOL)}", SYMBOL),
    "job": ("/jobs/{failed}", MARKUP),
    "chart": (f"/chart?exchange_id={EXCHANGE}&symbol={quote(SYMBOL)}&timeframe=1m", SYMBOL),
    "unknown": (f"/chart?exchange_id={EXCHANGE}&symbol={quote(MARKUP)}&timeframe=1m", MARKUP),
    "quality": ("/quality", SYMBOL),
    "missing": ("/quality?show=missing", SYMBOL),
    "quarantine": ("/quality?show=quarantine", SYMBOL),
    "prices": ("/prices", SYMBOL),
    "add": (f"/add?exchange_id={EXCHANGE}", SYMBOL),
}


@pytest.mark.parametrize("name", VIEWS)
async def test_a_view_shows_markup_as_text(browser: Browser, hostile: Stage, name: str) -> None:
    path, words = VIEWS[name]
    # The browser reports that no symbol can be written so.
    allowed = ("status of 422",) if name == "unknown" else ()
    async with visiting(browser, hostile.url, allowed=allowed) as visit:
        page = await visit.open(path.format(**hostile.jobs))
        shown = "words => document.body.innerText.includes(words)"
        await page.wait_for_function(shown, arg=words)
        assert await page.evaluate("window.owned") is None
        assert await page.locator("main img, main script, main b").count() == 0


async def test_the_browser_makes_markup_of_no_text(browser: Browser, hostile: Stage) -> None:
    async with visiting(browser, hostile.url, allowed=("TrustedHTML", "Trusted")) as visit:
        page = await visit.open("/")
        await page.wait_for_selector(".cards .card")
        for attempt in (
            "document.body.innerHTML = '<b>x</b>'",
            "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
            "trustedTypes.createPolicy('default', {createHTML: (text) => text})",
        ):
            refused = f"() => {{ try {{ {attempt}; }} catch (error) {{ return error.name; }} }}"
            assert await page.evaluate(refused) == "TypeError"
