"""Clocks: this machine's against MongoDB's, and the exchanges' as their answers told them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.clock import SystemClock
from collector.operations.doctor.finding import Finding, ok, warning
from collector.operations.troubles import DRIFT_FORGOTTEN_MS
from collector.reports.clock_drift import Drift, clock_drift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.connectors.connector import Connector
    from collector.mongo.client import Database

AREA = "clock"
_HELP = "timedatectl: keep clocks with NTP"


async def this_machine(database: Database) -> Finding:
    """Ours decides nothing; one that is far off makes the log hard to read."""

    async def server_ms() -> int:
        now = await database.read_server_clock()
        return round(now.timestamp() * 1000)

    drift = await clock_drift(server_ms, SystemClock())
    words = f"MongoDB's clock is {_words(drift)} this machine's"
    return ok(AREA, words) if drift.ok else warning(AREA, words, _HELP)


def exchanges(connectors: Sequence[Connector], now_ms: int) -> list[Finding]:
    """The drifts that workers have measured lately."""
    found = []
    for connector in connectors:
        clock = connector.document.get("clock")
        if not clock or now_ms - clock["measured_at"] > DRIFT_FORGOTTEN_MS:
            continue
        drift = Drift(clock["drift_ms"], clock["doubt_ms"])
        words = f"{connector.exchange_id}'s clock is {_words(drift)} MongoDB's"
        found.append(ok(AREA, words) if drift.ok else warning(AREA, words, _HELP))
    return found


def _words(drift: Drift) -> str:
    """`12 ms ahead of`, give or take half of a round trip."""
    direction = "ahead of" if drift.drift_ms >= 0 else "behind"
    doubt = f" (give or take {drift.doubt_ms:,.0f})" if drift.doubt_ms >= 1 else ""
    return f"{abs(drift.drift_ms):,.0f} ms{doubt} {direction}"
