"""Costly answers: made once for all, kept for a moment, few at once, ended when nobody waits."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from api.problems import Refusal
from api.report_answers import AllHaveLeft, ReportAnswers, Stop
from collector.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def stays() -> None:
    await asyncio.Event().wait()


class Report:
    """A computation that waits to be let go on."""

    def __init__(self) -> None:
        self.made = 0
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.stop: Stop | None = None

    async def __call__(self, stop: Stop) -> dict[str, Any]:
        self.stop = stop
        self.begun.set()
        await self.go_on.wait()
        self.made += 1
        return {"number": self.made}


def at_once(number: int) -> Callable[[Stop], Awaitable[dict[str, Any]]]:
    async def make(_: Stop) -> dict[str, Any]:
        return {"number": number}

    return make


async def test_many_who_ask_at_once_get_one_computation() -> None:
    answers, report = ReportAnswers(), Report()
    asking = [asyncio.create_task(answers.get("a", report, stays)) for _ in range(20)]
    await report.begun.wait()
    report.go_on.set()
    found = await asyncio.gather(*asking)
    assert [each.document for each in found] == [{"number": 1}] * 20


async def test_an_answer_is_kept_for_a_moment_and_says_how_old_it_is() -> None:
    clock = ManualClock()
    answers = ReportAnswers(keep_seconds=15, clock=clock)
    await answers.get("a", at_once(1), stays)
    clock.advance(4)
    kept = await answers.get("a", at_once(2), stays)
    assert (kept.document, kept.age_seconds, kept.fresh_seconds) == ({"number": 1}, 4, 11)
    anew = await answers.get("a", at_once(3), stays, anew=True)
    assert (anew.document, anew.age_seconds) == ({"number": 3}, 0)
    assert (await answers.get("b", at_once(4), stays)).document == {"number": 4}
    clock.advance(15)
    assert (await answers.get("a", at_once(5), stays)).document == {"number": 5}


async def test_one_too_many_is_put_off() -> None:
    answers, report = ReportAnswers(most_at_once=2), Report()
    asking = [asyncio.create_task(answers.get(key, report, stays)) for key in ("a", "b")]
    await asyncio.sleep(0)
    with pytest.raises(Refusal) as refused:
        await answers.get("c", report, stays)
    assert (refused.value.status_code, refused.value.code) == (503, "reports_busy")
    assert refused.value.headers == {"Retry-After": "5"}
    report.go_on.set()
    await asyncio.gather(*asking)
    assert (await answers.get("c", at_once(7), stays)).document == {"number": 7}


async def test_it_ends_when_the_last_who_waited_has_left() -> None:
    answers, report = ReportAnswers(), Report()
    left = [asyncio.Event(), asyncio.Event()]

    async def gone(at: int) -> None:
        await left[at].wait()

    asking = [asyncio.create_task(answers.get("a", report, partial(gone, at))) for at in (0, 1)]
    await report.begun.wait()
    assert report.stop is not None
    left[0].set()
    with pytest.raises(Refusal) as refused:
        await asking[0]
    assert refused.value.code == "client_left"
    report.stop.check()
    left[1].set()
    await asyncio.wait(asking)
    with pytest.raises(AllHaveLeft):
        report.stop.check()
    # Who comes then gets a computation of its own.
    assert (await answers.get("a", at_once(2), stays)).document == {"number": 2}


async def test_a_thread_that_reads_files_notices_that_it_is_not_wanted() -> None:
    answers = ReportAnswers()
    reading, ended = threading.Event(), threading.Event()
    left = asyncio.Event()

    def read(stop: Stop) -> None:
        reading.set()
        try:
            while True:
                stop.check(1)
        finally:
            ended.set()

    async def make(stop: Stop) -> dict[str, Any]:
        await asyncio.to_thread(read, stop)
        return {}

    async def gone() -> None:
        await left.wait()

    asking = asyncio.create_task(answers.get("a", make, gone))
    assert await asyncio.to_thread(reading.wait, 10)
    left.set()
    await asyncio.wait({asking})
    assert await asyncio.to_thread(ended.wait, 10)


async def test_a_failure_is_everyones_and_is_not_kept() -> None:
    answers = ReportAnswers()

    async def fail(_: Stop) -> dict[str, Any]:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await answers.get("a", fail, stays)
    assert (await answers.get("a", at_once(1), stays)).document == {"number": 1}
