"""Documents of a small fleet as the API sends them, for the viewer's tests and captures."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from collector.tui.fleet_picture import FleetPicture, sampled, with_lists

NOW_MS = 1_764_866_661_000


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def connector(exchange_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "exchange_id": exchange_id,
        "status": "active",
        "rate_limit": 60,
        "rate_limit_usage": 30,
        "granted_total": 12_345,
        "denied_total": 17,
        "active_jobs_count": 12,
        "blocked_until": None,
        "circuit": {"state": "OPEN", "err_rate": 0.0, "tripped_until": None},
        **fields,
    }


def job(job_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": job_id,
        "exchange_id": "simulated",
        "type": "ohlcv_incremental",
        "symbol": "BTC/USDT",
        "timeframe": "1m",
        "status": "active",
        "state": "idle",
        "next_run_at": NOW_MS + 20_000,
        "cursor": {"since_ms": NOW_MS - NOW_MS % 60_000},
        "stats": {"runs": 41, "last_error": None},
        "lock": {"locked_by": None, "lock_until": None},
        "attempt": 0,
        **fields,
    }


def worker(worker_id: str, **fields: Any) -> dict[str, Any]:
    host, pid, _ = worker_id.split(":")
    return {
        "id": worker_id,
        "host": host,
        "pid": int(pid),
        "concurrency": 100,
        "metrics": "127.0.0.1:9101",
        "started_at": iso(NOW_MS - 7_200_000),
        "seen_at": iso(NOW_MS - 5_000),
        **fields,
    }


def beat(exchange_id: str, **context: Any) -> dict[str, Any]:
    price_stream = {
        "state": "ok",
        "tick_errors": 0,
        "reconnects": 1,
        "stream_state": {"prices": "ok", "history": "active"},
        "adaptive_poll": {
            "current_m1": 6.0,
            "current_m5": 9.0,
            "target_reason": "idling",
            "tick_silence_seconds": 2.0,
        },
    }
    payload = {
        "state": "STREAM",
        "ts": NOW_MS / 1000,
        "fence": 7,
        "tick_silence_seconds": 2.0,
        "context": {"price_stream": price_stream, "history": None, "diag": None, **context},
    }
    return {"kind": "heartbeat", "exchange_id": exchange_id, "symbol": None, "payload": payload}


def market(exchange_id: str, state: str = "open", opens: float | None = None) -> dict[str, Any]:
    payload = {"state": state, "next_open_seconds": opens, "ts": NOW_MS / 1000}
    return {"kind": "market_status", "exchange_id": exchange_id, "symbol": None, "payload": payload}


def live_price(
    exchange_id: str, symbol: str, mid: float = 100.5, age: float = 1.0
) -> dict[str, Any]:
    payload = {
        "symbol": symbol,
        "bid": round(mid * 0.99995, 5),
        "ask": round(mid * 1.00005, 5),
        "mid": round(mid, 5),
        "tick_ts": NOW_MS / 1000 - age,
        "snap_ts": NOW_MS / 1000,
    }
    return {"kind": "price", "exchange_id": exchange_id, "symbol": symbol, "payload": payload}


def fleet() -> FleetPicture:
    """One exchange, one job, one worker."""
    picture = with_lists(
        FleetPicture(),
        connectors=[connector("simulated")],
        jobs=[job("1")],
        more_jobs=False,
        workers=[worker("host:7:abc")],
        live=[],
    )
    return sampled(picture, NOW_MS, {})
