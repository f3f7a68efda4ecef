"""Each fault alone, on an exchange without a wire."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.durations import MINUTE_MS
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
from collector.simulated.faults.book import FaultBook
from collector.simulated.faults.catalogue import KINDS, fault_json, parse_faults
from collector.simulated.faults.history import Missing, NoTrade, Revision
from collector.simulated.faults.rows import (
    BadOhlc,
    Disorder,
    Dropped,
    Duplicates,
    Future,
    Unaligned,
    WrongTypes,
)
from collector.simulated.listing import WELL_KNOWN
from collector.simulated.request import PendingAnswer, PublicRequest
from collector.simulated.venue import SimulatedVenue

if TYPE_CHECKING:
    from collector.simulated.faults.record import Fault

NOW = 1_700_000_059_999
RUNNING = 1_700_000_040_000
START = RUNNING - 500 * MINUTE_MS


class Desk:
    """Asks a venue one question after another."""

    def __init__(self, *faults: Fault, seed: int = 7) -> None:
        self.clock = ManualClock()
        self.faults = FaultBook(seed, self.clock.monotonic)
        self.faults.add(*faults)
        self.venue = SimulatedVenue(WELL_KNOWN, seed, self.faults)
        self.asked = 0

    async def ask(self, endpoint: str = "klines", **query: Any) -> PendingAnswer:
        if endpoint == "klines":
            query = {"symbol": "BTCUSDT", "interval": "1m", "startTime": START, "limit": 20} | query
        self.asked += 1
        texts = {name: str(value) for name, value in query.items()}
        outcome, _ = await self.venue.answer(PublicRequest(self.asked, endpoint, NOW, texts))
        return outcome

    async def rows(self, **query: Any) -> list[list[Any]]:
        rows: list[list[Any]] = json.loads((await self.ask(**query)).body)
        return rows


async def clean_rows(**query: Any) -> list[list[Any]]:
    return await Desk().rows(**query)


# --- How often and whom -------------------------------------------------------------------------


async def test_a_count_strikes_the_next_requests_only() -> None:
    desk = Desk(ServerError(count=2))
    assert [(await desk.ask()).status for _ in range(4)] == [503, 503, 200, 200]
    assert desk.faults.listing()[0]["struck"] == 2


async def test_seconds_end_a_fault() -> None:
    desk = Desk(TooManyRequests(seconds=30))
    assert (await desk.ask()).status == 429
    desk.clock.advance(29.9)
    assert (await desk.ask()).status == 429
    desk.clock.advance(0.1)
    assert (await desk.ask()).status == 200


async def test_a_probability_is_fixed_by_seed_and_request_number() -> None:
    runs = []
    for seed in (7, 7, 8):
        desk = Desk(ServerError(probability=0.3), seed=seed)
        runs.append([(await desk.ask("ping")).status for _ in range(200)])
    assert runs[0] == runs[1] != runs[2]
    assert 30 < runs[0].count(503) < 90


async def test_a_fault_can_concern_one_market_or_one_endpoint() -> None:
    desk = Desk(ServerError(symbol="ETH/USDT", status=500), ServerError(endpoint="time"))
    assert (await desk.ask()).status == 200
    assert (await desk.ask(symbol="ETHUSDT")).status == 500
    assert (await desk.ask("time")).status == 503
    assert (await desk.ask("ping")).status == 200


async def test_faults_are_switched_off_by_number_or_all_at_once() -> None:
    desk = Desk()
    first, second = desk.faults.add(ServerError(status=500), ServerError(status=502))
    assert (await desk.ask()).status == 502
    desk.faults.remove(second)
    assert (await desk.ask()).status == 500
    desk.faults.replace([ServerError(status=504)])
    assert (await desk.ask()).status == 504
    assert desk.faults.listing()[0]["id"] not in (first, second)
    desk.faults.clear()
    assert (await desk.ask()).status == 200


# --- Answers ------------------------------------------------------------------------------------


async def test_latency_is_fixed_plus_jitter_and_adds_up() -> None:
    desk = Desk(Latency(ms=20, jitter_ms=10), Latency(ms=5))
    delays = [(await desk.ask("ping")).delay_ms for _ in range(50)]
    assert all(25 <= delay < 35 for delay in delays)
    assert len(set(delays)) > 40


async def test_refusals_speak_as_binance_does() -> None:
    too_many = await Desk(TooManyRequests(retry_after_s=3)).ask()
    assert (too_many.status, too_many.headers) == (429, {"Retry-After": "3"})
    assert json.loads(too_many.body)["code"] == -1003
    assert (await Desk(TooManyRequests(retry_after_s=None)).ask()).headers == {}
    ban = await Desk(Ban(retry_after_s=180)).ask()
    assert (ban.status, ban.headers, ban.ban_seconds) == (418, {"Retry-After": "180"}, 180)
    assert f"banned until {NOW + 180_000}" in json.loads(ban.body)["msg"]


@pytest.mark.parametrize(
    ("fault", "ending"), [(Hang(), "hang"), (Reset(), "reset"), (Truncated(), "cut")]
)
async def test_some_answers_end_badly(fault: Fault, ending: str) -> None:
    assert (await Desk(fault).ask()).ending == ending


async def test_broken_bodies_come_with_status_200() -> None:
    malformed = await Desk(Malformed()).ask()
    with pytest.raises(json.JSONDecodeError):
        json.loads(malformed.body)
    html = await Desk(Html()).ask()
    assert html.body.startswith(b"<!DOCTYPE html>")
    assert html.content_type == "text/html"
    assert malformed.status == html.status == 200


@pytest.mark.parametrize(("fault", "status"), [(Gateway(), 404), (Gateway(status=502), 502)])
async def test_a_gateway_answers_without_a_word_of_the_exchange(
    fault: Gateway, status: int
) -> None:
    page = await Desk(fault).ask()
    assert (page.status, page.content_type, page.foreign) == (status, "text/html", True)
    assert page.body.startswith(b"<html>")
    assert (await Desk(replace(fault, body="empty")).ask()).body == b""


async def test_a_bad_answer_is_one_of_three_by_the_die() -> None:
    desk = Desk(BadAnswer(probability=0.5))
    answers = [await desk.ask("ping") for _ in range(400)]
    kinds = Counter((a.status, a.ending, a.content_type == "text/html") for a in answers)
    good = (200, "whole", False)
    assert 150 < kinds.pop(good) < 250
    assert kinds.keys() == {(502, "whole", True), (200, "reset", False), (200, "whole", True)}
    assert min(kinds.values()) > 40


async def test_a_huge_body_is_still_the_right_answer() -> None:
    huge = await Desk(Huge(size=1_000_000)).ask()
    assert len(huge.body) == 1_000_000
    assert json.loads(huge.body) == await clean_rows()


async def test_a_busy_exchange_is_empty_once_for_each_question() -> None:
    desk = Desk(Empty())
    assert await desk.rows() == []
    assert await desk.rows(startTime=START + MINUTE_MS) == []
    assert await desk.rows() == await clean_rows()
    assert (await desk.ask("ping")).body == b"{}"
    assert await Desk(Empty(once=False), Empty()).rows() == []


async def test_only_the_clock_drifts() -> None:
    desk = Desk(ClockDrift(ms=-1500))
    assert json.loads((await desk.ask("time")).body) == {"serverTime": NOW - 1500}
    assert await desk.rows() == await clean_rows()


# --- Rows ---------------------------------------------------------------------------------------


async def test_dropped_rows_are_there_when_asked_again() -> None:
    desk, clean = Desk(Dropped(ratio=0.3)), await clean_rows()
    first = await desk.rows()
    assert 5 < len(first) < 20
    assert [row for row in clean if row in first] == first
    assert await desk.rows() == clean


async def test_duplicated_rows_come_twice_in_place() -> None:
    rows, clean = await Desk(Duplicates(ratio=0.3)).rows(), await clean_rows()
    assert len(rows) > len(clean)
    assert [row for place, row in enumerate(rows) if row not in rows[:place]] == clean


async def test_disorder_keeps_every_row() -> None:
    rows, clean = await Desk(Disorder(ratio=0.5)).rows(), await clean_rows()
    assert rows != clean
    assert sorted(rows) == clean


async def test_bad_rows_break_the_rules_they_are_named_after() -> None:
    clean = await clean_rows()
    bad = await Desk(BadOhlc(ratio=0.3)).rows()
    broken = [row for row in bad if float(row[2]) < float(row[3])]
    assert 0 < len(broken) < len(clean)
    moved = await Desk(Unaligned(shift_ms=7)).rows()
    assert [row[0] for row in moved] == [row[0] + 7 for row in clean]


async def test_wrong_types_are_of_every_kind() -> None:
    rows, clean = await Desk(WrongTypes(nan=True)).rows(), await clean_rows()
    wrong = [
        value
        for row, right in zip(rows, clean, strict=True)
        for value, other in zip(row, right, strict=True)
        if value != other
    ]
    assert len(wrong) == len(clean)
    assert {type(value) for value in wrong} == {type(None), float, str, list, dict, bool}
    assert any(isinstance(value, float) and math.isnan(value) for value in wrong)
    assert b"NaN," not in (await Desk(WrongTypes()).ask()).body.replace(b'"NaN"', b"")


async def test_future_bars_open_after_the_running_one() -> None:
    rows = await Desk(Future(bars=2)).rows()
    assert rows[:-2] == await clean_rows()
    assert [row[0] for row in rows[-2:]] == [RUNNING + MINUTE_MS, RUNNING + 2 * MINUTE_MS]
    assert rows[-1][6] == rows[-1][0] + MINUTE_MS - 1


async def test_a_row_fault_can_strike_each_row_once_or_one_page_only() -> None:
    clean = await clean_rows()
    once = Desk(BadOhlc(once=True))
    assert await once.rows() != clean
    assert await once.rows() == clean
    span = (START, START + 3 * MINUTE_MS)
    rows = await Desk(BadOhlc(count=1, spans=(span,))).rows()
    assert rows[3:] == clean[3:]
    assert all(bad != good for bad, good in zip(rows[:3], clean[:3], strict=True))


async def test_an_empty_page_stays_empty() -> None:
    for fault in (Dropped(), Duplicates(), Disorder(), WrongTypes(), Future()):
        assert await Desk(fault).rows(startTime=NOW + 1) == []


# --- History ------------------------------------------------------------------------------------


async def test_no_trade_minutes_are_in_no_answer_and_not_in_the_truth() -> None:
    desk = Desk(NoTrade(ratio=0.2))
    shown = [row[0] for row in await desk.rows(limit=100)]
    truth = desk.venue.truth.bars("BTC/USDT", "1m", START, shown[-1] + 1).open_ms.tolist()
    assert shown == truth
    assert shown[-1] > START + 105 * MINUTE_MS


async def test_missing_minutes_are_in_the_truth() -> None:
    span = (START, START + 2 * MINUTE_MS)
    desk = Desk(Missing(spans=(span,)), Revision(ratio=0.5))
    assert [row[0] for row in await desk.rows(limit=1)] == [span[1]]
    assert len(desk.venue.truth.bars("BTC/USDT", "1m", *span)) == 2


async def test_history_faults_can_be_switched_off() -> None:
    desk = Desk(NoTrade())
    assert await desk.rows() == []
    desk.faults.clear()
    assert await desk.rows() == await clean_rows()


# --- As JSON ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_fault_survives_json(kind: str) -> None:
    (fault,) = parse_faults({"kind": kind, "symbol": "BTC/USDT"})
    assert isinstance(fault, KINDS[kind])
    assert parse_faults([json.loads(json.dumps(fault_json(fault)))]) == [fault]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"kind": "gremlins"}, "does not match any of the expected tags"),
        ({"kind": "latency", "probability": 2}, "less than or equal to 1"),
        ({"kind": "latency", "colour": "red"}, "colour"),
        ([{"kind": "ban", "count": 0}], "greater than or equal to 1"),
        ("latency", "dictionary"),
        ({}, "kind"),
    ],
)
def test_nonsense_is_refused_with_a_reason(content: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_faults(content)
