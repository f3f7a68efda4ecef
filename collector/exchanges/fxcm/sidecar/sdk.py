"""The SDK's session: every call of forexconnect but those for history.

One `ForexConnect` a login; it cannot be used again. Callbacks come on threads of the SDK's own (the
first status of a login comes on ours). One that raises would be lost without a trace, or would make
a call of ours fail with SystemError, so none does.
"""

from __future__ import annotations

import glob
import importlib
import os
from typing import TYPE_CHECKING, Any

from . import history
from .failures import RefusedRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .outbox import Outbox
    from .request import Request

_OFFER_FIELDS = (
    "offer_id",
    "instrument",
    "bid",
    "ask",
    "high",
    "low",
    "volume",
    "time",
    "digits",
    "point_size",
    "subscription_status",
    "trading_status",
)


class Sdk:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._module: Any = None
        self._connect: Any = None
        self._listener: Any = None
        self._wanted: frozenset[str] | None = None

    def load(self) -> str:
        """Imports the SDK, which takes a moment, and returns its version."""
        try:
            self._module = importlib.import_module("forexconnect")
        except Exception as error:
            # An extension that does not load raises more than ImportError.
            raise RefusedRequest("sdk_missing", f"{type(error).__name__}: {error}") from error
        return _version(self._module)

    def login(self, request: Request) -> None:
        if self._connect is not None:
            raise RefusedRequest("bad_request", "this process has a session already")
        sdk = self._loaded()
        # Kept before the call: if the process is ended in the middle of it, this one is logged out.
        self._connect = sdk.ForexConnect()
        try:
            self._connect.login(
                request.text("user"),
                request.text("password"),
                request.text("url"),
                request.text("connection"),
                "",  # Which of several trading sessions, and its PIN: none is chosen.
                "",
                self._guarded(self._on_session),
                True,
                self._guarded(self._on_tables),
            )
        except BaseException:
            self.logout()
            raise

    def logout(self) -> None:
        connect, self._connect = self._connect, None
        self._listener = None
        if connect is None:
            return
        try:
            connect.logout()
        except Exception as error:  # noqa: BLE001 - the session is over either way
            self._outbox.event("error", "unknown", f"logout: {error}")

    def offers(self) -> list[list[Any]]:
        """Every offer as it is now."""
        return [[getattr(row, field) for field in _OFFER_FIELDS] for row in self._table()]

    def subscribe(self, request: Request) -> None:
        """From here on each change of these instruments, or of all, is a tick.

        An earlier listener is closed: after a reconnection of the SDK it hears nothing any more.
        """
        instruments = request.texts("instruments")
        table = self._table()
        self._unsubscribe()
        self._wanted = None if instruments is None else frozenset(instruments)
        self._listener = self._loaded().Common.subscribe_table_updates(
            table,
            on_add_callback=self._guarded(self._on_offer),
            on_change_callback=self._guarded(self._on_offer),
            on_status_change_callback=self._guarded(self._on_table),
        )

    def _unsubscribe(self) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        try:
            listener.unsubscribe()
        except Exception as error:  # noqa: BLE001 - it may be gone with the connection before
            self._outbox.event("error", "unknown", f"unsubscribe: {error}")

    def history(self, request: Request) -> dict[str, list[Any]]:
        return history.columns(self._session(), self._loaded().fxcorepy, request)

    def _loaded(self) -> Any:
        if self._module is None:
            raise RefusedRequest("bad_request", "say hello first")
        return self._module

    def _session(self) -> Any:
        if self._connect is None:
            raise RefusedRequest("session_lost", "not logged in")
        return self._connect

    def _table(self) -> Any:
        return self._session().get_table(self._loaded().ForexConnect.OFFERS)

    def _on_session(self, _session: Any, status: Any) -> None:
        self._outbox.event("session", str(status))

    def _on_tables(self, _listener: Any, _manager: Any, status: Any) -> None:
        self._outbox.event("table_status", "manager", str(status))

    def _on_table(self, _listener: Any, status: Any) -> None:
        self._outbox.event("table_status", "offers", str(status))

    def _on_offer(self, _listener: Any, _row_id: str, row: Any) -> None:
        instrument = row.instrument
        if self._wanted is None or instrument in self._wanted:
            self._outbox.tick(instrument, row.bid, row.ask, row.high, row.low, row.volume, row.time)

    def _guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as error:  # noqa: BLE001 - see the module's docstring
                self._outbox.event("error", "callback", f"{type(error).__name__}: {error}")

        return call


def _version(module: Any) -> str:
    """From the name of its dist-info folder: the package has it nowhere else."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(module.__file__)))
    found = sorted(glob.glob(os.path.join(folder, "forexconnect-*.dist-info")))
    return os.path.basename(found[-1])[len("forexconnect-") : -len(".dist-info")] if found else ""
