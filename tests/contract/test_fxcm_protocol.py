"""The sidecar's side of the protocol, line by line, over the SDK's own Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.fxcm.fxcorepy import truth
from tests.support.fxcm.raw_sidecar import RawSidecar, raw_sidecar
from tests.support.fxcm.server import NOON_MS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.fxcm.server import FakeServer

SECRET = "correct horse"


@pytest.fixture
async def sidecar(fxcm_python: Path, tmp_path: Path) -> AsyncIterator[RawSidecar]:
    async with raw_sidecar(fxcm_python, tmp_path / "fxcm") as sidecar:
        yield sidecar


async def log_in(sidecar: RawSidecar, server: FakeServer, **fields: Any) -> None:
    await sidecar.ask("hello", **fields)
    await sidecar.ask("login", **login(server))


def login(server: FakeServer, **fields: Any) -> dict[str, Any]:
    known = {"user": "trader", "password": SECRET, "url": server.url, "connection": "Demo"}
    return {**known, **fields}


async def test_every_operation_is_answered(sidecar: RawSidecar, fxcm_server: FakeServer) -> None:
    hello = await sidecar.ask("hello", tick_limit=100)
    assert hello["protocol"] == 1
    assert hello["sdk"] == "1.6.43"
    assert await sidecar.ask("login", **login(fxcm_server)) is None
    offers = await sidecar.ask("offers")
    assert [offer[1] for offer in offers] == list(truth.INSTRUMENTS)
    assert await sidecar.ask("subscribe", instruments=["EUR/USD"]) is None
    history = {"instrument": "EUR/USD", "timeframe": "m1", "ready_ms": 1000}
    columns = await sidecar.ask("history", from_ms=NOON_MS - 60_000, to_ms=NOON_MS, **history)
    assert columns["Date"] == [NOON_MS - 60_000, NOON_MS]
    assert await sidecar.ask("ping") == {"busy": None}
    assert await sidecar.ask("logout") is None
    assert fxcm_server.count("logout") == 1
    assert await sidecar.ask("exit") is None
    assert await sidecar.ended() == 0


async def test_statuses_are_reported_in_order_and_before_the_answer(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    await log_in(sidecar, fxcm_server)
    assert [event[:-1] for event in sidecar.events] == [
        ["session", "CONNECTING"],
        ["session", "CONNECTED"],
        ["table_status", "manager", "TABLES_LOADING"],
        ["table_status", "manager", "TABLES_LOADED"],
    ]


async def test_a_tick_carries_its_number_its_whole_second_and_when_it_came(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    await log_in(sidecar, fxcm_server)
    await sidecar.ask("subscribe", instruments=["EUR/USD"])
    fxcm_server.tick("XAU/USD", 4209.62, 4210.02)
    fxcm_server.tick("EUR/USD", 1.1, 1.2, NOON_MS + 1_900)
    fxcm_server.tick("EUR/USD", 1.3, 1.4, NOON_MS + 1_950)
    while len(sidecar.ticks) < 2:
        assert await sidecar.line() is not None
    first, second = sidecar.ticks
    assert first[:-1] == [1, "EUR/USD", 1.1, 1.2, 1.2, 1.1, 7, NOON_MS + 1_000]
    assert second[:-1] == [2, "EUR/USD", 1.3, 1.4, 1.4, 1.3, 7, NOON_MS + 1_000]
    assert first[-1] <= second[-1]


async def test_each_subscription_takes_the_place_of_the_one_before(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    await log_in(sidecar, fxcm_server)
    await sidecar.ask("subscribe", instruments=["EUR/USD", "USD/JPY"])
    await sidecar.ask("subscribe", instruments=["USD/JPY"])
    fxcm_server.tick("EUR/USD", 1.1, 1.2)
    fxcm_server.tick("USD/JPY", 150.0, 150.1)
    while not sidecar.ticks:
        assert await sidecar.line() is not None
    assert [tick[:2] for tick in sidecar.ticks] == [[1, "USD/JPY"]]


async def test_a_subscription_after_a_reconnection_hears_the_new_connection(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    await log_in(sidecar, fxcm_server)
    await sidecar.ask("subscribe")
    fxcm_server.say("status", status="RECONNECTING")
    fxcm_server.say("status", status="CONNECTED", ready_after=0)
    await sidecar.event("session", "RECONNECTING")
    await sidecar.ask("subscribe")
    fxcm_server.tick("EUR/USD", 1.1, 1.2)
    while not sidecar.ticks:
        assert await sidecar.line() is not None


async def test_a_crash_writes_no_memory_to_a_disk(sidecar: RawSidecar) -> None:
    await sidecar.ask("ping")
    limits = Path(f"/proc/{sidecar.process.pid}/limits").read_text().splitlines()
    [core] = [line.split() for line in limits if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"]


async def test_the_state_of_the_table_is_reported(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    await log_in(sidecar, fxcm_server)
    await sidecar.ask("subscribe")
    fxcm_server.say("table_status", status="REFRESHED")
    await sidecar.event("table_status", "offers", "REFRESHED")


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe not text",
        b"not json",
        b"[1, 2]",
        b'"hello"',
        b'{"op": "ping", "lease_ms": 1000}',
        b'{"id": "7", "op": "ping", "lease_ms": 1000}',
        b"[" * 100_000,
        b"x" * (1 << 21),
    ],
    ids=["bytes", "text", "list", "string", "no id", "id of text", "deep", "huge"],
)
async def test_a_line_that_is_no_request_is_reported_and_the_next_one_answered(
    sidecar: RawSidecar, line: bytes
) -> None:
    sidecar.send_bytes(line + b"\n")
    event = await sidecar.event("error", "protocol")
    assert len(event[2]) < 100  # never the line itself, which may hold a password
    assert await sidecar.ask("ping") == {"busy": None}


@pytest.mark.parametrize(
    "fields",
    [
        {"op": "ping"},
        {"lease_ms": 1000},
        {"op": 7, "lease_ms": 1000},
        {"op": "ping", "lease_ms": -1},
        {"op": "ping", "lease_ms": "soon"},
        {"op": "ping", "lease_ms": True},
        {"op": "ping", "lease_ms": float("nan")},
    ],
)
async def test_a_request_with_a_number_gets_its_refusal(
    sidecar: RawSidecar, fields: dict[str, Any]
) -> None:
    sidecar.send_bytes(json.dumps({"id": 900, **fields}).encode() + b"\n")
    answer = await sidecar.answer(900)
    assert answer["error"]["kind"] == "protocol"


async def test_a_request_that_cannot_be_carried_out_is_refused_by_name(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    early = await sidecar.refusal("login", **login(fxcm_server))
    assert early["message"] == "say hello first"
    await sidecar.ask("hello")
    out = await sidecar.refusal("subscribe")
    assert out["kind"] == "session_lost"
    unfit = await sidecar.refusal("login", user="trader")
    assert unfit == {
        "kind": "bad_request",
        "type": "RefusedRequest",
        "message": "login needs password, a text",
    }
    assert (await sidecar.refusal("dance"))["kind"] == "bad_request"
    await sidecar.ask("login", **login(fxcm_server))
    again = await sidecar.refusal("login", **login(fxcm_server))
    assert again["message"] == "this process has a session already"
    assert fxcm_server.count("login") == 1


async def test_what_the_server_says_of_a_secret_is_cut_out(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    fxcm_server.change(refuse=f"Incorrect user name or password: {SECRET}")
    await sidecar.ask("hello")
    error = await sidecar.refusal("login", **login(fxcm_server))
    assert error == {
        "kind": "login_refused",
        "type": "LoginFailedError",
        "message": "Incorrect user name or password: ***",
    }


async def test_a_failed_login_may_be_followed_by_a_good_one(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    fxcm_server.change(tables="TABLES_LOAD_FAILED")
    await sidecar.ask("hello")
    error = await sidecar.refusal("login", **login(fxcm_server))
    assert error["message"] == "Table manager not ready"
    assert fxcm_server.count("logout") == 1  # a session without tables is not left behind
    fxcm_server.change(tables="TABLES_LOADED")
    assert await sidecar.ask("login", **login(fxcm_server)) is None


async def test_ping_is_answered_while_the_sdk_is_busy(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    fxcm_server.change(hold_history=True)
    await log_in(sidecar, fxcm_server)
    history = {"instrument": "EUR/USD", "timeframe": "m1", "ready_ms": 1000}
    asked = sidecar.send("history", from_ms=NOON_MS, to_ms=NOON_MS, **history)
    await fxcm_server.seen("history")
    assert await sidecar.ask("ping") == {"busy": "history"}
    fxcm_server.release_history()
    assert (await sidecar.answer(asked))["result"]["Date"] == [NOON_MS]


async def test_ticks_come_through_while_history_is_waited_for(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    fxcm_server.change(hold_history=True)
    await log_in(sidecar, fxcm_server)
    await sidecar.ask("subscribe")
    history = {"instrument": "EUR/USD", "timeframe": "m1", "ready_ms": 1000}
    sidecar.send("history", from_ms=NOON_MS, to_ms=NOON_MS, **history)
    await fxcm_server.seen("history")
    fxcm_server.tick("EUR/USD", 1.1, 1.2)
    while not sidecar.ticks:
        assert await sidecar.line() is not None


async def test_too_many_waiting_requests_are_refused(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    fxcm_server.change(hold_history=True)
    await log_in(sidecar, fxcm_server)
    history = {"instrument": "EUR/USD", "timeframe": "m1", "ready_ms": 1000}
    times = {"from_ms": NOON_MS, "to_ms": NOON_MS}
    sidecar.send("history", **history, **times)
    await fxcm_server.seen("history")
    numbers = [sidecar.send("history", **history, **times) for _ in range(65)]
    assert (await sidecar.answer(numbers[-1]))["error"]["kind"] == "busy"
    fxcm_server.release_history()
    assert "result" in await sidecar.answer(numbers[-2])


async def test_what_the_sdk_prints_does_not_reach_the_protocol(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    await log_in(sidecar, fxcm_server)  # the stand-in prints a line like an answer on import
    await sidecar.ask("subscribe")
    for text in ('{"id": 5, "result": "a lie"}\n', '{"seq": 9}\n', "half a line", "\0\xff\n"):
        fxcm_server.say("print", text=text)
    fxcm_server.tick("EUR/USD", 1.1, 1.2)
    while not sidecar.ticks:
        assert await sidecar.line() is not None
    assert await sidecar.ask("ping") == {"busy": None}
    assert [batch["seq"] for batch in sidecar.batches] == list(range(1, len(sidecar.batches) + 1))


async def test_ticks_nobody_reads_are_dropped_and_counted(
    sidecar: RawSidecar, fxcm_server: FakeServer
) -> None:
    count, limit = 30_000, 100
    await log_in(sidecar, fxcm_server, tick_limit=limit)
    await sidecar.ask("subscribe")
    fxcm_server.burst(count)
    await fxcm_server.seen("burst_done")  # and nothing is read until now
    while not sidecar.ticks or sidecar.ticks[-1][0] < count:
        assert await sidecar.line() is not None
    numbers = [tick[0] for tick in sidecar.ticks]
    assert numbers == sorted(set(numbers))
    assert numbers[-limit:] == list(range(count - limit + 1, count + 1))  # the newest are kept
    dropped = sidecar.batches[-1]["dropped"]
    assert dropped > 0
    assert len(numbers) + dropped == count


async def test_history_is_in_utc_wherever_the_machine_is(
    fxcm_python: Path, tmp_path: Path, fxcm_server: FakeServer
) -> None:
    async with raw_sidecar(fxcm_python, tmp_path / "fxcm", TZ="Asia/Tokyo") as sidecar:
        await log_in(sidecar, fxcm_server)
        history = {"instrument": "EUR/USD", "timeframe": "m1", "ready_ms": 1000}
        begin = NOON_MS - 120_000
        columns = await sidecar.ask("history", from_ms=begin, to_ms=begin + 59_999, **history)
        assert columns["Date"] == [begin]
