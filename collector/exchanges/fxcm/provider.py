"""FXCM through its own SDK: one account, one session, one worker at a time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from collector.errors import ConfigError, SessionNotHeld
from collector.exchanges.fxcm.failures import EXCHANGE_ID

if TYPE_CHECKING:
    from collector.exchanges.fxcm.process import Timeouts
    from collector.exchanges.port import Exchange, Permit
    from collector.exchanges.provider import Access
    from collector.exchanges.quirks.record import Quirks
    from collector.market.calendar.calendar import Calendar


class FxcmProvider:
    """The exchange `fxcm`."""

    exclusive_session = True
    polls_bars = True

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        self._timeouts = timeouts

    def ids(self) -> frozenset[str]:
        return frozenset({EXCHANGE_ID})

    def quirks(self, exchange_id: str) -> Quirks:
        from collector.exchanges.fxcm.quirks import QUIRKS

        return QUIRKS

    def calendar(self, exchange_id: str, symbol: str) -> Calendar:
        from collector.market.calendar.lookup import calendar_of

        return calendar_of(exchange_id, symbol)

    async def lacking(self, exchange_id: str, access: Access) -> str | None:
        """No Python 3.7 with the SDK, or no user."""
        from collector.exchanges.fxcm.account import account_of
        from collector.exchanges.fxcm.interpreter import find_interpreter

        try:
            await find_interpreter(access.environ)
            account_of(access)
        except ConfigError as error:
            return str(error)
        return None

    def open(self, exchange_id: str, permit: Permit, access: Access) -> Exchange:
        from collector.exchanges.fxcm.account import account_of, settings_of
        from collector.exchanges.fxcm.exchange import FxcmExchange
        from collector.exchanges.fxcm.history_turns import HistoryTurns
        from collector.exchanges.fxcm.limits import spacing
        from collector.exchanges.fxcm.open_session import OpenSession

        if access.session is None:
            raise SessionNotHeld("fxcm is opened by the worker that holds its session alone")
        calendar, stream = self.calendar(exchange_id, ""), settings_of(access).stream
        session = OpenSession(
            access.session,
            access,
            partial(account_of, access),
            calendar,
            timeouts=self._timeouts,
            backoff=stream.backoff,
        )
        turns = HistoryTurns(spacing(stream.quota).first)
        return FxcmExchange(session, permit, calendar, access.clock, turns)


PROVIDER = FxcmProvider()
