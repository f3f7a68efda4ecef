"""A page that the simulated exchange keeps ready is the page it would make up anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from collector.clock import ManualClock
from collector.durations import MINUTE_MS
from collector.simulated import venue
from collector.simulated.faults.history import Missing, NoTrade, Revision
from collector.simulated.server import SimulatedExchange

if TYPE_CHECKING:
    from collector.simulated.faults.record import Fault

RUNNING = 1_700_000_040_000
PAST, RECENT = RUNNING - 500 * MINUTE_MS, RUNNING - 99 * MINUTE_MS


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bars each page had that was made up."""
    pages: list[int] = []

    def counted(bars: Any, frame: Any) -> bytes:
        pages.append(len(bars))
        return page_json(bars, frame)

    page_json = venue.page_json
    monkeypatch.setattr(venue, "page_json", counted)
    return pages


async def page(exchange: SimulatedExchange, start_ms: int) -> bytes:
    ask = f"{exchange.url}/api/v3/klines?symbol=BTCUSDT&interval=1m&limit=100&startTime={start_ms}"
    async with aiohttp.ClientSession() as session, session.get(ask) as answer:
        return await answer.read()


async def test_a_past_page_is_made_up_once(made: list[int]) -> None:
    clock = ManualClock(RUNNING + 20_000)
    async with SimulatedExchange(clock=clock, ready_pages=1) as exchange:
        first = await page(exchange, PAST)
        assert await page(exchange, PAST) == first
        assert made == [100]
        other = await page(exchange, PAST + MINUTE_MS)
        assert other != first
        assert await page(exchange, PAST) == first, "one page is kept, the last one"
        assert made == [100] * 3


async def test_a_page_with_the_running_bar_is_never_kept(made: list[int]) -> None:
    clock = ManualClock(RUNNING + 20_000)
    async with SimulatedExchange(clock=clock, ready_pages=10) as exchange:
        young = await page(exchange, RECENT)
        clock.advance(30)
        assert await page(exchange, RECENT) != young
        assert made == [100, 100]


@pytest.mark.parametrize("fault", [NoTrade(ratio=0.5), Missing(ratio=0.5), Revision(ratio=1.0)])
async def test_a_history_that_looks_different_makes_all_pages_anew(
    made: list[int], fault: Fault
) -> None:
    clock = ManualClock(RUNNING + 20_000)
    async with SimulatedExchange(clock=clock, ready_pages=10) as exchange:
        plain = await page(exchange, PAST)
        exchange.faults.add(fault)
        spoilt = await page(exchange, PAST)
        assert len(made) == 2
        assert (spoilt == plain) == isinstance(fault, Revision), "old bars are not revised"
        await page(exchange, PAST)
        assert len(made) == (3 if isinstance(fault, Revision) else 2)
