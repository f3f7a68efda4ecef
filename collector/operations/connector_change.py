"""What may be changed of a connector, checked alike for every front end."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from collector.connectors.circuit.gate import DEFAULTS, CircuitSettings
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.durations import DAY_MS
from collector.errors import InvalidInput
from collector.market.near import near

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.connectors.connector import Connector
    from collector.mongo.client import Database, Document

LARGEST_COUNT = 2**31 - 1
LONGEST_PERIOD_MS = 366 * DAY_MS
_BOUNDS = {
    "rate_limit": (1, LARGEST_COUNT),
    "rate_limit_period_ms": (1, LONGEST_PERIOD_MS),
    "max_concurrent_jobs": (1, LARGEST_COUNT),
    "priority_reserve": (0, LARGEST_COUNT),
    "reserve_threshold": (0, 1),
}
_ALGORITHMS = ("sliding_window", "fixed_window")
_CIRCUIT = {each.name: each for each in fields(CircuitSettings)}


async def change_connector(
    database: Database,
    exchange_id: str,
    changes: Mapping[str, Any],
    *,
    only_if: Document | None = None,
) -> Connector:
    """Sets what is given, plain values by the names that REST has for them.

    `spacing` may be a record. InvalidInput names what cannot be; then nothing is changed. Changed
    when the connector no longer has the values of `only_if`.
    """
    registry = ConnectorRegistry(database)
    now = await registry.get(exchange_id)
    return await registry.change_limits(
        exchange_id, checked(changes, now.limits.circuit), only_if=only_if
    )


def checked(changes: Mapping[str, Any], now: CircuitSettings = DEFAULTS) -> dict[str, Any]:
    """The fields of the document. Pure; InvalidInput for values that cannot be.

    `now` is what the gate has, for settings that depend on each other.
    """
    found: dict[str, Any] = {}
    for name, value in changes.items():
        if name == "circuit":
            found |= _circuit(value, now)
        elif name == "windows":
            found[name] = [_window(at, each) for at, each in enumerate(value)]
        elif name in ("notes", "spacing"):
            found[name] = value
        else:
            found[name] = _figure(name, value)
    return found


def _figure(name: str, value: Any) -> Any:
    if name == "algorithm":
        if value not in _ALGORITHMS:
            raise _bad(
                name, f"`{name}` is one of {', '.join(_ALGORITHMS)}", near(value, _ALGORITHMS)
            )
        return value
    least, most = _BOUNDS[name]
    if value is None and name == "max_concurrent_jobs":
        return None
    if not least <= value <= most:
        raise _bad(name, f"`{name}` is between {least} and {most}, not {value}")
    return value


def _window(at: int, given: Mapping[str, Any]) -> Window:
    window = Window(**given)
    if window.unit not in ("requests", "weight"):
        raise _bad(f"windows.{at}", f"a window counts requests or weight, not {window.unit!r}")
    if not (1 <= window.limit <= LARGEST_COUNT and 1 <= window.period_ms <= LONGEST_PERIOD_MS):
        raise _bad(f"windows.{at}", "a window has a limit and a period of at least 1")
    return window


def _circuit(given: Mapping[str, Any], now: CircuitSettings) -> dict[str, Any]:
    for name, value in given.items():
        if name not in _CIRCUIT:
            raise _bad(f"circuit.{name}", f"there is no setting {name!r}", near(name, _CIRCUIT))
        if not _is_kind(value, _CIRCUIT[name].default):
            raise _bad(f"circuit.{name}", f"`{name}` cannot be {value!r}")
    try:
        CircuitSettings(**{**asdict(now), **given})
    except (ValueError, TypeError) as error:
        raise _bad("circuit", str(error)) from None
    return {f"circuit.settings.{name}": value for name, value in given.items()}


def _is_kind(value: Any, default: Any) -> bool:
    """Whether a value is of the setting's type; one that is None by default is a count."""
    if isinstance(default, bool):
        return isinstance(value, bool)
    if value is None:
        return default is None
    wanted = (int, float) if isinstance(default, float) else int
    return isinstance(value, wanted) and not isinstance(value, bool)


def _bad(field: str, reason: str, like: tuple[str, ...] = ()) -> InvalidInput:
    return InvalidInput(field, "bad_limits", reason, like)
