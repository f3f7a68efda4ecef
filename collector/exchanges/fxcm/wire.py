"""The lines between parent and sidecar, from the parent's side. Pure: no process, no waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from collector.errors import ExchangeUnavailable


class BadLine(ExchangeUnavailable):
    """The sidecar wrote something that is no line of the protocol."""


class Tick(NamedTuple):
    """One price of an instrument, in the order of the wire.

    `number` counts every tick the SDK gave, those that were lost later as well. `time_ms` is the
    server's and has whole seconds only; `received_ms` is when the SDK handed it over. The two and
    `number` together put ticks in order. `number` starts again at 1 with every login.
    """

    number: int
    instrument: str
    bid: float
    ask: float
    high: float | None
    low: float | None
    volume: int | None
    time_ms: int
    received_ms: int


class Offer(NamedTuple):
    """An instrument and its last price, as the server lists it."""

    offer_id: str
    instrument: str
    bid: float | None
    ask: float | None
    high: float | None
    low: float | None
    volume: int | None
    time_ms: int | None
    digits: int
    point_size: float
    subscription_status: str
    trading_status: str


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """The SDK's session status: CONNECTING, CONNECTED, RECONNECTING, SESSION_LOST, ..."""

    status: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class TableStatus:
    """The state of the SDK's tables (`manager`), or of its prices (`offers`)."""

    table: str
    status: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class SidecarError:
    """A failure that belongs to no request. `kind` is one of the sidecar's failures."""

    kind: str
    message: str
    at_ms: int


Event = SessionStatus | TableStatus | SidecarError
_EVENTS: dict[str, type[Event]] = {
    "session": SessionStatus,
    "table_status": TableStatus,
    "error": SidecarError,
}


@dataclass(frozen=True, slots=True)
class SidecarReply:
    """What came of a request: a result, or the kind and the message of a failure."""

    id: int
    result: Any = None
    kind: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """What happened since the last one.

    `dropped` and `events_dropped` are totals since the process started. `incomplete` counts the
    ticks of this batch that are left out because they lack a price or a time.
    """

    seq: int
    dropped: int
    events_dropped: int
    ticks: tuple[Tick, ...] = ()
    events: tuple[Event, ...] = ()
    incomplete: int = 0


def encoded(request_id: int, op: str, lease_seconds: float, fields: dict[str, Any]) -> bytes:
    """One request. A lease that has passed is sent as zero, and the sidecar ends."""
    lease_ms = max(0, round(lease_seconds * 1000))
    return orjson.dumps({"id": request_id, "op": op, "lease_ms": lease_ms, **fields}) + b"\n"


def decoded(line: bytes) -> SidecarReply | Batch:
    try:
        fields = orjson.loads(line)
        if "seq" in fields:
            return _batch(fields)
        if "error" in fields:
            error = fields["error"]
            return SidecarReply(_whole(fields["id"]), kind=error["kind"], message=error["message"])
        return SidecarReply(_whole(fields["id"]), fields["result"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise BadLine(f"fxcm: the sidecar wrote a line that cannot be read: {error!r}") from error


def _batch(fields: dict[str, Any]) -> Batch:
    ticks = tuple(Tick._make(row) for row in fields["ticks"] if _complete(row))
    return Batch(
        _whole(fields["seq"]),
        _whole(fields["dropped"]),
        _whole(fields["events_dropped"]),
        ticks,
        tuple(_EVENTS[name](*words) for name, *words in fields["events"]),
        len(fields["ticks"]) - len(ticks),
    )


def _complete(row: list[Any]) -> bool:
    return row[2] is not None and row[3] is not None and row[7] is not None


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value
