"""The simulated exchange over plain HTTP, its back door, and as a process of its own."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

import aiohttp
import pyarrow as pa
import pytest

from collector.clock import ManualClock
from collector.durations import MINUTE_MS
from collector.simulated.faults.answers import Gateway, Hang, Latency
from collector.simulated.journal import read_journal
from collector.simulated.listing import listings
from collector.simulated.request_limit import Limit
from collector.simulated.server import SimulatedExchange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NOW = 1_700_000_059_999  # 19.999 s into a minute.
RUNNING = 1_700_000_040_000
START = RUNNING - 3000 * MINUTE_MS


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def exchange(clock: ManualClock) -> AsyncIterator[SimulatedExchange]:
    async with SimulatedExchange(clock=clock) as exchange:
        yield exchange


@pytest.fixture
async def http(exchange: SimulatedExchange) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(exchange.url) as session:
        yield session


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("klines?symbol=NOPE&interval=1m", 400, -1121),
        ("klines?symbol=BTCUSDT&interval=7m", 400, -1120),
        ("klines?symbol=BTCUSDT", 400, -1102),
        ("klines?symbol=BTCUSDT&interval=1m&startTime=soon", 400, -1100),
        ("klines?symbol=BTCUSDT&interval=1m&limit=0", 400, -1130),
        ("klines?symbol=%5B%5D&interval=1m", 400, -1121),
        ("ticker/24hr?symbols=nonsense", 400, -1100),
        ("nothing", 404, -1000),
    ],
)
async def test_bad_questions_are_refused_as_binance_does(
    http: aiohttp.ClientSession, path: str, status: int, code: int
) -> None:
    async with http.get(f"/api/v3/{path}") as answer:
        assert answer.status == status
        assert (await answer.json())["code"] == code


async def test_used_weight_is_told_and_starts_anew_with_the_minute(
    http: aiohttp.ClientSession, clock: ManualClock
) -> None:
    async def used() -> str:
        async with http.get("/api/v3/klines?symbol=BTCUSDT&interval=1m&limit=1") as answer:
            return answer.headers["X-MBX-USED-WEIGHT-1M"]

    assert [await used(), await used()] == ["2", "4"]
    clock.advance(60)
    assert await used() == "2"


async def test_ten_thousand_markets_are_listed(clock: ManualClock) -> None:
    async with (
        SimulatedExchange(clock=clock, listed=listings(10_000)) as exchange,
        aiohttp.ClientSession(exchange.url) as http,
    ):
        async with http.get("/api/v3/exchangeInfo") as answer:
            symbols = (await answer.json())["symbols"]
        assert 9_000 < len(symbols) <= 10_000  # Some are listed only after NOW.
        async with http.get("/api/v3/exchangeInfo?symbol=SIM00001USDT") as answer:
            assert len((await answer.json())["symbols"]) == 1


async def test_a_limit_is_enforced_over_any_window(clock: ManualClock) -> None:
    limit = Limit(requests=3, period_ms=5000, enforce=True, ban_after=2, ban_seconds=60)
    async with (
        SimulatedExchange(clock=clock, limit=limit) as exchange,
        aiohttp.ClientSession(exchange.url) as http,
    ):
        statuses, waits = [], []
        for step in (0, 1, 1, 3, 1, 0, 61):
            clock.advance(step)
            async with http.get("/api/v3/ping") as answer:
                statuses.append(answer.status)
                waits.append(answer.headers.get("Retry-After"))
        # The fifth comes 6 s after the first, but less than 5 s after the second.
        assert statuses == [200, 200, 200, 200, 200, 429, 200]
        assert waits[5] == "1"
        summary = exchange.journal.summary(limit=3, period_ms=5000)
        assert (summary["violations"], summary["flagged"], summary["max_in_window"]) == (1, 1, 4)


async def test_a_late_answer_holds_back_nobody_else(
    exchange: SimulatedExchange, http: aiohttp.ClientSession
) -> None:
    exchange.faults.add(Latency(ms=60_000, count=1))
    late = asyncio.ensure_future(http.get("/api/v3/ping"))
    async with asyncio.timeout(120):
        while not exchange.journal.since():
            await asyncio.sleep(0)
    async with http.get("/api/v3/ping") as answer:
        assert answer.status == 200
    assert [entry.status for entry in exchange.journal.since()] == [0, 200]
    assert not late.done()
    late.cancel()


async def test_hanging_requests_do_not_keep_the_exchange_from_stopping() -> None:
    async with aiohttp.ClientSession() as http:
        async with SimulatedExchange(faults=[Hang()]) as exchange:
            asked = asyncio.ensure_future(http.get(f"{exchange.url}/api/v3/ping"))
            async with asyncio.timeout(120):
                while not exchange.journal.since():
                    await asyncio.sleep(0)
        with pytest.raises(aiohttp.ClientError):
            await asked


async def test_a_gateway_has_none_of_the_exchanges_headers() -> None:
    async with (
        SimulatedExchange(faults=[Gateway(count=1)]) as exchange,
        aiohttp.ClientSession(exchange.url) as http,
    ):
        told = []
        for _ in range(2):
            async with http.get("/api/v3/ping") as answer:
                told.append((answer.status, "X-MBX-USED-WEIGHT-1M" in answer.headers))
        assert told == [(404, False), (200, True)]


async def test_faults_are_switched_over_http(http: aiohttp.ClientSession) -> None:
    async with http.post("/sim/faults", json={"kind": "clock_drift", "ms": 900}) as answer:
        (number,) = (await answer.json())["ids"]
    async with http.get("/api/v3/time") as answer:
        assert await answer.json() == {"serverTime": NOW + 900}
    async with http.get("/sim/faults") as answer:
        assert (await answer.json())["faults"] == [
            {
                "id": number,
                "kind": "clock_drift",
                "endpoint": "time",
                "probability": 1.0,
                "ms": 900,
                "struck": 1,
            }
        ]
    async with http.put("/sim/faults", json=[{"kind": "html"}, {"kind": "hang"}]) as answer:
        assert len((await answer.json())["faults"]) == 2
    async with http.delete("/sim/faults") as answer:
        assert await answer.json() == {"faults": []}
    async with http.get("/api/v3/time") as answer:
        assert await answer.json() == {"serverTime": NOW}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "faults", '{"kind": "gremlins"}', 400),
        ("POST", "faults", "not json", 400),
        ("GET", "truth?symbol=NOPE&start=0&end=1", None, 400),
        ("GET", "truth?symbol=BTCUSDT", None, 400),
        ("GET", "summary?limit=many", None, 400),
        ("GET", "nowhere", None, 404),
    ],
)
async def test_the_back_door_says_what_is_wrong(
    http: aiohttp.ClientSession, method: str, path: str, body: str | None, status: int
) -> None:
    async with http.request(method, f"/sim/{path}", data=body) as answer:
        assert answer.status == status
        assert (await answer.json())["error"]


async def test_journal_summary_and_truth_over_http(
    exchange: SimulatedExchange, http: aiohttp.ClientSession
) -> None:
    for _ in range(3):
        async with http.get("/api/v3/klines?symbol=BTCUSDT&interval=1m&limit=2") as answer:
            await answer.read()
    async with http.get("/sim/journal", params={"since": 1}) as answer:
        page = await answer.json()
    assert [entry["seq"] for entry in page["entries"]] == [2, 3]
    assert page["next"] == 3
    async with http.get("/sim/summary", params={"limit": 2, "period_ms": 1000}) as answer:
        summary = await answer.json()
    assert (summary["requests"], summary["max_in_window"], summary["violations"]) == (3, 3, 1)
    async with http.delete("/sim/journal") as answer:
        assert (await answer.json())["next"] == 3
    assert exchange.journal.since() == []

    span: dict[str, str | int] = {
        "symbol": "BTC/USDT",
        "interval": "5m",
        "start": START,
        "end": RUNNING,
    }
    truth = exchange.truth.bars("BTC/USDT", "5m", START, RUNNING)
    async with http.get("/sim/truth", params=span) as answer:
        columns = await answer.json()
    assert columns == {name: column.tolist() for name, column in truth.columns().items()}
    async with http.get("/sim/truth", params={**span, "format": "arrow"}) as answer:
        table = pa.ipc.open_stream(await answer.read()).read_all()
    assert table.equals(truth.arrow())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_as_a_process_it_says_where_it_is_and_ends_well(
    tmp_path: Path, number: signal.Signals
) -> None:
    journal = tmp_path / "journal.jsonl"
    options = ["--port", "0", "--symbols", "7", "--latency-ms", "1", "--limit", "1", "--enforce"]
    options += ["--journal", str(journal), "--listed", "2024-01-01"]
    faults = '[{"kind": "late_arrival", "ms": 1}, {"kind": "html", "endpoint": "ping"}]'
    options += ["--faults", faults]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "collector.simulated", *options),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode().strip()
        assert line.startswith("simulated exchange at http://127.0.0.1:")
        async with aiohttp.ClientSession(line.split()[-1]) as http:
            async with http.get("/api/v3/ping") as answer:
                assert (await answer.read()).startswith(b"<!DOCTYPE html>")
            async with http.get("/api/v3/exchangeInfo") as answer:
                assert answer.status == 429
        process.send_signal(number)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    entries = read_journal(journal)
    assert [(entry.status, entry.faults) for entry in entries] == [
        (200, ("late_arrival", "latency", "html")),
        (429, ("late_arrival",)),
    ]


async def test_a_port_that_is_taken_is_an_error(
    exchange: SimulatedExchange, tmp_path: Path
) -> None:
    port = int(exchange.url.rsplit(":", 1)[1])
    second = SimulatedExchange(port=port, journal_path=tmp_path / "journal.jsonl")
    with pytest.raises(OSError, match="in use"):
        await second.start()
