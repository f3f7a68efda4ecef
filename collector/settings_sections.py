"""The sections of the settings: a record each, with its defaults and what it refuses.

`settings.py` joins them into one tree, and reads it from the file and the environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    field_validator,
    model_validator,
    with_config,
)

from collector.connectors.circuit.gate import CircuitSettings
from collector.history.layout import checked_network
from collector.history.policy import CrossNet
from collector.history.terms import BUCKET_SEC, HistoryTerms
from collector.market.moment import Moment, epoch_ms
from collector.market.timeframe import MINUTE, Timeframe
from collector.pipeline.resample import divides
from collector.secrets import checked_reference


class Section(BaseModel):
    """A part of the file. Unknown keys are refused: a misspelt limit must not pass as no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WindowSettings(Section):
    unit: Literal["requests", "weight"] = "requests"
    limit: int = Field(ge=1)
    period_ms: int = Field(ge=1)
    priority_reserve: int = Field(default=0, ge=0)


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class CircuitSection(CircuitSettings):
    """The circuit gate's settings, checked as the gate itself checks them."""


class PriceStreamSettings(Section):
    """Live prices of an exchange, as snapshots, with a heartbeat."""

    enabled: bool = False
    price_snap_interval_seconds: float = Field(default=3.0, ge=0.1, le=60)
    symbols: tuple[str, ...] = ()
    """Whose prices; none means those of the series that are collected."""


