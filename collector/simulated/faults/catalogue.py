"""Faults as JSON and back."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field, TypeAdapter, ValidationError

from collector.simulated.faults.answers import (
    BadAnswer,
    Ban,
    ClockDrift,
    Empty,
    Gateway,
    Hang,
    Html,
    Huge,
    Latency,
    Malformed,
    Reset,
    ServerError,
    TooManyRequests,
    Truncated,
)
from collector.simulated.faults.arrival import LateArrival
from collector.simulated.faults.history import Missing, NoTrade, Revision
from collector.simulated.faults.pages import IgnoresSince, OtherSymbol, Stale
from collector.simulated.faults.rows import (
    BadOhlc,
    Disorder,
    Dropped,
    Duplicates,
    Future,
    Unaligned,
    WrongTypes,
)
from collector.simulated.faults.socket import SocketDisconnect, SocketSilence

if TYPE_CHECKING:
    from collector.simulated.faults.record import Fault

_OnTheWire = (
    LateArrival
    | Latency
    | TooManyRequests
    | Ban
    | ServerError
    | Hang
    | Reset
    | Truncated
    | Malformed
    | Html
    | Gateway
    | BadAnswer
    | Empty
    | ClockDrift
    | Huge
)
_AnotherPage = IgnoresSince | OtherSymbol | Stale
_InThePage = Dropped | Duplicates | Disorder | BadOhlc | Unaligned | WrongTypes | Future
_InTheHistory = NoTrade | Missing | Revision
_OnTheSocket = SocketSilence | SocketDisconnect
_Any = _OnTheWire | _AnotherPage | _InThePage | _InTheHistory | _OnTheSocket

KINDS: dict[str, type[Fault]] = {kind.kind: kind for kind in get_args(_Any)}
"""Every fault by its name."""

_ADAPTER: TypeAdapter[list[Fault]] = TypeAdapter(
    list[Annotated[_Any, Field(discriminator="kind")]]  # type: ignore[arg-type]
)


def parse_faults(content: Any) -> list[Fault]:
    """Faults from JSON: one object or a list. Raises ValueError with what is wrong."""
    listed = content if isinstance(content, list) else [content]
    try:
        return _ADAPTER.validate_python(listed)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"fault {place}: {first['msg']}") from None


def fault_json(fault: Fault) -> dict[str, Any]:
    """The record as JSON: its kind and every field that has a value."""
    values = ((field.name, getattr(fault, field.name)) for field in fields(fault))
    return {name: value for name, value in values if value is not None and value != ()}
