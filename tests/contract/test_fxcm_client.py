"""FXCM as the rest of Collector sees it: logins, history, ticks, errors by their reaction."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from collector.errors import (
    BadRequest,
    CollectorError,
    ExchangeBlocked,
    ExchangeRefused,
    ExchangeUnavailable,
    KeyRefused,
)
from collector.exchanges.fxcm.client import FxcmLogin
from collector.exchanges.fxcm.failures import (
    FxcmMissing,
    FxcmNoData,
    FxcmNotReady,
    SessionLost,
    SidecarLost,
)
from collector.exchanges.fxcm.interpreter import Interpreter
from collector.exchanges.fxcm.process import Timeouts
from collector.exchanges.fxcm.wire import SessionStatus
from tests.support.fxcm.fixtures import PASSWORD
from tests.support.fxcm.fxcorepy import truth
from tests.support.fxcm.fxcorepy.hours import closed_since
from tests.support.fxcm.server import NOON_MS

if TYPE_CHECKING:
    from collector.exchanges.fxcm.bars import BidAskBars
    from tests.support.fxcm.fixtures import Desk

HOUR_MS = 3_600_000
# Friday 19 January 2024, 16:00 in New York; the market closes at 16:55.
FRIDAY_MS = 1_705_698_000_000


def assert_true(bars: BidAskBars, name: str, timeframe: str, begin: int, end: int) -> None:
    """Every column is what the market knows, bar by bar."""
    known = truth.bars(name, timeframe, begin, end, NOON_MS + 7 * 24 * HOUR_MS)
    columns = list(zip(*known, strict=True))
    times = [np.datetime64(date, "ms").astype(np.int64) for date in columns[0]]
    assert bars.time_ms.tolist() == times
    prices = (
        *(bars.bid_open, bars.bid_high, bars.bid_low, bars.bid_close),
        *(bars.ask_open, bars.ask_high, bars.ask_low, bars.ask_close),
    )
    for got, expected in zip(prices, columns[1:9], strict=True):
        assert got.tolist() == list(expected)
    assert bars.volume.tolist() == list(columns[9])


async def test_history_is_what_the_market_knows(fxcm: Desk) -> None:
    fxcm.server.change(now_ms=NOON_MS + 7 * 24 * HOUR_MS)
    client = await fxcm.logged_in()
    for name, timeframe in (("EUR/USD", "m1"), ("XAU/USD", "m5"), ("USD/JPY", "H1")):
        begin, end = NOON_MS - 6 * HOUR_MS, NOON_MS
        bars = await client.history(name, timeframe, begin, end)
        assert len(bars) > 5
        assert_true(bars, name, timeframe, begin, end)


async def test_there_are_no_bars_over_the_weekend(fxcm: Desk) -> None:
    fxcm.server.change(now_ms=NOON_MS + 7 * 24 * HOUR_MS)
    client = await fxcm.logged_in()
    end = FRIDAY_MS + 51 * HOUR_MS  # Sunday 19:00
    bars = await client.history("EUR/USD", "m1", FRIDAY_MS, end)
    assert_true(bars, "EUR/USD", "m1", FRIDAY_MS, end)
    assert all(closed_since(ms) is None for ms in bars.time_ms.tolist())
    assert np.diff(bars.time_ms).max() == 48 * HOUR_MS + 6 * 60_000


async def test_the_running_bar_is_part_of_the_answer(fxcm: Desk) -> None:
    fxcm.server.change(now_ms=NOON_MS + 30_000)
    client = await fxcm.logged_in()
    bars = await client.history("EUR/USD", "m1", NOON_MS - 60_000, NOON_MS + HOUR_MS)
    assert bars.time_ms.tolist() == [NOON_MS - 60_000, NOON_MS]


async def test_history_without_a_bar_is_empty_columns(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    begin = FRIDAY_MS - 7 * 24 * HOUR_MS + 2 * HOUR_MS
    bars = await client.history("EUR/USD", "m1", begin, begin + HOUR_MS)
    assert len(bars) == 0
    assert bars.bid_open.dtype == np.float64


async def test_a_long_history_comes_in_one_piece(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    begin = NOON_MS - 5 * 24 * HOUR_MS
    bars = await client.history("EUR/USD", "m1", begin, NOON_MS - 60_000)
    assert_true(bars, "EUR/USD", "m1", begin, NOON_MS - 60_000)
    assert len(bars) > 4000  # more than one read of the pipe


async def test_readiness_is_polled(fxcm: Desk) -> None:
    fxcm.server.change(ready_after=3)
    client = await fxcm.logged_in()
    assert len(await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)) == 1


async def test_history_that_never_gets_ready_says_so(fxcm: Desk) -> None:
    fxcm.server.change(ready_after=None)
    client = await fxcm.logged_in(timeouts=Timeouts(history=6.0))
    with pytest.raises(FxcmNotReady, match="PriceHistoryCommunicator is not ready"):
        await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)
    assert client.status == "CONNECTED"  # the session is as good as before


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("QuotesManager error: nothing code: QuotesNotFound subcode: 0", FxcmNoData),
        ("QuotesManager error: slow down code: LimitReached subcode: 0", ExchangeBlocked),
        ("QuotesManager error: gone code: QuotesServerConnectionError subcode: 7", None),
        ("something new", None),
    ],
)
async def test_what_history_fails_with_names_the_reaction(
    fxcm: Desk, text: str, error: type[CollectorError] | None
) -> None:
    fxcm.server.change(history_error=text)
    client = await fxcm.logged_in()
    with pytest.raises(error or ExchangeUnavailable, match=text) as raised:
        await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)
    assert error or raised.type is ExchangeUnavailable


async def test_an_unknown_instrument_or_timeframe_is_never_asked_for_again(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    with pytest.raises(BadRequest, match="Instrument is not found"):
        await client.history("DOGE/USD", "m1", NOON_MS, NOON_MS)
    for timeframe in ("m7", "t1", "1m", ""):
        with pytest.raises(BadRequest, match="no such timeframe"):
            await client.history("EUR/USD", timeframe, NOON_MS, NOON_MS)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Login failed. Incorrect user name or password", KeyRefused),
        ("19915;DAS 19915: ZDas Exception ORA-20003: Access denied", KeyRefused),
        ("User or connection doesn't exist.", ExchangeRefused),
        ("HTTP request failed object='/pdas/servlet?rnd=1' errorCode=503", ExchangeUnavailable),
    ],
)
async def test_a_refused_login_names_the_reaction(
    fxcm: Desk, text: str, error: type[CollectorError]
) -> None:
    fxcm.server.change(refuse=text)
    client = fxcm.client()
    with pytest.raises(error) as raised:
        await client.login(fxcm.credentials())
    assert text in str(raised.value)
    assert client.pid is None
    with pytest.raises(SessionLost, match="not logged in"):
        await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)


async def test_a_refused_port_is_the_sdks_ora_499(fxcm: Desk) -> None:
    client = fxcm.client()
    credentials = FxcmLogin("trader", PASSWORD, "http://127.0.0.1:1/Hosts.jsp")
    with pytest.raises(ExchangeUnavailable, match=r"ORA-499: .*LN=trader.*errorCode=7"):
        await client.login(credentials)


async def test_tables_that_do_not_load_fail_the_login(fxcm: Desk) -> None:
    fxcm.server.change(tables="TABLES_LOAD_FAILED")
    with pytest.raises(ExchangeUnavailable, match="Table manager not ready"):
        await fxcm.client().login(fxcm.credentials())
    assert fxcm.server.count("logout") == 1


async def test_ticks_go_on_over_a_new_login(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    await client.subscribe(["EUR/USD"])
    offers = await client.offers()
    assert [offer.instrument for offer in offers] == list(truth.INSTRUMENTS)
    assert offers[2].digits == 2
    ticks = aiter(client.ticks)
    fxcm.server.tick("EUR/USD", 1.1, 1.2)
    assert (await anext(ticks)).bid == 1.1
    first = client.pid
    await client.login(fxcm.credentials())
    assert client.pid != first
    await client.subscribe(["EUR/USD"])
    fxcm.server.tick("USD/JPY", 150.0, 150.1)  # was not asked for
    fxcm.server.tick("EUR/USD", 1.3, 1.4, NOON_MS + 500)
    tick = await anext(ticks)
    assert (tick.number, tick.bid, tick.time_ms) == (1, 1.3, NOON_MS)
    await client.close()
    with pytest.raises(StopAsyncIteration):
        await anext(ticks)


async def test_every_tick_is_delivered_or_counted(fxcm: Desk) -> None:
    count = 20_000
    client = await fxcm.logged_in(sidecar_ticks=500, queue_ticks=50)
    await client.subscribe()
    fxcm.server.burst(count, "EUR/USD", "USD/JPY")
    async for tick in client.ticks:
        if tick.number == count:
            break
    counts = client.ticks.counts
    assert counts.delivered + counts.dropped_here + counts.dropped_in_sidecar == count
    assert counts.dropped_here > 0


async def test_a_price_that_is_missing_is_counted(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    await client.subscribe()
    prices = {"bid": None, "ask": float("nan"), "high": 1.0, "low": 1.0, "volume": 1}
    fxcm.server.say("tick", instrument="EUR/USD", time_ms=NOON_MS, **prices)
    fxcm.server.tick("EUR/USD", 1.1, 1.2)
    assert (await anext(aiter(client.ticks))).number == 2
    assert client.ticks.counts.incomplete == 1


async def test_events_are_reported_in_order(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    fxcm.server.say("status", status="RECONNECTING")
    fxcm.server.say("status", status="CONNECTED", ready_after=0)
    await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)
    await client.logout()
    statuses = [event.status for event in fxcm.events if isinstance(event, SessionStatus)]
    assert statuses[:4] == ["CONNECTING", "CONNECTED", "RECONNECTING", "CONNECTED"]
    assert statuses[4:] == ["DISCONNECTING", "DISCONNECTED"]
    (end,) = fxcm.ends
    assert end.expected
    assert client.status is None


async def test_whoever_stops_waiting_leaves_the_sidecar_usable(fxcm: Desk) -> None:
    fxcm.server.change(hold_history=True)
    client = await fxcm.logged_in()
    pid = client.pid
    left = asyncio.create_task(client.history("EUR/USD", "m1", NOON_MS, NOON_MS))
    await fxcm.server.seen("history")
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    second = asyncio.create_task(client.history("USD/JPY", "m1", NOON_MS, NOON_MS))
    fxcm.server.release_history()
    assert len(await second) == 1
    assert fxcm.server.journal[-1].fields["instrument"] == "USD/JPY"
    assert client.pid == pid


async def test_nothing_secret_is_in_the_list_of_processes(fxcm: Desk) -> None:
    fxcm.environ["COLLECTOR_SECRET_FXCM"] = PASSWORD
    client = await fxcm.logged_in()
    for name in ("cmdline", "environ"):
        shown = Path(f"/proc/{client.pid}/{name}").read_bytes()
        assert PASSWORD.encode() not in shown
        assert b"COLLECTOR" not in shown
    assert PASSWORD not in repr(fxcm.credentials())


async def test_an_sdk_that_does_not_load_is_one_clear_error(fxcm: Desk, tmp_path: Path) -> None:
    """As on a Python that is not 3.7: the package is there, its native part cannot be loaded."""
    package = tmp_path / "site" / "forexconnect"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('undefined symbol: _Py_ZeroStruct')\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={package.parent} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    fxcm.interpreter = Interpreter(python, "3.11")
    with pytest.raises(FxcmMissing, match=r"undefined symbol: _Py_ZeroStruct.*pip install"):
        await fxcm.client().login(fxcm.credentials())


async def test_an_interpreter_that_has_vanished_is_one_clear_error(
    fxcm: Desk, tmp_path: Path
) -> None:
    fxcm.interpreter = Interpreter(tmp_path / "nowhere", "3.7.16")
    with pytest.raises(FxcmMissing, match="cannot be run: No such file"):
        await fxcm.client().login(fxcm.credentials())


async def test_a_sidecar_that_is_no_sidecar_is_noticed(fxcm: Desk, tmp_path: Path) -> None:
    liar = tmp_path / "liar"
    liar.write_text("#!/bin/sh\necho '{\"seq\": 7}'\nexec cat >/dev/null\n")
    liar.chmod(0o755)
    fxcm.interpreter = Interpreter(liar, "3.7.16")
    with pytest.raises(ExchangeUnavailable, match="a line that cannot be read"):
        await fxcm.client().login(fxcm.credentials())
    odd = tmp_path / "odd"
    # Whichever request it is, the answer is the same.
    answer = 'id=$((id+1)); echo "{\\"id\\": $id, \\"result\\": {}}"'
    odd.write_text(f"#!/bin/sh\nwhile read -r line; do {answer}; done\n")
    odd.chmod(0o755)
    fxcm.interpreter = Interpreter(odd, "3.7.16")
    with pytest.raises(ExchangeUnavailable, match="speaks protocol None, not 1"):
        await fxcm.client().login(fxcm.credentials())
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/sh\nexit 3\n")
    mute.chmod(0o755)
    fxcm.interpreter = Interpreter(mute, "3.7.16")
    with pytest.raises(SidecarLost, match="exited with code 3"):
        await fxcm.client().login(fxcm.credentials())
