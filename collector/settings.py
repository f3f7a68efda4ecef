"""Settings: one tree, read from `collector.yaml`, overridden by environment.

The file is `--config`, else `./collector.yaml`, else `$COLLECTOR_HOME/collector.yaml`. Names in the
environment are `COLLECTOR_` and the field, sections joined by two underscores:
`COLLECTOR_WORKER__CONCURRENCY=16`. Other packages do not use this module; they get their own small
records.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from collector.errors import ConfigError
from collector.exchanges.fxcm.settings import FxcmSettings
from collector.market.calendar.lookup import set_overrides
from collector.mongo.address import address, password_in
from collector.secrets import Keyring
from collector.settings_file import default_file, misplaced_key, read_file
from collector.settings_names import PREFIX, unknown_key, unknown_variables
from collector.settings_sections import (
    ApiSettings,
    ExchangeSettings,
    GlobalLimitSettings,
    HistorySettings,
    LoggingSettings,
    QualitySettings,
    ResampleSettings,
    ServerSettings,
    StorageSettings,
    StreamSettings,
    WorkerSettings,
)
from collector.store.address import with_endpoint

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    home: Path = Field(default_factory=lambda: Path.home() / ".local" / "share" / "collector")
    mongo_uri: str | None = None
    mongo_user: str | None = None
    mongo_password: SecretStr | None = None
    """Any characters, nothing encoded; `mongo_uri` then names no user."""
    mongo_password_file: Path | None = None
    mongo_patience_seconds: float = Field(default=60.0, ge=0)
    """How long `collector migrate` waits for a primary. Workers and the API wait without end."""
    mongo_db: str = "collector"
    core_dumps: bool = False
    """Whether a crash of a worker or the API may leave its memory, with all secrets, in a file."""
    data: str | None = None
    s3_endpoint: str | None = None
    """The server of an `s3://` in `data`, when it is not Amazon's own."""
    url: str | None = None
    """The API that commands work on. Default: this machine's database and files."""
    token: SecretStr | None = None
    """The key for it."""
    redis_url: SecretStr | None = None
    """With it, bars, price snapshots, heartbeat and market status are published to Redis too."""
    exchange_urls: dict[str, str] = Field(default_factory=dict)
    exchanges: dict[str, ExchangeSettings] = Field(default_factory=dict)
    streams: list[StreamSettings] = Field(default_factory=list)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    server: ServerSettings = Field(default_factory=ServerSettings)
    api_keys: SecretStr | None = None
    """`role:sha256hex,...`; the keys themselves are stored nowhere."""
    global_limit: GlobalLimitSettings | None = None
    fxcm: FxcmSettings | None = None
    """FXCM's account, budget and calendar; its own defaults hold without the section."""
    api: ApiSettings = Field(default_factory=ApiSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    resample: ResampleSettings = Field(default_factory=ResampleSettings)
    quality: QualitySettings = Field(default_factory=QualitySettings)
    history: HistorySettings = Field(default_factory=HistorySettings)
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

    @field_validator(
        "mongo_uri",
        "mongo_user",
        "mongo_password",
        "mongo_password_file",
        "redis_url",
        "url",
        "token",
        mode="before",
    )
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return value or None

    @field_validator("redis_url")
    @classmethod
    def _is_redis(cls, value: SecretStr | None) -> SecretStr | None:
        known = ("redis://", "rediss://", "unix://")
        if value is not None and not value.get_secret_value().startswith(known):
            raise ValueError("an address such as redis://127.0.0.1:6379/0 is needed")
        return value

    @field_validator("streams")
    @classmethod
    def _are_named_once(cls, value: list[StreamSettings]) -> list[StreamSettings]:
        first: dict[tuple[str, str, str], int] = {}
        for at, stream in enumerate(value):
            key = (stream.exchange, stream.symbol, stream.timeframe)
            if first.setdefault(key, at) != at:
                raise ValueError(f"{' '.join(key)} stands twice, as {first[key]} and as {at}")
        return value

    @field_validator("home")
    @classmethod
    def _expanded(cls, value: Path) -> Path:
        return value.expanduser()

    @property
    def mongo_address(self) -> str | None:
        """`mongo_uri` with user and password in it; None means the embedded MongoDB.

        Reads the password's file. ConfigError when the parts do not fit together.
        """
        file, given = self.mongo_password_file, self.mongo_password
        if file is not None and given is not None:
            raise ConfigError("mongo_password and mongo_password_file: give one of them")
        if self.mongo_uri is None:
            if self.mongo_user or file or given:
                raise ConfigError("mongo_user and its password need a mongo_uri")
            return None
        secret = given.get_secret_value() if given else None
        return address(self.mongo_uri, self.mongo_user, password_in(file) if file else secret)

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
    def snap_intervals(self) -> dict[str, float]:
        """Seconds between snapshots of live prices, by exchange, where it is configured."""
        fxcm = {} if self.fxcm is None else {"fxcm": self.fxcm.stream.price_snap_interval_seconds}
        return fxcm | {
            exchange_id: given.price_stream.price_snap_interval_seconds
            for exchange_id, given in self.exchanges.items()
            if "price_snap_interval_seconds" in given.price_stream.model_fields_set
        }

    @property
    def keyring(self) -> Keyring:
        """Which exchange has which key: `key_ref`, and `api.read_only_keys_ref` of the adapter."""
        named = {self.api.adapter: self.api.read_only_keys_ref} | {
            exchange_id: given.key_ref for exchange_id, given in self.exchanges.items()
        }
        return Keyring({name: ref for name, ref in named.items() if ref}, self.home)


def load(config: Path | None = None) -> Settings:
    """Reads file and environment. Raises ConfigError with one line per mistake.

    Calendars of this process follow the settings that were loaded last.
    """
    path = file_of(config)
    settings, mistakes = settings_or_mistakes(read_file(path) if path else {}, path)
    if settings is None or mistakes:
        raise ConfigError("; ".join(mistakes))
    set_overrides({} if settings.fxcm is None else {"fxcm": settings.fxcm.overrides})
    return settings


def file_of(config: Path | None) -> Path | None:
    """The named file, else the one that is found, if any."""
    return config or default_file()


def settings_or_mistakes(
    content: dict[str, Any], path: Path | None
) -> tuple[Settings | None, list[str]]:
    """The settings of this content and the environment, and all that is wrong with them."""
    unknown = unknown_variables(Settings, os.environ)
    mistakes = [f"the environment: {each}" for each in unknown]
    if (misplaced := misplaced_key(content)) is not None:
        mistakes.append(f"{path or 'the environment'}: {misplaced}")
    try:
        return Settings(**content), mistakes
    except SettingsError as error:
        return None, [*mistakes, f"the environment: {_broken_variable(error)}"]
    except ValidationError as error:
        where = str(path) if path else "the environment"
        issues = [f"{_variable(each) or where}: {_complaint(each)}" for each in error.errors()]
        return None, [*mistakes, *issues]


def _variable(issue: ErrorDetails) -> str | None:
    """The variable that a value comes from; None when none of its name is set."""
    parts = [str(part).upper() for part in issue["loc"]]
    names = [PREFIX + "__".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in names if name in os.environ), None)


def _complaint(issue: ErrorDetails) -> str:
    if issue["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return unknown_key(Settings, issue["loc"])
    words = issue["msg"].removeprefix("Value error, ")
    return f"{'.'.join(str(part) for part in issue['loc'])}: {words}"


def _broken_variable(error: SettingsError) -> str:
    """The name of the variable, and what is wrong; its value may be a secret."""
    field = re.search(r'field "(\w+)"', str(error))
    why = f"not JSON: {error.__cause__}" if error.__cause__ else str(error)
    return why if field is None else f"{PREFIX}{field[1].upper()} (or a part of it): {why}"
