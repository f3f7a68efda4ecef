"""Exchanges and workers: what stands still, when each exchange last answered, and one request.

What is wrong is the list of troubles that every front end shows (`operations/troubles.py`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from collector.connectors.limiter import Limiter
from collector.durations import shown_span
from collector.errors import CollectorError, RateLimited, SessionNotHeld
from collector.operations.doctor.finding import Finding, Level, ok, problem, warning
from collector.operations.exchange_access import ExchangeAccess
from collector.operations.troubles import TroubleKind, troubles

if TYPE_CHECKING:
    from collector.connectors.connector import Connector
    from collector.mongo.client import Database
    from collector.operations.troubles import Trouble, TroubleFacts
    from collector.settings import Settings

AREA, WORKERS = "exchanges", "workers"
PASSING = frozenset(
    {
        TroubleKind.BLOCKED,
        TroubleKind.CIRCUIT,
        TroubleKind.RETRYING,
        TroubleKind.OVERDUE,
        TroubleKind.STALE,
        TroubleKind.CLOCK_DRIFT,
    }
)
"""What may pass by itself."""
PATIENCE_SECONDS = 10.0


def exchanges(facts: TroubleFacts, settings: Settings) -> list[Finding]:
    """Each connector, and each exchange that the settings name and that has none."""
    wrong = [each for each in troubles(facts) if each.exchange_id is not None]
    stopped = {each.exchange_id for each in wrong}
    found = [_of_trouble(each) for each in wrong]
    found += [
        _well(each, facts.at_ms) for each in facts.connectors if each.exchange_id not in stopped
    ]
    known = {connector.exchange_id for connector in facts.connectors}
    named = {*settings.exchanges, *(stream.exchange for stream in settings.streams)}
    found += [
        warning(AREA, f"{each}: named in the settings, without a connector", "collector apply")
        for each in sorted(named - known)
    ]
    return found or [ok(AREA, "none yet: collector add binance BTC/USDT")]


def workers(facts: TroubleFacts) -> list[Finding]:
    """Workers that are alive, and troubles that are not about one exchange."""
    wrong = [_of_trouble(each) for each in troubles(facts) if each.exchange_id is None]
    if wrong:
        return wrong
    jobs = sum(facts.active.values())
    return [ok(WORKERS, f"{len(facts.workers)} alive, {jobs:,} active jobs")]


async def asked(database: Database, settings: Settings, facts: TroubleFacts) -> list[Finding]:
    """Sends each exchange one request, its time, by a token of its connector."""
    async with Limiter(database, use_global=settings.global_limit is not None) as limiter:
        access = ExchangeAccess.of(settings, database, limiter, PATIENCE_SECONDS)
        return [await _asked(access, connector.exchange_id) for connector in facts.connectors]


async def _asked(access: ExchangeAccess, exchange_id: str) -> Finding:
    began = time.monotonic()
    try:
        exchange, _ = await access.open(exchange_id)
        try:
            began = time.monotonic()
            await exchange.server_ms()
        finally:
            await exchange.close()
    except SessionNotHeld:
        return ok(AREA, f"{exchange_id}: not asked, a worker holds its only session")
    except RateLimited as error:
        return warning(AREA, f"not asked, {error}", f"collector connector show {exchange_id}")
    except CollectorError as error:
        helps = "reach it from this machine: DNS, proxy, firewall, exchange_urls"
        return problem(AREA, f"{exchange_id}: one request failed: {error}", helps)
    took_ms = (time.monotonic() - began) * 1000
    return ok(AREA, f"{exchange_id}: answered a request in {took_ms:,.0f} ms")


def _of_trouble(trouble: Trouble) -> Finding:
    level = Level.WARNING if trouble.kind in PASSING else Level.PROBLEM
    kind, reason = trouble.kind.value.replace("_", " "), " ".join(trouble.reason.split())
    if trouble.exchange_id is None:
        return Finding(level, WORKERS, f"{kind}: {reason}", trouble.help)
    return Finding(level, AREA, f"{trouble.exchange_id}: {kind}: {reason}", trouble.help)


def _well(connector: Connector, now_ms: int) -> Finding:
    """An exchange without a trouble. One without jobs may be stopped all the same."""
    stopped = connector.stopped(now_ms)
    state = connector.status if stopped is None else stopped.reason
    gate, last_ms = connector.circuit(now_ms).snapshot(), connector.last_good_ms
    ago = None if last_ms is None else shown_span(max(0, now_ms - last_ms))
    last = "no good answer yet" if ago is None else f"last good answer {ago} ago"
    words = f"{connector.exchange_id}: {state}, circuit {gate['state']}, {last}"
    if state in ("blocked", "circuit"):
        return warning(AREA, words, f"collector connector show {connector.exchange_id}")
    return ok(AREA, words)
