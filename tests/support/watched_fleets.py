"""Fleets for the viewer's tests and for the captures in the docs: no API, the same every time."""

from __future__ import annotations

import asyncio
import math

from collector.tui.fleet_picture import FleetPicture, sampled, with_event, with_lists
from collector.tui.modes import figures
from tests.support.fleet_documents import (
    NOW_MS,
    beat,
    connector,
    job,
    live_price,
    market,
    worker,
)

SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT")


class StillFleet:
    """A picture that changes only when a test changes it."""

    def __init__(self, picture: FleetPicture, failure: Exception | None = None) -> None:
        self.url = "http://127.0.0.1:8000"
        self.picture = picture
        self._failure = failure

    async def follow(self) -> None:
        if self._failure is not None:
            raise self._failure
        await asyncio.Event().wait()


def busy_fleet() -> FleetPicture:
    """Three exchanges, two of them in trouble, some minutes of samples."""
    picture = with_lists(
        FleetPicture(),
        connectors=_connectors(),
        jobs=_jobs(),
        more_jobs=False,
        workers=[worker("node-1:411:9f2c1a77"), worker("node-2:87:03be55d1")],
        live=_live(0),
    )
    for step in range(40):
        for each in _live(step):
            picture = with_event(picture, each["kind"], each)
        used = 30 + round(25 * math.sin(step / 3))
        picture = with_event(
            picture, "connector", connector("simulated", rate_limit_usage=used, denied_total=step)
        )
        picture = sampled(picture, NOW_MS, figures(picture))
    return picture


def _connectors() -> list[dict[str, object]]:
    tripped = {"state": "TRIPPED", "err_rate": 0.62, "tripped_until": NOW_MS + 42_000}
    budget = {
        "calls_60s": 88,
        "calls_3600s": 1_204,
        "limit_60s": 120,
        "limit_3600s": 2_400,
        "throttle_state": "warn",
        "next_slot_seconds": 0.6,
        "last_denied_reason": "priority_reserve",
        "priority": {
            "targets": ["XAU/USD:m1", "EUR/USD:m1"],
            "reserve_per_min": 1,
            "reserve_per_hour": 12,
            "calls_60s": 14,
            "calls_3600s": 171,
        },
        "skipped_polls": [
            {"symbol": "GBP/USD", "tf": "5m", "count": 9, "last_reason": "priority_reserve"},
            {"symbol": "USD/JPY", "tf": "1m", "count": 4, "last_reason": "min_interval"},
        ],
    }
    return [
        connector("binance", rate_limit=1_200, rate_limit_usage=1_104, circuit=tripped),
        connector("fxcm", rate_limit=120, rate_limit_usage=88, history_budget=budget),
        connector("simulated"),
    ]


def _jobs() -> list[dict[str, object]]:
    held = {"locked_by": "node-1:411:9f2c1a77", "lock_until": NOW_MS + 20_000}
    also = {"locked_by": "node-2:87:03be55d1", "lock_until": NOW_MS + 20_000}
    begun = NOW_MS - 365 * 86_400_000
    history = {"since_ms": begun + 240 * 86_400_000, "until_ms": NOW_MS, "done": False}
    jobs = [job(f"i{number}", symbol=symbol) for number, symbol in enumerate(SYMBOLS)]
    return [
        *jobs,
        job("r1", state="running", lock=held, cursor={"since_ms": NOW_MS - 61_000}),
        job("r2", state="running", lock=also, symbol="ETH/USDT", timeframe="5m"),
        job(
            "b1",
            type="ohlcv_backfill",
            state="running",
            lock=also,
            cursor=history,
            progress={"from_ms": begun},
        ),
        job(
            "f1",
            exchange_id="binance",
            symbol="LUNA/USDT",
            state="failed",
            stats={"runs": 3, "last_error": "binance does not have market symbol LUNA/USDT"},
        ),
        job(
            "w1",
            exchange_id="binance",
            state="waiting_rate_limit",
            cursor={"since_ms": NOW_MS - 8 * 60_000},
        ),
    ]


def _live(step: int) -> list[dict[str, object]]:
    paused = {
        "backoff": {
            "fxcm_history": {
                "active": True,
                "sleep_seconds": 45.0,
                "last_error_type": "NetworkError",
                "fail_count": 3,
                "last_error_ts": "2025-12-04T16:44:01Z",
            },
            "redis": {
                "active": False,
                "sleep_seconds": 5.0,
                "last_error_type": None,
                "fail_count": 0,
                "last_error_ts": None,
            },
        }
    }
    wave = math.sin(step / 5)
    return [
        beat("fxcm", diag=paused, supervisor=_supervisor()),
        market("fxcm"),
        live_price("fxcm", "XAU/USD", 4_209.82 + 2 * wave),
        live_price("fxcm", "EUR/USD", 1.16502 + 0.0004 * wave, age=14.0),
        beat("simulated"),
        market("simulated"),
        *(
            live_price("simulated", symbol, base * (1 + 0.001 * wave))
            for symbol, base in zip(SYMBOLS, (91_250.5, 3_104.25, 138.75), strict=True)
        ),
    ]


def _supervisor() -> dict[str, object]:
    counts = {"ohlcv": 1_204, "heartbeat": 7_201, "market_status": 1_440, "price_snapshots": 2_400}
    return {
        "queues": {
            name: {
                "depth": 0,
                "capacity": 2_000 if name == "ohlcv" else 64,
                "enqueued": count,
                "processed": count,
                "dropped": 0,
                "backpressure_events": 0,
            }
            for name, count in counts.items()
        },
        "tasks": {name: {"state": "running", "idle_seconds": 0.4} for name in counts},
    }
