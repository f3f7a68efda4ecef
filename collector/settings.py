"""Settings: one tree, read from `collector.yaml`, overridden by environment.

The file is `--config`, else `./collector.yaml`, else `$COLLECTOR_HOME/collector.yaml`. Names in the
environment are `COLLECTOR_` and the field, sections joined by two underscores:
`COLLECTOR_WORKER__CONCURRENCY=16`. Rooms never see this module; they get their own small records.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    with_config,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from collector.connectors.circuit import CircuitSettings
from collector.errors import ConfigError
from collector.market.timeframe import Timeframe
from collector.secrets import Keyring, checked_reference
from collector.store.address import with_endpoint


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


class ExchangeSettings(Section):
    """A connector to be seeded. What is left out comes from the venue's own figures."""

    rate_limit: int | None = Field(default=None, ge=1)
    rate_limit_period_ms: int | None = Field(default=None, ge=1)
    algorithm: Literal["sliding_window", "fixed_window"] | None = None
    windows: list[WindowSettings] | None = None
    max_concurrent_jobs: int | None = Field(default=None, ge=1)
    priority_reserve: int | None = Field(default=None, ge=0)
    reserve_threshold: float | None = Field(default=None, ge=0, le=1)
    circuit: CircuitSection | None = None
    notes: str | None = None
    key_ref: str | None = None
    """Where its read-only key is, as `secret://...`; bars are public and need none."""

    @field_validator("key_ref")
    @classmethod
    def _is_reference(cls, value: str | None) -> str | None:
        return None if value is None else checked_reference(value)


class StreamSettings(Section):
    """One configured `{exchange, symbol, timeframe}`; becomes an incremental and a backfill job."""

    exchange: str
    symbol: str
    timeframe: str
    since: datetime | None = None
    """UTC unless it says otherwise; without it history starts at the first bar."""
    backfill: bool = True

    @field_validator("timeframe")
    @classmethod
    def _is_timeframe(cls, value: str) -> str:
        return Timeframe.parse(value).name

    @property
    def since_ms(self) -> int:
        if self.since is None:
            return 0
        date = self.since if self.since.tzinfo else self.since.replace(tzinfo=UTC)
        return round(date.timestamp() * 1000)


class WorkerSettings(Section):
    concurrency: int = Field(default=100, ge=1, le=1000)
    exchanges: list[str] = Field(default_factory=list)
    """Work only for these; empty means all."""
    lease_ttl_ms: int = Field(default=30_000, ge=300)
    poll_seconds: float = Field(default=2.0, gt=0)
    token_patience_seconds: float = Field(default=1.5, ge=0)
    """A token that comes this soon is waited for in place; for a later one the job steps back."""
    metrics_host: str = "127.0.0.1"
    """Any address but loopback needs `api_keys`, as for the API."""
    metrics_port: int = Field(default=0, ge=0, le=65_535)
    """0 takes a free one, so that workers of one machine do not collide."""


class GlobalLimitSettings(Section):
    """The optional limiter over all exchanges together, for the sake of our own machines."""

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
    """Failures in a row after which `datalayer backfill` gives up; the job itself does not."""
    max_concurrent: int | None = Field(default=None, ge=1)
    """`max_concurrent_jobs` of a connector that `datalayer backfill` makes."""
    page_size: int | None = Field(default=None, ge=1)
    """Bars asked for at a time; never more than the exchange gives."""

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
    """A window that lacks a minute and does not say so fails `datalayer validate`."""

    @field_validator("tfs")
    @classmethod
    def _are_timeframes(cls, value: list[str]) -> list[str]:
        return [Timeframe.parse(name).name for name in value]


class QualitySettings(Section):
    max_gap_pct: float = Field(default=0.0001, ge=0, le=1)
    """The share of a series that may be missing; 0.0001 is 0.01%."""
    gap_recovery_days: int = Field(default=7, ge=0)
    """Gaps younger than this are asked for again."""
    sanity_check_samples: int = Field(default=200, ge=0)
    """Bars of each series that `datalayer validate` compares with the exchange."""


class LoggingSettings(Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    format: Literal["auto", "text", "json"] = "auto"


class Settings(BaseSettings):
    """Everything one can set."""

    model_config = SettingsConfigDict(
        env_prefix="COLLECTOR_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    home: Path = Field(default_factory=lambda: Path.home() / ".local" / "share" / "collector")
    mongo_uri: str | None = None
    mongo_db: str = "collector"
    data: str | None = None
    s3_endpoint: str | None = None
    """The server of an `s3://` in `data`, when it is not Amazon's own."""
    exchange_urls: dict[str, str] = Field(default_factory=dict)
    exchanges: dict[str, ExchangeSettings] = Field(default_factory=dict)
    streams: list[StreamSettings] = Field(default_factory=list)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    server: ServerSettings = Field(default_factory=ServerSettings)
    api_keys: SecretStr | None = None
    """`role:sha256hex,...`; the keys themselves are stored nowhere."""
    global_limit: GlobalLimitSettings | None = None
    api: ApiSettings = Field(default_factory=ApiSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    resample: ResampleSettings = Field(default_factory=ResampleSettings)
    quality: QualitySettings = Field(default_factory=QualitySettings)
    logging: LoggingSettings = Field(default_factory=LoggingSettings)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment wins over the file, whose content arrives as arguments."""
        return env_settings, init_settings

    @field_validator("home")
    @classmethod
    def _expanded(cls, value: Path) -> Path:
        return value.expanduser()

    @property
    def data_root(self) -> str:
        root = self.data or self.storage.base_dir or str(self.home / "data")
        return with_endpoint(root, self.s3_endpoint)

    @property
    def addresses(self) -> dict[str, str]:
        """Where requests go instead: `exchange_urls`, and `api.base_url` for the adapter."""
        own = {} if self.api.base_url is None else {self.api.adapter: self.api.base_url}
        return {**own, **self.exchange_urls}

    @property
    def keyring(self) -> Keyring:
        """Which exchange has which key: `key_ref`, and `api.read_only_keys_ref` of the adapter."""
        named = {self.api.adapter: self.api.read_only_keys_ref} | {
            exchange_id: given.key_ref for exchange_id, given in self.exchanges.items()
        }
        return Keyring({name: ref for name, ref in named.items() if ref}, self.home)


def load(config: Path | None = None) -> Settings:
    """Reads file and environment. Raises ConfigError with one line per mistake."""
    path = config or _default_file()
    content = _read(path) if path else {}
    try:
        return Settings(**content)
    except ValidationError as error:
        where = str(path) if path else "the environment"
        lines = [
            f"{'.'.join(str(part) for part in issue['loc'])}: {issue['msg']}"
            for issue in error.errors()
        ]
        raise ConfigError(f"{where}: " + "; ".join(lines)) from error


def _default_file() -> Path | None:
    home = Path(os.environ.get("COLLECTOR_HOME") or Path.home() / ".local" / "share" / "collector")
    candidates = (Path("collector.yaml"), home / "collector.yaml")
    return next((path for path in candidates if path.is_file()), None)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold keys and values, not a {type(content).__name__}")
    return content