class ExchangeSettings(Section):
    """A connector. What is not given is the venue's own figure, or what an operator has set."""

    rate_limit: int | None = Field(default=None, ge=1)
    rate_limit_period_ms: int | None = Field(default=None, ge=1)
    algorithm: Literal["sliding_window", "fixed_window"] | None = None
    windows: list[WindowSettings] | None = None
    max_concurrent_jobs: int | None = Field(default=None, ge=1)
    priority_reserve: int | None = Field(default=None, ge=0)
    reserve_threshold: float | None = Field(default=None, ge=0, le=1)
    circuit: CircuitSection | None = None
    notes: str | None = None
    price_stream: PriceStreamSettings = Field(default_factory=PriceStreamSettings)
    key_ref: str | None = None
    """Where its read-only key is, as `secret://...`; bars are public and need none."""
    _circuit_named: frozenset[str] = PrivateAttr(default=frozenset())

    @model_validator(mode="wrap")
    @classmethod
    def _notes_what_is_named(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(given)
        circuit = given.get("circuit") if isinstance(given, dict) else None
        if isinstance(circuit, dict):
            made._circuit_named = frozenset(circuit)
        return made

    @property
    def circuit_named(self) -> frozenset[str]:
        """The settings of the circuit gate that are given; a dataclass has no set of them."""
        return self._circuit_named

    @field_validator("key_ref")
    @classmethod
    def _is_reference(cls, value: str | None) -> str | None:
        return None if value is None else checked_reference(value)


class StreamSettings(Section):
    """One configured `{exchange, symbol, timeframe}`; becomes an incremental and a backfill job."""

    exchange: str
    symbol: str
    timeframe: str
    since: int | None = None
    """A moment in any form that `collector.market.moment` reads, kept in epoch ms; without it
    history starts at the first bar."""
    backfill: bool = True
    priority: int | None = Field(default=None, ge=0, le=1000)
    """Of the job for new bars; the one for history is as far behind it as by default."""

    @field_validator("timeframe")
    @classmethod
    def _is_timeframe(cls, value: str) -> str:
        return Timeframe.parse(value).name

    @field_validator("since", mode="before")
    @classmethod
    def _is_moment(cls, value: Moment | None) -> int | None:
        return None if value is None else epoch_ms(value)

    @property
    def since_ms(self) -> int:
        return self.since or 0


class WorkerSettings(Section):
    concurrency: int = Field(default=100, ge=1, le=1000)
    exchanges: list[str] = Field(default_factory=list)
    """Work only for these; empty means all."""
    lease_ttl_ms: int = Field(default=30_000, ge=300)
    session_logout_ms: int = Field(default=30_000, ge=0)
    """An account that allows one login passes to another worker this long after its lease ended:
    the time a logout takes.
    """
    poll_seconds: float = Field(default=2.0, gt=0)
    token_patience_seconds: float = Field(default=1.5, ge=0)
    """A token that comes this soon is waited for; for a later one the job steps back."""
    lasting_after_hours: float = Field(default=24.0, gt=0)
    """An exchange that refuses without a reason is retried for this long."""
    metrics_host: str = "127.0.0.1"
    """Any address but loopback needs `api_keys`, as for the API."""
    metrics_port: int = Field(default=0, ge=0, le=65_535)
    """0 takes a free one, so that workers of one machine do not collide."""
    keep_deleted_days: float = Field(default=7.0, gt=0)
    """Deleted jobs are listed for this many days, then removed for good."""


class GlobalLimitSettings(Section):
    """The optional limiter over all exchanges together, to protect our own machines."""

    rate_limit: int = Field(ge=1)
    rate_limit_period_ms: int = Field(default=1000, ge=1)


class ServerSettings(Section):
    """Where the API listens. Any address but loopback needs `api_keys`."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65_535)
    """0 takes a free one."""


class ApiSettings(Section):
    """The exchange that `datalayer` works with, by the names of its own settings."""

    adapter: str = "bybit"
    base_url: str | None = None
    """Where its requests go; `exchange_urls` wins."""
    read_only_keys_ref: str | None = None
    """`key_ref` of the adapter, which wins."""
    timeout_s: float = Field(default=10.0, gt=0, le=600)
    max_retries: int = Field(default=5, ge=1)
    """Tries of one page before its run ends and the job backs off; and failed runs in a row after
    which `datalayer backfill` gives up. The job itself does not."""
    max_concurrent: int | None = Field(default=None, ge=1)
    """`max_concurrent_jobs` of a connector that `datalayer backfill` makes."""
    page_size: int | None = Field(default=None, ge=1)
    """Bars per request; never more than the exchange serves."""

    @field_validator("read_only_keys_ref")
    @classmethod
    def _is_reference(cls, value: str | None) -> str | None:
        return None if value is None else checked_reference(value)

    @property
    def timeout_ms(self) -> int:
        return round(self.timeout_s * 1000)

    @property
    def page_sizes(self) -> dict[str, int]:
        return {} if self.page_size is None else {self.adapter: self.page_size}


class StorageSettings(Section):
    base_dir: str | None = None
    """The same as `data`, which wins."""
    compression: Literal["zstd"] = "zstd"
    tail_days: int = Field(default=14, ge=1)


class ResampleSettings(Section):
    tfs: list[str] = Field(default_factory=lambda: ["5m", "15m", "1h"])
    strict_gaps: bool = True
    """A window that lacks a minute without a flag fails `datalayer validate`."""

    @field_validator("tfs")
    @classmethod
    def _are_made_of_minutes(cls, value: list[str]) -> list[str]:
        frames = [Timeframe.parse(name) for name in value]
        for frame in frames:
            if frame <= MINUTE or not divides(MINUTE, frame):
                raise ValueError(f"{frame} bars cannot be made of {MINUTE} bars")
        return [frame.name for frame in frames]


class QualitySettings(Section):
    max_gap_pct: float = Field(default=0.0001, ge=0, le=1)
    """The share of a series that may be missing; 0.0001 is 0.01%."""
    gap_recovery_days: int = Field(default=7, ge=0)
    """Gaps younger than this are requested again."""
    sanity_check_samples: int = Field(default=200, ge=0)
    """Bars of each series that `datalayer validate` compares with the exchange."""


class HistorySettings(Section):
    """Trade history: confirmed trades of networks as buckets."""

    networks: list[str] = Field(default_factory=list)
    """Names in lower case. Events are accepted for these networks only."""
    cross_net_policy: Literal["reject", "warn"] = "reject"
    """`warn` counts trades between two nets and logs them."""
    cache: bool = True
    """Without it every answer is made from the ledger, which takes longer."""
    bucket_sec: int = Field(default=BUCKET_SEC, ge=1, lt=1 << 32)
    """After a change buckets are made again; until then the old ones are used."""

    @field_validator("networks")
    @classmethod
    def _are_networks(cls, value: list[str]) -> list[str]:
        return [checked_network(name) for name in dict.fromkeys(value)]

    @property
    def terms(self) -> HistoryTerms:
        policy = CrossNet(self.cross_net_policy)
        return HistoryTerms(tuple(self.networks), policy, self.cache, self.bucket_sec)


class LoggingSettings(Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    format: Literal["auto", "text", "json"] = "auto"
