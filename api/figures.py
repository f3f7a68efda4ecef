"""The gauges that are facts of the database: read at the scrape, by the API and nobody else.

Counters belong to the process that counts. A gauge about the whole fleet must have one source, or
summing over processes would count it many times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import REGISTRY, generate_latest
from prometheus_client.core import GaugeMetricFamily

from api.schemas.connectors import usage_now
from collector.jobs.states import State
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from api.deps import Services
    from collector.connectors.connector import Connector


async def exposition(services: Services) -> bytes:
    """Everything this process has to tell Prometheus."""
    return generate_latest(_Families(await _database_gauges(services)))


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
    return [
        *_limits(connectors, now_ms),
        *_circuits(connectors, now_ms),
        await _jobs(services, connectors),
        await _lag(services, now_ms),
    ]


def _limits(connectors: list[Connector], now_ms: int) -> list[GaugeMetricFamily]:
    def gauge(name: str, said: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"collector_{name}", said, labels=["exchange"])

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
    """By seed 002's names, of the gate that all workers share."""
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


async def _jobs(services: Services, connectors: list[Connector]) -> GaugeMetricFamily:
    jobs = GaugeMetricFamily(
        "collector_jobs", "Jobs that are not deleted", labels=["exchange", "state"]
    )
    found = {
        (group["exchange_id"], group["state"]): group["count"]
        for group in await services.queue.counts()
    }
    # Zeros too: a series that disappears looks to an alert like a scrape that failed.
    every = {(connector.exchange_id, state.value) for connector in connectors for state in State}
    for exchange_id, state in sorted(every | found.keys()):
        jobs.add_metric([exchange_id, state], found.get((exchange_id, state), 0))
    return jobs


async def _lag(services: Services, now_ms: int) -> GaugeMetricFamily:
    lag = GaugeMetricFamily(
        "collector_lag_bars",
        "Closed bars that the series furthest behind has not stored yet",
        labels=["exchange", "timeframe"],
    )
    for group in await services.queue.oldest_cursors("ohlcv_incremental"):
        step = Timeframe.parse(group["timeframe"]).ms
        behind = max(0, (now_ms - group["since_ms"]) // step)
        lag.add_metric([group["exchange_id"], group["timeframe"]], behind)
    return lag
