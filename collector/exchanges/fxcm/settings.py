"""What one can set about FXCM: the section `fxcm` of the settings, with every default.

Rooms get the records that they work with from here: `quota`, `backoff`, `overrides`, `login`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
    with_config,
)

from collector.backoff import Backoff
from collector.errors import ConfigError
from collector.exchanges.fxcm.backoff_settings import FXCM_HISTORY, REDIS, BackoffSettings
from collector.exchanges.fxcm.quota_settings import (
    INTERVAL_KEY,
    LoadThresholds,
    QuotaSettings,
    tf_key,
)
from collector.market.calendar.fx import FX
from collector.market.calendar.sessions import Override
from collector.secrets import checked_reference, resolve

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://www.fxcorporate.com/Hosts.jsp"
_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
Poll = Annotated[float, Field(ge=2, le=20)]


@with_config(_STRICT)
@dataclass(frozen=True)
class ThresholdSection(LoadThresholds):
    """From which load on each rule holds."""


@with_config(_STRICT)
@dataclass(frozen=True)
class HistoryBackoffSection(Backoff):
    """The pause after failed calls for history."""

    max_seconds: float = FXCM_HISTORY.max_seconds


@with_config(_STRICT)
@dataclass(frozen=True)
class RedisBackoffSection(Backoff):
    """The pause after failed publishing."""

    max_seconds: float = REDIS.max_seconds


class FxcmStreamSettings(BaseModel):
    """The keys of `fxcm.stream`.

    Further `history_min_interval_seconds_<tf>` are accepted for any timeframe.
    """

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    history_max_calls_per_min: int = Field(default=120, ge=1)
    history_max_calls_per_hour: int = Field(default=2400, ge=1)
    history_min_interval_seconds_m1: float = Field(default=2.5, ge=0)
    history_min_interval_seconds_m5: float = Field(default=7.0, ge=0)
    history_priority_targets: str | list[str] = Field(
        default_factory=lambda: ["XAU/USD:m1", "XAU/USD:m5", "EUR/USD:m1", "EUR/USD:m5"]
    )
    history_priority_reserve_per_min: int = Field(default=1, ge=0)
    history_priority_reserve_per_hour: int = Field(default=12, ge=0)
    history_load_thresholds: ThresholdSection = ThresholdSection()
    history_backoff: HistoryBackoffSection = HistoryBackoffSection()
    redis_backoff: RedisBackoffSection = RedisBackoffSection()
    poll_seconds_m1: Poll = 2.0
    """How often new 1m bars are polled while ticks come; longer when they stop."""
    poll_seconds_m5: Poll = 3.0
    price_snap_interval_seconds: float = Field(default=3.0, gt=0, le=60)
    async_supervisor: bool = True
    """Publish through bounded queues; false publishes from the producer's own task."""

    @model_validator(mode="before")
    @classmethod
    def _intervals_are_numbers(cls, given: Any) -> Any:
        """Values of keys that have no field arrive from the environment as texts."""
        if not isinstance(given, dict):
            return given
        unknown = [
            name
            for name in given
            if name not in cls.model_fields and not name.startswith(INTERVAL_KEY)
        ]
        if unknown:
            raise ValueError(f"unknown keys: {', '.join(sorted(unknown))}")
        extra = {name for name in given if name not in cls.model_fields}
        return {**given, **{name: _number(name, given[name]) for name in extra}}

    @model_validator(mode="after")
    def _can_work(self) -> FxcmStreamSettings:
        seen: dict[str, tuple[str, float]] = {}
        for name in sorted(self.model_fields_set):
            if name.startswith(INTERVAL_KEY):
                seconds = getattr(self, name)
                tf = tf_key(name.removeprefix(INTERVAL_KEY))
                other, known = seen.setdefault(tf, (name, seconds))
                if known != seconds:
                    raise ValueError(f"{other}: {known} and {name}: {seconds} are the same setting")
        try:
            QuotaSettings.of(self.model_dump())
            BackoffSettings.of(self.model_dump())
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    @cached_property
    def quota(self) -> QuotaSettings:
        return QuotaSettings.of(self.model_dump())

    @cached_property
    def backoff(self) -> BackoffSettings:
        return BackoffSettings.of(self.model_dump())


class CalendarOverride(BaseModel):
    """Closed, or open, for once, in New York time: `2026-12-24 13:00` to `2026-12-24 17:00`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: str
    end: str
    open: bool = False


class FxcmSettings(BaseModel):
    """The section `fxcm`. Nothing in it is needed to read what was stored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: str | None = None
    password_ref: str = "secret://fxcm"
    """Where the password is; what stands there is the password alone."""
    url: str = URL
    connection: str = "Demo"
    """`Demo` or `Real`, as the account's own server is called."""
    calendar_overrides: list[CalendarOverride] = Field(default_factory=list)
    stream: FxcmStreamSettings = Field(default_factory=FxcmStreamSettings)

    @field_validator("password_ref")
    @classmethod
    def _is_reference(cls, value: str) -> str:
        return checked_reference(value)

    @field_validator("calendar_overrides")
    @classmethod
    def _make_a_calendar(cls, value: list[CalendarOverride]) -> list[CalendarOverride]:
        FX.with_overrides(_override(each) for each in value)
        return value

    @property
    def overrides(self) -> tuple[Override, ...]:
        """What FXCM's calendar is given beside its own sessions and holidays."""
        return tuple(map(_override, self.calendar_overrides))

    def password(self, home: Path) -> str:
        """The account's password. ConfigError when its reference leads nowhere."""
        return resolve(self.password_ref, home, os.environ).rstrip("\r\n")

    def lacks(self, home: Path) -> str | None:
        """What is missing for a login; None when nothing is."""
        if not self.user:
            return "no user is set: fxcm.user or COLLECTOR_FXCM__USER"
        try:
            self.password(home)
        except ConfigError as error:
            return str(error)
        return None


def _override(given: CalendarOverride) -> Override:
    return Override(given.start, given.end, given.open)


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} has to be a number, not {value!r}") from None
