"""The budget for history requests to FXCM, with the defaults: the keys `stream.history_*`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from collector.errors import ConfigError
from collector.exchanges.quirks.spacing import spacing_key
from collector.market.timeframe import Timeframe

INTERVAL_KEY = "history_min_interval_seconds_"


class HistoryTarget(NamedTuple):
    """A symbol and a timeframe, spelled one way: `XAUUSD` and `1m`."""

    symbol: str
    tf: str

    @classmethod
    def of(cls, symbol: str, tf: str) -> HistoryTarget:
        """Accepts `XAU/USD` and FXCM's `m1`, too."""
        return cls(symbol.replace("/", "").upper(), tf_key(tf))

    def __str__(self) -> str:
        return spacing_key(self.symbol, self.tf)


def tf_key(tf: str) -> str:
    """`1m` for `m1`, `1h` for `H1` and `h1`, `1M` for FXCM's month `M1`; else as it is given."""
    unit, count = tf[:1], tf[1:]
    name = count + (unit if unit == "M" else unit.lower()) if count.isdigit() else tf
    try:
        return Timeframe.parse(name).name
    except ValueError:
        return tf


@dataclass(frozen=True, slots=True)
class LoadThresholds:
    """From which load on each rule holds. Kept within [0, 1], and none below the one before it."""

    min_interval: float = 0.45
    warn: float = 0.7
    reserve: float = 0.7
    critical: float = 0.9

    def __post_init__(self) -> None:
        least = 0.0
        for name in ("min_interval", "warn", "reserve", "critical"):
            least = max(least, min(getattr(self, name), 1.0))
            object.__setattr__(self, name, least)


def _default_intervals() -> Mapping[str, float]:
    return MappingProxyType({"1m": 2.5, "5m": 7.0})


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    max_calls_per_min: int = 120
    max_calls_per_hour: int = 2400
    min_interval_by_tf: Mapping[str, float] = field(default_factory=_default_intervals)
    """Seconds between two calls of one pair, by timeframe; those of no other are spaced."""
    priority_targets: frozenset[HistoryTarget] = frozenset(
        HistoryTarget(symbol, tf) for symbol in ("XAUUSD", "EURUSD") for tf in ("1m", "5m")
    )
    priority_reserve_per_min: int = 1
    priority_reserve_per_hour: int = 12
    thresholds: LoadThresholds = LoadThresholds()

    def __post_init__(self) -> None:
        # A reserve that is the whole window would refuse all others for ever.
        for name in ("min", "hour"):
            limit = getattr(self, f"max_calls_per_{name}")
            if not 0 <= getattr(self, f"priority_reserve_per_{name}") < limit:
                raise ConfigError(
                    f"stream.history_priority_reserve_per_{name} has to be less than"
                    f" history_max_calls_per_{name}, which is {limit}"
                )

    def min_interval(self, pair: HistoryTarget) -> float:
        return self.min_interval_by_tf.get(pair.tf, 0.0)

    @classmethod
    def of(cls, stream: Mapping[str, Any]) -> QuotaSettings:
        """From the keys of the `stream` section; those that are left out keep their defaults."""
        known = cls()
        return cls(
            _whole(stream, "history_max_calls_per_min", known.max_calls_per_min, 1),
            _whole(stream, "history_max_calls_per_hour", known.max_calls_per_hour, 1),
            MappingProxyType({**known.min_interval_by_tf, **_intervals(stream)}),
            _targets(stream, known.priority_targets),
            _whole(stream, "history_priority_reserve_per_min", known.priority_reserve_per_min, 0),
            _whole(stream, "history_priority_reserve_per_hour", known.priority_reserve_per_hour, 0),
            _thresholds(stream),
        )


def _whole(stream: Mapping[str, Any], key: str, default: int, least: int) -> int:
    value = stream.get(key, default)
    if type(value) is not int or value < least:
        raise ConfigError(f"stream.{key} has to be a whole number from {least} on, not {value!r}")
    return value


def _intervals(stream: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for key, value in stream.items():
        if key.startswith(INTERVAL_KEY):
            seconds = _finite(key, value)
            if seconds < 0:
                raise ConfigError(f"stream.{key} cannot be negative")
            tf = tf_key(key.removeprefix(INTERVAL_KEY))
            try:
                Timeframe.parse(tf)
            except ValueError:
                raise ConfigError(f"stream.{key}: {tf!r} is no timeframe") from None
            found[tf] = seconds
    return found


def _thresholds(stream: Mapping[str, Any]) -> LoadThresholds:
    key = "history_load_thresholds"
    given = stream.get(key, {})
    names = set(LoadThresholds.__slots__)
    if not isinstance(given, Mapping) or not set(given) <= names:
        raise ConfigError(f"stream.{key} has the keys {', '.join(LoadThresholds.__slots__)} only")
    return LoadThresholds(**{name: _finite(f"{key}.{name}", each) for name, each in given.items()})


def _targets(
    stream: Mapping[str, Any], default: frozenset[HistoryTarget]
) -> frozenset[HistoryTarget]:
    """`SYMBOL:tf` texts, such as `XAU/USD:m1`, in a list or with commas between them."""
    key = "history_priority_targets"
    given = stream.get(key)
    if given is None:
        return default
    texts = given.split(",") if isinstance(given, str) else given
    if not isinstance(texts, Sequence):
        raise ConfigError(f"stream.{key} has to be a list of texts such as XAU/USD:m1")
    return frozenset(_target(key, text) for text in texts if text != "")


def _target(key: str, text: Any) -> HistoryTarget:
    symbol, _, tf = text.strip().rpartition(":") if isinstance(text, str) else ("", "", "")
    target = HistoryTarget.of(symbol, tf)
    try:
        Timeframe.parse(target.tf)
    except ValueError:
        symbol = ""
    if not symbol:
        raise ConfigError(f"stream.{key}: {text!r} is not a text such as XAU/USD:m1")
    return target


def _finite(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"stream.{key} has to be a number, not {value!r}")
    return float(value)
