"""The gauges that are facts of the database: read at the scrape, by the API alone. Figures of all
jobs are the last count (collector/jobs/counting.py).

Counters belong to the process that counts. A gauge about the whole fleet must have one source, or
summing over processes would count it many times.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client import REGISTRY, generate_latest
from prometheus_client.core import GaugeMetricFamily

from collector.connectors.session_lease import shown_session
from collector.errors import DatabaseUnavailable
from collector.exchanges.exclusive import SessionState
from collector.history.inbox import NetworkState, network_states
from collector.jobs.overdue import count_due
from collector.jobs.states import State
from collector.market.timeframe import Timeframe
from collector.operations.shown.connector import usage_now
from collector.operations.trouble_facts import trouble_facts
from collector.operations.troubles import TroubleKind, by_kind, no_database, troubles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client import Metric

    from api.deps import Services
    from collector.connectors.connector import Connector
    from collector.jobs.counting import Counts
    from collector.operations.troubles import Trouble


PATIENCE_SECONDS = 5.0
"""A scrape is answered within this time, whatever MongoDB does."""


async def exposition(services: Services) -> bytes:
    """All metrics of this process for Prometheus; without MongoDB those that need none."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            gauges = [*await _database_gauges(services), _mongodb_up(up=True)]
    except (DatabaseUnavailable, TimeoutError):
        gauges = [_mongodb_up(up=False), _troubles([no_database("")], [])]
    return generate_latest(_Families(gauges))


class _Families:
    """The database's gauges, then what this process counted itself, each name once."""

    def __init__(self, gauges: list[GaugeMetricFamily]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        names = {gauge.name for gauge in self._gauges}
        yield from self._gauges
        for family in REGISTRY.collect():
            if family.name not in names:
                yield family


async def _database_gauges(services: Services) -> list[GaugeMetricFamily]:
    now_ms = await services.now_ms()
    connectors = await services.registry.all()
    counts = await services.counting.last()
    return [
        *_limits(connectors, now_ms),
        *_circuits(connectors, now_ms),
        _sessions(connectors, now_ms),
        _counted_at(counts),
        _jobs(counts, connectors),
        *_lag(counts),
        *await _networks(services),
        _backfills(counts, connectors),
        *await _health(services, counts),
    ]


def _mongodb_up(*, up: bool) -> GaugeMetricFamily:
    return GaugeMetricFamily("collector_mongodb_up", "Whether MongoDB answers the API", float(up))


async def _health(services: Services, counts: Counts) -> list[GaugeMetricFamily]:
    """What is wrong, how many jobs wait for a worker and how long: from the same facts."""
    facts = await trouble_facts(services.database, counts)
    longest = GaugeMetricFamily(
        "collector_oldest_due_seconds",
        "How long the oldest due job of an exchange has been waiting for a worker",
        labels=["exchange"],
    )
    due = GaugeMetricFamily(
        "collector_jobs_due",
        "Jobs of an exchange that are due and wait for a worker, 1000 at most",
        labels=["exchange"],
    )
    stopped = {each.exchange_id for each in facts.connectors if each.stopped(facts.at_ms)}
    for exchange_id, at_ms in sorted(facts.next_due.items()):
        # No worker may take jobs of an exchange that is stopped, however many there are.
        waits = exchange_id not in stopped and at_ms < facts.at_ms
        longest.add_metric([exchange_id], (facts.at_ms - at_ms) / 1000 if waits else 0)
        jobs = await count_due(services.database, exchange_id, facts.at_ms) if waits else 0
        due.add_metric([exchange_id], jobs)
    return [_troubles(troubles(facts), facts.connectors), longest, due]


def _troubles(found: Sequence[Trouble], connectors: Sequence[Connector]) -> GaugeMetricFamily:
    """Zeros too: a series that disappears looks to an alert like a scrape that failed."""
    gauge = GaugeMetricFamily(
        "collector_trouble",
        "What is wrong, by kind and exchange: the jobs that it concerns, at least 1; 0 when well",
        labels=["kind", "exchange"],
    )
    counted = by_kind(found)
    exchange_ids = ["", *(each.exchange_id for each in connectors)]
    every = {(kind, exchange_id) for kind in TroubleKind for exchange_id in exchange_ids}
    for kind, exchange_id in sorted(every | counted.keys()):
        gauge.add_metric([kind, exchange_id], counted[kind, exchange_id])
    return gauge


def _backfills(counts: Counts, connectors: list[Connector]) -> GaugeMetricFamily:
    left = GaugeMetricFamily(
        "collector_backfill_bars_left",
        "Bars that the active backfills of an exchange have still to fetch",
        labels=["exchange"],
    )
    found = Counter({each.exchange_id: 0 for each in connectors})
    for each in counts.backfills:
        found[each.exchange_id] += each.bars_left
    for exchange_id, bars in sorted(found.items()):
        left.add_metric([exchange_id], bars)
    return left


def _limits(connectors: list[Connector], now_ms: int) -> list[GaugeMetricFamily]:
    def gauge(name: str, description: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"collector_{name}", description, labels=["exchange"])

    usage = gauge("rate_limit_usage", "Tokens granted in the window that is open")
    limit = gauge("rate_limit_limit", "Tokens a window has")
    reset_at = gauge("rate_limit_reset_at", "Epoch seconds at which the window ends")
    banned = gauge(
        "banned_until", "Epoch seconds until which the exchange is blocked; 0: it is not"
    )
    for connector in connectors:
        labels, document = [connector.exchange_id], connector.document
        usage.add_metric(labels, usage_now(connector, now_ms))
        limit.add_metric(labels, connector.limits.rate_limit)
        reset_at.add_metric(labels, (document.get("rate_limit_reset_at") or 0) / 1000)
        until_ms = document.get("blocked_until") or 0
        banned.add_metric(labels, until_ms / 1000 if until_ms > now_ms else 0)
    return [usage, limit, reset_at, banned]


def _circuits(connectors: list[Connector], now_ms: int) -> list[GaugeMetricFamily]:
    """The circuit gate that all workers share, by the names of its specification."""
    state = GaugeMetricFamily(
        "circuit_state", "OPEN=0, TRIPPED=1, HALF_OPEN=2", labels=["exchange"]
    )
    rate = GaugeMetricFamily(
        "circuit_err_rate_window", "Share of errors in the gate's window", labels=["exchange"]
    )
    for connector in connectors:
        gate = connector.circuit(now_ms)
        state.add_metric([connector.exchange_id], gate.state)
        rate.add_metric([connector.exchange_id], gate.snapshot()["err_rate"])
    return [state, rate]


def _sessions(connectors: list[Connector], now_ms: int) -> GaugeMetricFamily:
    """One series a state, so that an alert can name the state it is about."""
    states = GaugeMetricFamily(
        "collector_session_state",
        "Whether the session of an account that allows one login is in this state",
        labels=["exchange", "state"],
    )
    for connector in connectors:
        shown = shown_session(connector, now_ms)
        if shown is not None:
            for state in SessionState:
                states.add_metric([connector.exchange_id, state], float(shown.state is state))
    return states


def _counted_at(counts: Counts) -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "collector_jobs_counted_at",
        "Epoch seconds at which jobs, lag and backfills were last counted",
        counts.counted_ms / 1000,
    )


