"""What the settings file asks for: connectors with the fields it names, and jobs. Pure.

Only what the file names is here. Everything else is the exchange's default, or what an operator has
set, and stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.connectors.connector import Limits
from collector.connectors.window import Window
from collector.exchanges.fxcm.failures import EXCHANGE_ID as FXCM
from collector.jobs import types
from collector.jobs.job import JobSpec
from collector.jobs.stream import stream_jobs
from collector.operations import configured_fxcm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.settings import Settings
    from collector.settings_sections import (
        ExchangeSettings,
        PriceStreamSettings,
        StreamSettings,
    )


@dataclass(frozen=True, slots=True)
class WishedConnector:
    """A connector. `named` are the fields that the file gives, as fields of `Limits` and `notes`.

    Fields of the circuit gate are among them by their own names.
    """

    exchange_id: str
    named: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WishedJob:
    """A job. `since` and `priority` are None when the file does not give them."""

    spec: JobSpec
    since: int | None = None
    priority: int | None = None

    @property
    def declared(self) -> dict[str, Any]:
        """What its mark records."""
        return {
            "since": self.since,
            "priority": self.priority,
            "params": dict(self.spec.params),
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """The whole file."""

    connectors: Sequence[WishedConnector]
    jobs: Sequence[WishedJob]
    global_limit: Limits | None = None


def wish_of(settings: Settings, now_ms: int) -> Wish:
    """`now_ms` is where the history of a new series ends and its new bars begin."""
    jobs = [
        WishedJob(JobSpec(exchange_id, types.PRICE_STREAM.name, params=_params(given.price_stream)))
        for exchange_id, given in settings.exchanges.items()
        if given.price_stream.enabled
    ]
    for stream in settings.streams:
        jobs += _jobs_of(stream, now_ms)
    whole = settings.global_limit
    return Wish(
        [WishedConnector(each, _named(settings, each)) for each in exchange_ids(settings)],
        jobs,
        None if whole is None else Limits(whole.rate_limit, whole.rate_limit_period_ms),
    )


def exchange_ids(settings: Settings) -> list[str]:
    """Exchanges with settings of their own, and those only named by a stream."""
    fxcm = () if settings.fxcm is None else (FXCM,)
    streams = (stream.exchange for stream in settings.streams)
    return list(dict.fromkeys((*streams, *fxcm, *settings.exchanges)))


def _params(given: PriceStreamSettings) -> dict[str, Any]:
    return {"symbols": list(given.symbols)} if given.symbols else {}


def _jobs_of(stream: StreamSettings, now_ms: int) -> list[WishedJob]:
    specs = stream_jobs(
        stream.exchange,
        stream.symbol,
        stream.timeframe,
        now_ms=now_ms,
        since_ms=stream.since_ms,
        backfill=stream.backfill,
    )
    return [_job_of(spec, stream) for spec in specs]


def _job_of(spec: JobSpec, stream: StreamSettings) -> WishedJob:
    is_history = spec.type == types.OHLCV_BACKFILL.name
    priority = stream.priority
    if priority is not None and is_history:
        # History stays behind new bars, by as much as without a priority.
        behind = types.OHLCV_BACKFILL.priority - types.OHLCV_INCREMENTAL.priority
        priority = min(1000, priority + behind)
    since = stream.since if is_history else None
    return WishedJob(replace(spec, priority=priority), since, priority)


def _named(settings: Settings, exchange_id: str) -> dict[str, Any]:
    given = settings.exchanges.get(exchange_id)
    own = {} if given is None else _fields(given)
    if exchange_id == FXCM and settings.fxcm is not None:
        return configured_fxcm.named(settings.fxcm) | own
    return own


def _fields(given: ExchangeSettings) -> dict[str, Any]:
    names = given.model_fields_set - {"circuit", "key_ref", "price_stream"}
    found = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    if given.windows is not None:
        found["windows"] = tuple(Window(**window.model_dump()) for window in given.windows)
    return found | {name: getattr(given.circuit, name) for name in sorted(given.circuit_named)}
