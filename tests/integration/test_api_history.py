"""Trade history over REST: events in, rates, volumes and candles out."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from collector.durations import HOUR_MS
from collector.history.inbox import EventInbox
from collector.history.reader import HistoryReader
from collector.history.terms import HistoryTerms
from collector.operations import history_reads
from collector.store.store import Store
from tests.integration.test_api_events import listening, next_event
from tests.integration.test_worker_runtime import CONFIG, working
from tests.support.history_trades import GOLD, OIL, OTHER, T0, added, at, deleted, sale
from tests.support.local_api import serving
from workers.handlers.history_apply import HistoryApply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from collector.history.event import Event
    from collector.mongo.client import Database
    from tests.support.local_api import Answer, Client
    from workers.runtime import Worker

NET = "riemann"
TERMS = HistoryTerms((NET,))
URL = "/api/v1/history"
SENT = f"{URL}/{NET}/events"
PAIR_ASKED = {"network": NET, "base": "1:GOLD", "quote": "1:OIL"}
FIRST, SECOND, THIRD = (
    added("0x1", 0, sale(5)),
    added("0x2", 0.5, sale(7)),
    added("0x3", 2, sale(6)),
)
PRICE = 10**18


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a worker applies an event later than a user would wait."""
    monkeypatch.setattr(history_reads, "PATIENCE_SECONDS", 120)