def _jobs(counts: Counts, connectors: list[Connector]) -> GaugeMetricFamily:
    jobs = GaugeMetricFamily(
        "collector_jobs", "Jobs that are not deleted", labels=["exchange", "state"]
    )
    found: Counter[tuple[str, str]] = Counter()
    for each in counts.jobs:
        found[each.exchange_id, each.state] += each.count
    # Zeros too: a series that disappears looks to an alert like a scrape that failed.
    every = {(connector.exchange_id, state.value) for connector in connectors for state in State}
    for exchange_id, state in sorted(every | found.keys()):
        jobs.add_metric([exchange_id, state], found[exchange_id, state])
    return jobs


def _lag(counts: Counts) -> list[GaugeMetricFamily]:
    labels = ["exchange", "timeframe"]
    lag = GaugeMetricFamily(
        "collector_lag_bars",
        "Closed bars that the series furthest behind has not stored yet",
        labels=labels,
    )
    unconfirmed = GaugeMetricFamily(
        "collector_unconfirmed_series",
        "Series whose newest slots the exchange reports as empty, which do not count as behind",
        labels=labels,
    )
    for each in counts.reached:
        frame = Timeframe.parse(each.timeframe).at(each.exchange_id)
        behind = max(0, frame.count(each.since_ms, counts.counted_ms))
        lag.add_metric([each.exchange_id, each.timeframe], behind)
        unconfirmed.add_metric([each.exchange_id, each.timeframe], each.unconfirmed)
    return [lag, unconfirmed]


async def _networks(services: Services) -> list[GaugeMetricFamily]:
    applied = GaugeMetricFamily(
        "collector_history_applied_through",
        "The last event of a network that is in the ledger",
        labels=["network"],
    )
    waiting = GaugeMetricFamily(
        "collector_history_waiting", "Events that are not in the ledger yet", labels=["network"]
    )
    states = await network_states(services.database)
    for network in services.history.networks:
        state = states.get(network, NetworkState())
        applied.add_metric([network], state.applied_through)
        waiting.add_metric([network], max(0, state.sequence - state.applied_through))
    return [applied, waiting]
