"""Providers: one folder and one line for a new way to reach exchanges."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.errors import SessionNotHeld
from collector.exchanges import registry
from collector.exchanges.quirks import Quirks, VenueWindow
from collector.market.calendar.calendar import ALWAYS_OPEN
from collector.market.calendar.lookup import calendar_of
from tests.support.no_permit import NoPermit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.exchanges.exclusive import SessionState
    from collector.exchanges.port import Permit
    from collector.exchanges.provider import Access
    from collector.market.calendar.calendar import Calendar


class NoSession:
    """A right that is not held."""

    def left(self) -> float:
        return 0.0

    def report(self, state: SessionState, reason: str) -> None:
        raise AssertionError("there is no session")

    def diagnose(self, diag: Mapping[str, Any]) -> None:
        raise AssertionError("there is no session")


class Archive:
    """A provider that is not ccxt."""

    exclusive_session = True
    polls_bars = False

    def ids(self) -> frozenset[str]:
        return frozenset({"archive"})

    def quirks(self, exchange_id: str) -> Quirks:
        return Quirks(
            exchange_id, VenueWindow("requests", 5, 1_000), largest_page=10, default_page=10
        )

    def calendar(self, exchange_id: str, symbol: str) -> Calendar:
        return ALWAYS_OPEN

    async def lacking(self, exchange_id: str, access: Access) -> str | None:
        return None

    def open(self, exchange_id: str, permit: Permit, access: Access) -> object:
        return ("opened", exchange_id, access.timeout_ms)


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    provider, module = Archive(), ModuleType("an_archive")
    module.PROVIDER = provider  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "an_archive", module)
    monkeypatch.setattr(registry, "PROVIDERS", (*registry.PROVIDERS, "an_archive"))
    registry._by_id.cache_clear()
    yield provider
    registry._by_id.cache_clear()


def test_no_exchange_has_two_providers() -> None:
    provided = [importlib.import_module(name).PROVIDER.ids() for name in registry.PROVIDERS]
    assert sum(map(len, provided)) == len(frozenset().union(*provided))


def test_every_provider_says_the_calendar_by_which_stored_bars_are_read() -> None:
    for exchange_id in registry.known_exchanges():
        said = registry.provider_of(exchange_id).calendar(exchange_id, "BTC/USDT")
        assert said == calendar_of(exchange_id, "BTC/USDT")


def test_a_provider_in_the_list_is_all_that_it_takes(archive: Archive) -> None:
    assert "archive" in registry.known_exchanges()
    assert registry.near_matches("arcive")[0] == "archive"
    assert registry.quirks_for("archive").requests == VenueWindow("requests", 5, 1_000)
    opened = registry.open_exchange(
        "archive", NoPermit(), urls={}, clock=ManualClock(), timeout_ms=7, session=NoSession()
    )
    assert opened == ("opened", "archive", 7)


def test_an_exclusive_session_is_opened_by_nobody_who_does_not_hold_it(archive: Archive) -> None:
    for exchange_id in ("archive", "fxcm"):
        with pytest.raises(SessionNotHeld):
            registry.open_exchange(exchange_id, NoPermit(), urls={}, clock=ManualClock())


def test_a_provider_says_whether_its_session_is_exclusive(archive: Archive) -> None:
    assert registry.provider_of("archive") is archive
    assert archive.exclusive_session
    assert not registry.provider_of("binance").exclusive_session