@pytest.fixture
async def client(database: Database, tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(database, tmp_path, history=TERMS) as client:
        yield client


@pytest.fixture
def worker(database: Database, tmp_path: Path) -> AbstractAsyncContextManager[Worker]:
    handler = HistoryApply(database, Store(tmp_path), TERMS)
    return working(database, {"history_apply": handler}, replace(CONFIG, networks=(NET,)))


def body(*events: Event) -> dict[str, Any]:
    return {"events": [each.document() for each in events]}


async def ask(client: Client, what: str, **changes: Any) -> Answer:
    return await client.get(f"{URL}/{what}", params={**PAIR_ASKED, **changes})


async def test_events_are_answered_with_their_sequence(client: Client) -> None:
    answer = await client.post(SENT, body(FIRST, SECOND))
    assert (answer.status, answer.body) == (202, {"sequence": 2, "accepted": 2, "duplicates": 0})
    again = await client.post(SENT, body(FIRST))
    assert (again.status, again.body) == (202, {"sequence": 1, "accepted": 0, "duplicates": 1})


async def test_what_was_sent_is_read_as_soon_as_its_sequence_is_waited_for(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with worker:
        sent = await client.post(SENT, body(FIRST, SECOND, THIRD))
        after = sent.body["sequence"]
        spot = await ask(client, "market-rate", after=after)
    assert spot.body == {
        "price": str(6 * PRICE),
        "ts": THIRD.ts,
        "applied_through": 3,
        "source": "buckets",
    }
    vwap = await ask(client, "market-rate", mode="vwap", to=at(1))
    assert vwap.body["price"] == str(6 * PRICE)
    assert (vwap.body["sum_base"], vwap.body["sum_quote"], vwap.body["trades"]) == ("20", "120", 2)
    volume = await ask(client, "volume", **{"from": at(0.25)})
    assert (volume.body["sum_base"], volume.body["trades"]) == ("20", 2)


async def test_pairs_are_listed_as_soon_as_they_are_traded(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    nothing = {"items": [], "unreadable": [], "next_cursor": None}
    assert (await client.get(f"{URL}/pairs")).body == nothing
    other = added("0x9", 1, sale(3, pair=OTHER))
    async with worker:
        sent = await client.post(SENT, body(FIRST, other))
        await ask(client, "market-rate", after=sent.body["sequence"])
    items = (await client.get(f"{URL}/pairs")).body["items"]
    assert [(each["base"], each["quote"]) for each in items] == [
        ("1:GOLD", "1:OIL"),
        ("1:GOLD", "1:SALT"),
    ]
    assert {each["network"] for each in items} == {NET}


async def test_candles_come_by_the_page_and_exact(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with worker:
        await client.post(SENT, body(FIRST, SECOND, THIRD))
        first = await ask(client, "market-rate", mode="ohlcv", after=3, limit=1)
    assert first.body["items"] == [
        {
            "ts": T0,
            "open": str(5 * PRICE),
            "high": str(7 * PRICE),
            "low": str(5 * PRICE),
            "close": str(7 * PRICE),
            "sum_base": "20",
            "sum_quote": "120",
            "first_ts": T0,
            "last_ts": at(0.5),
            "trades": 2,
            "filled": False,
        }
    ]
    rest = await ask(client, "market-rate", mode="ohlcv", cursor=first.body["next_cursor"])
    [last] = rest.body["items"]
    assert (last["ts"], last["open"]) == (at(2), str(7 * PRICE))
    assert rest.body["next_cursor"] is None
    filled = await ask(client, "market-rate", mode="ohlcv", fill="true")
    assert [each["filled"] for each in filled.body["items"]] == [False, True, False]
    by_bucket = await ask(client, "volume", bucket=120)
    assert [(each["ts"], each["trades"]) for each in by_bucket.body["items"]] == [
        (T0, 2),
        (at(2), 1),
    ]


async def test_candles_as_floats_come_in_the_columns_of_every_other_candle(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with worker:
        await client.post(SENT, body(FIRST, SECOND, THIRD))
        answer = await ask(client, "candles", after=3)
    columns, rows = answer.body["columns"], answer.body["rows"]
    assert columns[:6] == ["ts", "o", "h", "l", "c", "v"]
    assert [row[:5] for row in rows] == [[T0, 5.0, 7.0, 5.0, 7.0], [at(2), 7.0, 7.0, 6.0, 6.0]]
    asked = {**PAIR_ASKED, "format": "parquet", "fill": "true"}
    async with client.session.get(f"{URL}/candles", params=asked) as response:
        table = pq.read_table(io.BytesIO(await response.read()))
    assert table["gap_reason"].to_pylist() == [None, "no_trade", None]


async def test_filling_candles_over_centuries_is_refused(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with worker:
        await client.post(SENT, body(FIRST))
        answer = await ask(client, "candles", after=1, fill="true", to="2286-01-01")
    assert (answer.status, answer.code) == (422, "history_too_long")
    assert answer.body["errors"][0]["field"] == "fill"
    assert "at most 1,000,000 are filled" in answer.body["detail"]
    page = await ask(client, "market-rate", mode="ohlcv", fill="true", to="2286-01-01", limit=3)
    assert len(page.body["items"]) == 3


async def test_a_deletion_is_read_as_if_the_trade_had_never_been(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with worker:
        sent = await client.post(SENT, body(FIRST, SECOND, deleted(SECOND)))
        answer = await ask(client, "market-rate", mode="ohlcv", after=sent.body["sequence"])
    [candle] = answer.body["items"]
    assert (candle["close"], candle["trades"]) == (str(5 * PRICE), 1)


async def test_an_answer_that_has_to_include_too_much_is_not_given(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_reads, "PATIENCE_SECONDS", 0.05)
    await client.post(SENT, body(FIRST))
    answer = await ask(client, "market-rate", after=1)
    assert (answer.status, answer.code) == (503, "history_not_applied")
    assert "Retry-After" in answer.headers
    ahead = await ask(client, "market-rate", after=2)
    assert (ahead.status, ahead.code) == (422, "unknown_sequence"), "nobody was given it"


def changed(**fields: Any) -> dict[str, Any]:
    [event] = body(FIRST)["events"]
    return {"events": [{**event, **fields}]}


def with_input(**fields: Any) -> dict[str, Any]:
    [given] = body(FIRST)["events"][0]["inputs"]
    return changed(inputs=[{**given, **fields}])


BAD: dict[str, Any] = {
    "no events": {"events": []},
    "no such op": changed(op="x"),
    "a hash with a space": changed(tx_hash="0x 1"),
    "a time before 1970": changed(ts=-1),
    "a time in microseconds": changed(ts=1_735_689_600_000_000),
    "a time in nanoseconds": changed(ts=1_735_689_600_000_000_000),
    "a time of the next century": changed(ts=4_102_444_800_000),
    "no inputs": changed(inputs=[]),
    "a negative price": with_input(price="-5"),
    "a price of zero": with_input(price="0"),
    "a price as a float": with_input(price=1.5),
    "2^256": with_input(value=str(1 << 256)),
    "more digits than any": with_input(value="9" * 90),
    "more left than there was": with_input(residual="11"),
    "a product past 2^256": with_input(value=str((1 << 256) - 1), price=str(2 * PRICE)),
    "the other side": with_input(side="BID"),
    "for itself": with_input(buy={"net_id": "1", "token": "GOLD"}),
    "a token with a slash": with_input(buy={"net_id": "1", "token": "A/B"}),
    "something unknown": changed(surprise=1),
    "a residual of the second": changed(
        inputs=[*body(FIRST)["events"][0]["inputs"], sale(5, residual=1).document()]
    ),
}


@pytest.mark.parametrize("sent", BAD.values(), ids=BAD.keys())
async def test_a_wrong_notification_is_refused_and_changes_nothing(
    client: Client, database: Database, sent: dict[str, Any]
) -> None:
    sent = {"events": [*body(SECOND)["events"], *sent["events"]]} if sent["events"] else sent
    answer = await client.post(SENT, sent)
    assert answer.status == 422, answer.body
    assert answer.body["errors"][0]["field"].startswith("events")
    assert (await EventInbox(database, NET).state()).sequence == 0, (
        "the good one is not taken either"
    )
    assert await database.jobs.count_documents({}) == 0


@pytest.mark.parametrize("network", ["riemannn", "Riemann", "..", "a%2Fb", "$where"])
async def test_an_unknown_network_is_refused_by_name(client: Client, network: str) -> None:
    answer = await client.post(f"{URL}/{network}/events", body(FIRST))
    assert answer.status in (404, 405, 422)
    read = await ask(client, "volume", network=network)
    assert (read.status, read.body["errors"][0]["field"]) == (422, "network")
    if network == "riemannn":
        assert answer.code == "unknown_network"
        assert answer.body["errors"][0]["near"] == [NET]


async def test_no_payout_and_deletions_of_nothing_are_accepted_and_change_nothing(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with worker:
        events = (
            added("0x7", 0, sale(5, payout=0)),
            deleted(added("0x8", 0, sale(5))),
            added("0x9", 0, sale(5, value=4, residual=4)),
        )
        sent = await client.post(SENT, body(*events))
        answer = await ask(client, "volume", after=sent.body["sequence"])
    assert sent.body == {"sequence": 3, "accepted": 3, "duplicates": 0}
    assert (answer.body["trades"], answer.body["applied_through"]) == (0, 3)


async def test_late_events_are_put_where_they_belong(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with worker:
        await client.post(SENT, body(THIRD))
        sent = await client.post(SENT, body(SECOND, FIRST))
        answer = await ask(client, "market-rate", mode="ohlcv", after=sent.body["sequence"])
    assert [each["open"] for each in answer.body["items"]] == [str(5 * PRICE), str(7 * PRICE)]


async def test_a_reversed_pair_is_refused_with_the_canonical_one(client: Client) -> None:
    answer = await ask(client, "market-rate", base="1:OIL", quote="1:GOLD")
    assert (answer.status, answer.code) == (422, "reversed_pair")
    assert "the canonical pair is 1:GOLD/1:OIL" in answer.body["detail"]


@pytest.mark.parametrize(
    ("what", "changes", "field"),
    [
        ("volume", {"base": "GOLD"}, "base"),
        ("volume", {"quote": "1:GOLD"}, "quote"),
        ("market-rate", {"mode": "median"}, "mode"),
        ("market-rate", {"bucket": "0"}, "bucket"),
        ("market-rate", {"from": at(2), "to": at(1)}, "to"),
        ("volume", {"after": "-1"}, "after"),
        ("volume", {"cursor": "x"}, "cursor"),
        ("candles", {"format": "xml"}, "format"),
        ("volume", {"surprise": "1"}, "surprise"),
    ],
)
async def test_a_question_that_makes_no_sense_names_the_field(
    client: Client, what: str, changes: dict[str, Any], field: str
) -> None:
    answer = await ask(client, what, **changes)
    assert (answer.status, answer.body["errors"][0]["field"]) == (422, field)


async def test_a_bucket_is_a_multiple_of_the_stored_ones(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with worker:
        await client.post(SENT, body(FIRST))
        answer = await ask(client, "market-rate", mode="ohlcv", bucket=90, after=1)
    assert (answer.status, answer.code) == (422, "history_refused")
    assert "a multiple of 60 seconds" in answer.body["detail"]
    assert answer.body["errors"][0]["field"] == "bucket"


async def test_without_the_cache_the_ledger_answers_and_the_answer_says_so(
    client: Client,
    database: Database,
    worker: AbstractAsyncContextManager[Worker],
    tmp_path: Path,
) -> None:
    async with worker:
        await client.post(SENT, body(FIRST, SECOND, THIRD))
        cached = await ask(client, "market-rate", mode="ohlcv", after=3)
    async with serving(database, tmp_path, history=replace(TERMS, cache=False)) as other:
        plain = await ask(other, "market-rate", mode="ohlcv")
    assert (cached.body["source"], plain.body["source"]) == ("buckets", "ledger")
    assert plain.body["items"] == cached.body["items"]


async def test_the_job_of_a_network_is_shown_without_an_exchange(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with worker:
        await client.post(SENT, body(FIRST))
        await ask(client, "volume", after=1)
    [job] = (await client.get("/api/v1/jobs", params={"network": NET})).body["items"]
    assert (job["network"], job["exchange_id"], job["type"]) == (NET, None, "history_apply")
    assert job["cursor"] == {"applied_through": 1, "done": False}
    refused = await client.post("/api/v1/jobs", {"exchange_id": "x", "type": "history_apply"})
    assert refused.status == 422, "the program makes them itself"
    for verb, status in (("pause", "paused"), ("resume", "active"), ("run", "active")):
        answer = await client.post(f"/api/v1/jobs/{job['id']}/{verb}")
        assert (answer.status, answer.body["status"]) == (200, status), "without a connector"


async def test_a_time_is_at_most_a_day_ahead_of_the_servers_clock(
    client: Client, database: Database
) -> None:
    now = await database.now_ms()
    assert (await client.post(SENT, changed(ts=now + 23 * HOUR_MS))).status == 202
    late = await client.post(SENT, changed(ts=now + 25 * HOUR_MS, tx_hash="0x2"))
    assert late.status == 422
    assert "more than a day ahead of the server's clock" in late.body["detail"]


async def test_a_body_has_room_for_all_the_events_and_inputs_that_are_promised(
    client: Client, database: Database
) -> None:
    longest = str((1 << 256) - 1)
    one = replace(sale(5), sell=replace(GOLD, token="G" * 128), payout=(1 << 256) - 1)
    given = {**one.document(), "price": "1", "value": longest}
    inputs = [given] * 64
    events = [{"op": "a", "tx_hash": f"{n:0200}", "ts": T0, "inputs": inputs} for n in range(500)]
    body = json.dumps({"events": events}).encode()
    assert len(body) > 12 * 1024 * 1024
    headers = {"Content-Type": "application/json"}
    for accepted, duplicates in ((500, 0), (0, 500)):
        answer = await client.post(SENT, data=io.BytesIO(body), headers=headers)
        expected = {"sequence": 500, "accepted": accepted, "duplicates": duplicates}
        assert (answer.status, answer.body) == (202, expected)


@pytest.mark.parametrize("path", [SENT, "/api/v1/jobs"])
async def test_a_body_that_is_too_large_gets_its_answer_after_it_was_sent(
    client: Client, path: str
) -> None:
    """Also where a client sends everything before it reads, and wants the connection closed."""
    size = 40 * 1024 * 1024
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    url = client.session._base_url
    assert url is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        writer.write(head.encode())
        for _ in range(size // 65_536):
            writer.write(b" " * 65_536)
            await writer.drain()
        answer = await reader.read()
    finally:
        writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"body_too_large" in answer


async def test_listeners_hear_how_far_a_network_is(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    async with client.session.get("/api/v1/events") as response:
        await listening(response)
        async with worker:
            await client.post(SENT, body(FIRST, SECOND))
            heard: list[Any] = []
            while not heard or heard[-1]["applied_through"] < 2:
                name, data = await next_event(response)
                heard += [data] if name == "history" else []
    assert heard[-1] == {"network": NET, "sequence": 2, "applied_through": 2}


async def test_metrics_say_what_is_applied_and_what_waits(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    await client.post(SENT, body(FIRST, SECOND))
    before = (await client.get("/metrics")).body
    assert 'collector_history_waiting{network="riemann"} 2.0' in before
    async with worker:
        await ask(client, "volume", after=2)
    after = (await client.get("/metrics")).body
    assert 'collector_history_applied_through{network="riemann"} 2.0' in after
    assert 'collector_history_waiting{network="riemann"} 0.0' in after


async def test_a_reader_in_another_process_says_the_same(
    client: Client, worker: AbstractAsyncContextManager[Worker], tmp_path: Path
) -> None:
    async with worker:
        await client.post(SENT, body(FIRST, SECOND, THIRD))
        answer = await ask(client, "market-rate", mode="ohlcv", after=3)
    own = HistoryReader(NET, GOLD, OIL, tmp_path).market_rate("ohlcv")
    assert own["items"] == answer.body["items"]


async def test_moments_long_ago_and_far_ahead_are_taken_as_they_are(
    client: Client, worker: AbstractAsyncContextManager[Worker]
) -> None:
    """In milliseconds the first has ten digits, as seconds of today have, and the last has 15."""
    old = replace(FIRST, ts=1_209_600_000 + 1)
    async with worker:
        await client.post(SENT, body(old, SECOND))
        asked = {"from": "1970-01-15", "to": "5533-09-04"}
        assert (await ask(client, "volume", after=2, **asked)).body["trades"] == 2
        assert len((await ask(client, "candles", **asked)).body["rows"]) == 2
        late = await ask(client, "market-rate", mode="vwap", **{"from": "1970-01-16"})
    assert late.body["trades"] == 1
