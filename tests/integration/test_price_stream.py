"""From a `price_stream` job to the last prices, heartbeat and market status in `live`."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from collector.cli.board import board
from collector.connectors.connector import Limits
from collector.errors import LeaseLost
from collector.jobs import schedule
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.jobs.settlement import ASKED_LATER
from collector.jobs.states import State
from collector.market.timeframe import Timeframe
from collector.operations.shown.job import shown_job
from collector.simulated.faults.socket import SocketDisconnect, SocketSilence
from collector.streams.live_board import LiveBoard
from collector.streams.publisher import HeartbeatMessage, PriceSnapshot, SnapPrice
from tests.support.local_collector import MINUTE, SYMBOL, Collecting, collecting
from tests.support.until import until
from workers.handlers import price_stream
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database, Document

CONFIG = WorkerConfig("ann", poll_seconds=0.2)
PRICE_KEYS = ["symbol", "bid", "ask", "mid", "tick_ts", "snap_ts"]


async def stream_job(c: Collecting, **params: Any) -> Job:
    given = {"symbols": [SYMBOL, "ETH/USDT"], "price_snap_interval_seconds": 0.2, **params}
    return await c.job("price_stream", symbol=None, timeframe=None, params=given)


async def live(c: Collecting, kind: str, symbol: str | None = None) -> Document | None:
    found = await LiveBoard(c.database).page(kind=kind, exchange_id="simulated", symbol=symbol)
    return found[0] if found else None


async def until_live(c: Collecting, kind: str, satisfied: Any, symbol: str | None = None) -> Any:
    async def looked() -> Any:
        found = await live(c, kind, symbol)
        return found if found is not None and satisfied(found["payload"]) else None

    return await until(looked, f"{kind} is as wanted")


async def test_each_symbol_has_one_record_that_moves_with_the_market(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await stream_job(c)
        first = await until_live(c, "price", lambda _: True, SYMBOL)
        payload = first["payload"]
        assert list(payload) == PRICE_KEYS
        assert payload["bid"] < payload["mid"] < payload["ask"]
        assert payload["tick_ts"] != payload["snap_ts"]
        opened = int(payload["tick_ts"] * 1000) // MINUTE * MINUTE
        ((_, _, high, low, _, _),) = c.truth(opened, opened + MINUTE)
        assert low <= payload["mid"] <= high
        await until_live(c, "price", lambda now: now["snap_ts"] > payload["snap_ts"], SYMBOL)
        prices = await database.live.find({"kind": "price"})
        assert {each["symbol"] for each in prices} == {SYMBOL, "ETH/USDT"}
        assert len(prices) == 2


async def test_the_heartbeat_has_the_whole_context(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        job = await stream_job(c)
        beat = await until_live(
            c, "heartbeat", lambda beat: beat["state"] == "STREAM" and beat["price_snap_ts"]
        )
        payload, fence = beat["payload"], (await c.queue.get(job.id)).fence
        assert list(payload) == [
            *("state", "ts", "last_change_ts", "fence", "price_snap_ts"),
            *("tick_silence_seconds", "context"),
        ]
        assert payload["fence"] == beat["fence"] == fence
        assert list(payload["context"]) == ["price_stream", "history", "diag", "supervisor"]
        stream = payload["context"]["price_stream"]
        assert (stream["state"], stream["channel"]) == ("ok", "simulated:price_tik")
        assert stream["symbols_state"][SYMBOL].keys() == {"bid", "ask", "mid", "tick_age"}
        assert stream["stream_state"] == {"prices": "ok", "history": "active"}
        assert stream["adaptive_poll"] is None  # No job polls.
        status = await until_live(c, "market_status", lambda _: True)
        assert status["payload"].keys() == {
            *("state", "next_open_seconds", "ts", "price_snap_ts", "tick_silence_seconds")
        }
        assert (status["payload"]["state"], status["payload"]["next_open_seconds"]) == ("open", 0)


async def test_without_symbols_the_collected_ones_are_watched(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await c.job("ohlcv_incremental", symbol="SOL/USDT")
        await c.job("ohlcv_incremental", symbol="GONE/USDT")
        await stream_job(c, symbols=[])
        await until_live(c, "price", lambda _: True, "SOL/USDT")
        assert {each["symbol"] for each in await database.live.find({"kind": "price"})} == {
            "SOL/USDT"
        }


async def test_a_connection_that_breaks_is_opened_again(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await stream_job(c)
        await until_live(c, "heartbeat", lambda beat: beat["state"] == "STREAM")
        c.exchange.faults.add(SocketDisconnect(count=1))
        broken = await until_live(
            c, "heartbeat", lambda beat: beat["context"]["price_stream"]["reconnects"]
        )
        await until_live(
            c,
            "heartbeat",
            lambda beat: beat["state"] == "STREAM" and beat["ts"] > broken["payload"]["ts"],
        )
        assert c.exchange.sockets.counts.opened == 2


async def test_a_silent_connection_is_seen(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await stream_job(c)
        await until_live(c, "price", lambda _: True, SYMBOL)
        c.exchange.faults.add(SocketSilence())
        beat = await until_live(
            c, "heartbeat", lambda beat: (beat["tick_silence_seconds"] or 0) > 1
        )
        # Empty cycles are not published.
        last = beat["payload"]["price_snap_ts"]
        await until_live(c, "price", lambda price: price["snap_ts"] == last, SYMBOL)


async def test_a_paused_job_says_that_it_has_stopped(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        job = await stream_job(c)
        await until_live(c, "heartbeat", lambda beat: beat["state"] == "STREAM")
        await c.queue.pause(job.id)
        await c.until(job, lambda job: job.state is State.IDLE)
        beat = await live(c, "heartbeat")
        assert beat is not None
        assert beat["payload"]["context"]["price_stream"]["state"] == "stopped"
        await c.queue.resume(job.id)
        await until_live(c, "heartbeat", lambda beat: beat["state"] == "STREAM")
        again = await c.queue.get(job.id)
        assert again.fence > beat["fence"]


async def test_a_paused_connector_stops_the_stream(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        job = await stream_job(c)
        await until_live(c, "heartbeat", lambda beat: beat["state"] == "STREAM")
        await c.registry.pause("simulated")
        await c.until(job, lambda job: job.document["waiting_for"] == "paused")
        await c.registry.resume("simulated")
        await until_live(c, "heartbeat", lambda beat: beat["state"] == "STREAM")


async def test_a_stream_takes_no_place_of_other_jobs(database: Database, tmp_path: Path) -> None:
    limits = Limits(100_000, 1_000, max_concurrent_jobs=1)
    async with collecting(database, tmp_path, config=CONFIG, limits=limits) as c:
        stream = await stream_job(c)
        await c.until(stream, lambda job: job.state is State.RUNNING)
        snapshot = await c.job("tickers_snapshot", symbol=None, timeframe=None)
        await c.until(snapshot, lambda job: job.document["stats"]["success"])
        assert (await c.queue.get(stream.id)).state is State.RUNNING


async def test_a_bar_seen_closed_is_fetched_before_its_time(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        begins = Cursor(since_ms=c.exchange.now_ms() // MINUTE * MINUTE)
        job = await c.job("ohlcv_incremental", cursor=begins)
        await c.until(job, lambda job: job.document["stats"]["success"])
        far = {"$set": {"next_run_at": c.exchange.now_ms() + 3_600_000}}
        await database.jobs.update_one({"_id": job.id}, far)
        await stream_job(c)
        await until_live(c, "heartbeat", lambda beat: beat["state"] == "STREAM")
        runs = (await c.queue.get(job.id)).document["stats"]["success"]
        # The exchange's clock passes the end of the minute: its socket says that a bar has closed.
        c.exchange.offset_ms += MINUTE
        await c.until(job, lambda job: job.document["stats"]["success"] > runs)


async def test_an_owner_that_was_replaced_changes_nothing(database: Database) -> None:
    board = LiveBoard(database)

    def snapshot(fence: int, price: float) -> PriceSnapshot:
        return PriceSnapshot("x", fence, 2.0, (SnapPrice("A/B", price, price, price, 1.0, 2.0),))

    await board.publish_prices(snapshot(2, 20.0))
    await board.publish_heartbeat(HeartbeatMessage("x", 2, {"state": "STREAM"}))
    with pytest.raises(LeaseLost):
        await board.publish_prices(snapshot(1, 10.0))
    with pytest.raises(LeaseLost):
        await board.publish_heartbeat(HeartbeatMessage("x", 1, {"state": "IDLE"}))
    documents = await board.page(exchange_id="x")
    assert [each["payload"].get("bid", "STREAM") for each in documents] == ["STREAM", 20.0]
    await board.publish_prices(snapshot(3, 30.0))
    (price,) = await board.page(exchange_id="x", kind="price")
    assert (price["fence"], price["payload"]["bid"]) == (3, 30.0)


async def test_a_job_made_anew_has_a_newer_fence(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        job = await stream_job(c)
        await until_live(c, "heartbeat", lambda beat: beat["state"] == "STREAM")
        old = (await c.queue.get(job.id)).fence
        await c.queue.delete(job.id)
        await until_live(c, "heartbeat", lambda beat: beat["state"] == "DISCONNECTED")
        # Fences begin at the date in seconds.
        await until(lambda: database.server_clock.now_ms() > (old + 1) * 1000)
        await stream_job(c)
        beat = await until_live(c, "heartbeat", lambda beat: beat["state"] == "STREAM")
        assert beat["fence"] > old


async def test_a_worker_that_ends_with_its_work_leaves_streams_alone(
    database: Database, tmp_path: Path
) -> None:
    config = WorkerConfig("ann", poll_seconds=0.2, until_idle=True)
    async with collecting(database, tmp_path, config=config) as c:
        job = await stream_job(c)
        await c.until(job, lambda job: job.document["waiting_for"] == ASKED_LATER)
        assert not await Leasing(database, "ben").pending(["simulated"])
        assert await live(c, "heartbeat") is None


async def test_a_stream_that_lives_forgets_the_deaths_of_its_workers(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price_stream, "FIRST_PROGRESS_SECONDS", 0.1)
    async with collecting(database, tmp_path, config=CONFIG) as c:
        c.exchange.faults.add(SocketSilence())
        job = await stream_job(c)
        await c.until(job, lambda job: job.state is State.RUNNING)
        await c.queue.pause(job.id)
        await c.until(job, lambda job: job.state is State.IDLE)
        await database.jobs.update_one({"_id": job.id}, {"$set": {"kills": 5}})
        # As a worker that died leaves it; five deaths make it a suspect that runs alone.
        resumed = {"status": "active", "state": "queued", "next_run_at": 0}
        await database.jobs.update_one({"_id": job.id}, {"$set": resumed})
        await c.until(job, lambda job: job.state is State.RUNNING and not job.document["kills"])
        snapshot = await c.job("tickers_snapshot", symbol=None, timeframe=None)
        await c.until(snapshot, lambda job: job.document["stats"]["success"])


async def test_a_running_stream_follows_its_symbols(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price_stream, "SERIES_SECONDS", 0.2)
    async with collecting(database, tmp_path, config=CONFIG) as c:
        job = await stream_job(c, symbols=[SYMBOL])
        await until_live(c, "price", lambda _: True, SYMBOL)
        await c.queue.change(job.id, params={**job.params, "symbols": ["SOL/USDT"]})
        await until_live(c, "price", lambda _: True, "SOL/USDT")
        assert await live(c, "price", SYMBOL) is None


async def test_prices_of_symbols_that_are_followed_no_longer_go(
    database: Database, tmp_path: Path
) -> None:
    old = SnapPrice("OLD/USDT", 1.0, 1.0, 1.0, 1.0, 2.0)
    await LiveBoard(database).publish_prices(PriceSnapshot("simulated", 1, 2.0, (old,)))
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await stream_job(c)
        await until_live(c, "price", lambda _: True, SYMBOL)
        assert await live(c, "price", "OLD/USDT") is None


async def test_live_prices_stand_beside_the_jobs_of_a_demo(database: Database) -> None:
    live_board, queue = LiveBoard(database), JobQueue(database)
    price = SnapPrice("BTC/USDT", 57_976.31, 57_976.33, 57_976.32, 1.0, 2.0)
    await live_board.publish_prices(PriceSnapshot("simulated", 1, 2.0, (price,)))
    for symbol in ("BTC/USDT", "ETH/USDT"):
        await queue.add(
            JobSpec("simulated", "ohlcv_backfill", symbol, "1m", cursor=Cursor(until_ms=1))
        )
    jobs = [shown_job(job) for job in await queue.find()]
    console = Console(width=140, file=StringIO())
    console.print(board(jobs, (), 0.0, 0, await live_board.mids()))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    rows = {line.split()[1]: line for line in shown.splitlines() if "/USDT" in line}
    assert rows["BTC/USDT"].rstrip().endswith("57,976.32")
    assert "57,976" not in rows["ETH/USDT"]


async def test_a_polled_job_comes_back_as_the_cadence_says(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await c.registry.set_cadence("simulated", {"m1": 17.0, "m5": 20.0, "reason": "idling"})
        # Far enough ahead that the minute may end meanwhile.
        begins = Cursor(since_ms=c.exchange.now_ms() // MINUTE * MINUTE + 10 * MINUTE)
        poll = schedule.Poll(Timeframe.parse("1m"))
        job = await c.job("ohlcv_incremental", cursor=begins, schedule=poll)
        done = await c.until(job, lambda job: job.document["stats"]["success"])
        waits_ms = done.next_run_at - done.document["stats"]["last_success_at"]
        assert 16_000 < waits_ms < 18_000, "the seventeen seconds of the cadence"
        assert not c.journal()  # No bar has closed since: nobody is asked.


async def test_the_heartbeat_shows_the_cadence_that_jobs_poll_by(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        poll = schedule.Poll(Timeframe.parse("1m"))
        await c.job("ohlcv_incremental", schedule=poll)
        await stream_job(c)
        beat = await until_live(
            c, "heartbeat", lambda beat: beat["context"]["price_stream"]["adaptive_poll"]
        )
        assert beat["payload"]["context"]["price_stream"]["adaptive_poll"].keys() == {
            *("current_m1", "current_m5", "target_reason", "tick_silence_seconds")
        }


async def test_the_market_status_comes_with_each_heartbeat(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await stream_job(c)
        beat = await until_live(c, "heartbeat", lambda beat: beat["state"] == "STREAM")
        for _ in range(2):
            at = beat["payload"]["ts"]
            status = await until_live(c, "market_status", lambda now, at=at: now["ts"] >= at)
            assert status["payload"]["ts"] - at < 1.9
            beat = await until_live(c, "heartbeat", lambda now, at=at: now["ts"] > at)
