"""An exchange that fails four times in ten, before two worker processes with one circuit gate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.connector import Limits
from collector.jobs.job import Cursor, JobSpec
from collector.simulated.faults.catalogue import parse_faults
from tests.support.circuit_transitions import witnessed
from tests.support.fleet import DAY, LONG, fleet
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.processes import Process

DAYS, TRIPS = (40, 15) if LONG else (15, 2)
"""Work enough that some is left when the gate has tripped so often: probes are somebody's pages."""
CIRCUIT = CircuitSettings(
    circuit_window_sec=30,
    circuit_max_err_rate_ratio=0.3,
    circuit_min_closed_sec=2,
    circuit_half_open_probe=2,
    circuit_min_events=10,
)


def told(worker: Process) -> list[str]:
    """The transitions it logged."""
    entries = (json.loads(line) for line in worker.said.splitlines() if line.startswith("{"))
    return [entry["event"] for entry in entries if entry.get("logger") == "collector.circuit"]


async def test_two_workers_agree_at_every_moment_and_finish(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    limits = Limits(60, 1_000, circuit=CIRCUIT)
    async with (
        fleet(database, mongo_uri, tmp_path, limits=limits, days=DAYS) as f,
        witnessed(database) as witness,
    ):
        fault = {"kind": "server_error", "endpoint": "klines", "probability": 0.4}
        f.exchange.faults.add(*parse_faults(fault))
        cursor = Cursor(until_ms=f.first_ms + DAYS * DAY)
        for symbol in ("ETH/USDT", "SOL/USDT", "XRP/USDT"):
            for timeframe in ("1m", "5m", "15m", "30m", "1h"):
                await f.queue.add(
                    JobSpec("simulated", "ohlcv_backfill", symbol, timeframe, cursor=cursor)
                )
        job = await f.backfill(days=DAYS)
        async with f.worker() as one, f.worker() as two:

            async def tripped_often() -> bool:
                return witness.states.count("TRIPPED") >= TRIPS

            async def open_again() -> bool:
                return witness.states[-1] == "OPEN"

            await until(tripped_often, "the gate trips, and a probe fails", 120 * TRIPS)
            f.exchange.faults.clear()
            await until(open_again, "the gate opens")
            done = await f.finished(job, seconds=90 * DAYS)
            states = (await f.registry.get("simulated")).document["circuit"]["state"]
            lines = [*told(one), *told(two)]
        assert states == "OPEN"
        witness.check_every_change_was_told_once(lines)
        witness.check_what_the_exchange_saw(f.klines(), CIRCUIT.circuit_half_open_probe)
        f.check_equal_to_the_truth(done)
        f.check_no_window_was_exceeded()
