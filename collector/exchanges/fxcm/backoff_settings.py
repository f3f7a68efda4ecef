"""How long to pause after failures, with the defaults: `history_backoff` and `redis_backoff`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from collector.backoff import Backoff
from collector.errors import ConfigError

FXCM_HISTORY = Backoff(base_seconds=5.0, max_seconds=180.0, multiplier=2.0, jitter=0.15)
REDIS = Backoff(base_seconds=5.0, max_seconds=60.0, multiplier=2.0, jitter=0.15)


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    fxcm_history: Backoff = FXCM_HISTORY
    redis: Backoff = REDIS

    @classmethod
    def of(cls, stream: Mapping[str, Any]) -> BackoffSettings:
        """From the keys of the `stream` section; those that are left out keep their defaults."""
        known = cls()
        return cls(
            _backoff(stream, "history_backoff", known.fxcm_history),
            _backoff(stream, "redis_backoff", known.redis),
        )


def _backoff(stream: Mapping[str, Any], key: str, default: Backoff) -> Backoff:
    given = stream.get(key, {})
    known = {each.name: getattr(default, each.name) for each in fields(Backoff)}
    if not isinstance(given, Mapping) or not set(given) <= set(known):
        raise ConfigError(f"stream.{key} has the keys {', '.join(known)} only")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"stream.{key}.{name} has to be a number, not {value!r}")
        known[name] = float(value)
    made = Backoff(**known)
    if not (
        0 < made.base_seconds <= made.max_seconds < math.inf
        and 1 <= made.multiplier < math.inf
        and 0 <= made.jitter < 1
    ):
        raise ConfigError(
            f"stream.{key} needs 0 < base_seconds <= max_seconds, a multiplier from 1 on"
            " and a jitter from 0 to 1"
        )
    return made
