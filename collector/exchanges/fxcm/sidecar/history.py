"""History by the column, in naive UTC, once the SDK is ready for it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from .failures import RefusedRequest

if TYPE_CHECKING:
    from .request import Request

_EPOCH = datetime(1970, 1, 1)
_POLL_SECONDS = 0.05
# Where the SDK keeps what it has loaded, under the working directory.
_CACHE = "./History"


def columns(connect: Any, core: Any, request: Request) -> dict[str, list[Any]]:
    """What the server has from `from_ms` to `to_ms`, the running bar included."""
    wait_until_ready(_communicator(connect, core), request.number("ready_ms") / 1000)
    table = connect.get_history(
        request.text("instrument"),
        request.text("timeframe"),
        _naive_utc(request.number("from_ms")),
        _naive_utc(request.number("to_ms")),
    )
    return {name: _plain(table[name]) for name in table.dtype.names}


def wait_until_ready(communicator: Any, seconds: float) -> None:
    """The SDK's own loop does not wait: it tests the method `is_ready` and never calls it."""
    deadline = time.monotonic() + seconds
    while not communicator.is_ready():
        if time.monotonic() >= deadline:
            raise RefusedRequest("not_ready", "PriceHistoryCommunicator is not ready.")
        time.sleep(_POLL_SECONDS)


def _communicator(connect: Any, core: Any) -> Any:
    """The one that `get_history` would make on its first call, and then keep."""
    if connect._com is None:
        connect._com = core.PriceHistoryCommunicatorFactory.create_communicator(
            connect.session, _CACHE
        )
    return connect._com


def _naive_utc(ms: int) -> datetime:
    """The SDK ignores time zones and cuts off parts of a second."""
    return _EPOCH + timedelta(milliseconds=ms)


def _plain(column: Any) -> list[Any]:
    if column.dtype.kind == "M":
        column = column.astype("M8[ms]").astype("i8")
    values: list[Any] = column.tolist()
    return values
