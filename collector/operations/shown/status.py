"""The state of everything as front ends show it: what is wrong, exchanges, jobs, workers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from collector.jobs.network import network_of
from collector.operations.shown.connector import shown_connector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.operations.census import Census, Lag
    from collector.operations.troubles import Trouble


def shown_status(found: Census, wrong: Sequence[Trouble]) -> dict[str, Any]:
    """The state of everything. Per connector `jobs` has how many are in each state."""
    states, lags = found.states, found.lags
    return {
        "at": found.at_ms,
        "counted_at": found.counts.counted_ms,
        "connectors": [
            {
                **shown_connector(connector, found.at_ms),
                "jobs": dict(states.get(connector.exchange_id, {})),
                "lag": _shown_lag(lags.get(connector.exchange_id)),
            }
            for connector in found.connectors
        ],
        "jobs": dict(found.total),
        "backfills": found.backfilled,
        "workers": [shown_worker(each) for each in found.workers],
        "troubles": [shown_trouble(each) for each in wrong],
    }


def shown_worker(document: Mapping[str, Any]) -> dict[str, Any]:
    """A live worker, as it describes itself."""
    names = ("host", "pid", "concurrency", "metrics", "disk", "redis", "started_at", "seen_at")
    return {"id": document["_id"], **{name: document.get(name) for name in names}}


def shown_trouble(trouble: Trouble) -> dict[str, Any]:
    """One thing that is wrong now."""
    network = None if trouble.exchange_id is None else network_of(trouble.exchange_id)
    return {
        "kind": trouble.kind.value,
        "exchange_id": trouble.exchange_id if network is None else None,
        "network": network,
        "reason": trouble.reason,
        "since": trouble.since_ms,
        "jobs": trouble.jobs,
        "help": trouble.help,
    }


def _shown_lag(lag: Lag | None) -> dict[str, Any] | None:
    return None if lag is None else asdict(lag)
