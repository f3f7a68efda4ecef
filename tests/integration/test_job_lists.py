"""Lists of jobs: right for every filter, and by index alone, however many jobs there are."""

from __future__ import annotations

import random
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import pytest
from bson import ObjectId

from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from tests.support.local_api import fresh_database
from tests.support.mongo_profile import profiling

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.mongo.client import Database, Document

FIELDS = ("exchange_id", "type", "symbol", "timeframe", "status", "state")
COMMON = {
    "exchange_id": "big",
    "type": "ohlcv_incremental",
    "symbol": "C7/USDT",
    "timeframe": "1m",
    "status": "active",
    "state": "idle",
}
RARE = {
    "exchange_id": "small",
    "type": "ohlcv_backfill",
    "symbol": "R7/USDT",
    "timeframe": "1d",
    "status": "paused",
    "state": "failed",
}
MANY, PAGE = 3_000, 20
A_KEY_FOR_EACH_PIECE = 100
"""What a page may cost beyond what it holds; the collection has more than forty times as many."""


@pytest.fixture(scope="module")
async def jobs(mongo_uri: str) -> AsyncIterator[tuple[Database, list[Document]]]:
    """A crowd that is all alike, as many that were deleted, and behind them a few of every kind."""
    async with fresh_database(mongo_uri) as database:
        made = (await JobQueue(database).add(JobSpec("big", "count")))[0].document
        await database.jobs.delete_many({})
        crowd = [
            {**COMMON, "symbol": f"C{number}/USDT", "status": status}
            for number in range(MANY)
            for status in ("active", "deleted")
        ]
        kinds = product(
            ("big", "small"),
            ("ohlcv_incremental", "ohlcv_backfill", "gap_scan"),
            ("1m", "1d", None),
            [status.value for status in Status],
            [state.value for state in State],
        )
        few = [
            dict(zip(("exchange_id", "type", "timeframe", "status", "state"), kind, strict=True))
            for kind in kinds
        ]
        random.Random(1).shuffle(few)
        few = [{**each, "symbol": f"R{number % 24}/USDT"} for number, each in enumerate(few)]
        documents = [
            {**made, **each, "_id": ObjectId(f"{number:024x}"), "unique_key": str(number)}
            for number, each in enumerate(crowd + few)
        ]
        await database.jobs.insert_many(documents)
        yield database, documents


def wanted(documents: list[Document], filters: Mapping[str, Any]) -> list[ObjectId]:
    """What a list with these filters holds, by looking at every job."""
    live = {"active", "paused"}
    return [
        each["_id"]
        for each in documents
        if all(each[name] == value for name, value in filters.items())
        and ("status" in filters or each["status"] in live)
    ]


def questions() -> list[dict[str, str]]:
    """Every combination of filters, with values that many, few or no jobs have."""
    rng = random.Random(2)
    asked = []
    for count in range(len(FIELDS) + 1):
        for names in combinations(FIELDS, count):
            choices: list[Mapping[str, str]] = [COMMON, RARE, {**RARE, "status": "deleted"}]
            choices += [{name: rng.choice((COMMON, RARE))[name] for name in FIELDS}]
            asked += [{name: values[name] for name in names} for values in choices]
    return list({tuple(sorted(each.items())): each for each in asked}.values())


@pytest.mark.parametrize("newest_first", [False, True])
async def test_every_list_is_right_and_costs_what_its_page_holds(
    jobs: tuple[Database, list[Document]], newest_first: bool
) -> None:
    database, documents = jobs
    queue = JobQueue(database)
    async with profiling(database) as profile:
        for filters in questions():
            expected = wanted(documents, filters)
            expected = expected[::-1] if newest_first else expected
            middle = expected[len(expected) // 2] if expected else None
            for after in (None, middle):
                rest = expected if after is None else expected[expected.index(after) + 1 :]
                page = await queue.find(filters, after=after, limit=PAGE, newest_first=newest_first)
                assert [job.id for job in page] == rest[:PAGE], filters
                assert_costs_its_page(filters, await profile.new())


def assert_costs_its_page(filters: Mapping[str, Any], statements: list[Document]) -> None:
    assert statements, "the profiler saw nothing"
    for statement in statements:
        assert "COLLSCAN" not in statement["planSummary"], (filters, statement)
        assert not statement.get("hasSortStage"), (filters, statement["planSummary"])
    examined = sum(statement["keysExamined"] for statement in statements)
    assert examined <= PAGE + A_KEY_FOR_EACH_PIECE, (filters, examined)
    read = sum(statement["docsExamined"] for statement in statements)
    assert read <= 2 * PAGE, (filters, read)


SEARCHES = ("r7/usdt", "R7", "c12usdt", "c 99 usdt", "usdt", "nosuch", "C7/USDT", "r1", "/", ".*")


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("text", SEARCHES)
async def test_a_search_finds_symbols_with_these_letters(
    jobs: tuple[Database, list[Document]], text: str, newest_first: bool
) -> None:
    database, documents = jobs
    queue, letters = JobQueue(database), text.replace("/", "").upper().split()
    filters: tuple[dict[str, str], ...] = ({}, {"state": "failed"}, {"exchange_id": "small"})
    for others in filters:
        fitting = [
            each
            for each in documents
            if all(word in each["symbol"].replace("/", "") for word in letters)
        ]
        expected = wanted(fitting, others)[:: -1 if newest_first else 1]
        middle = expected[len(expected) // 2] if expected else None
        for after in (None, middle):
            rest = expected if after is None else expected[expected.index(after) + 1 :]
            found = await queue.find(
                {**others, "search": text}, after=after, limit=PAGE, newest_first=newest_first
            )
            assert [job.id for job in found] == rest[:PAGE]


async def test_a_search_reads_few_jobs_whatever_it_finds(
    jobs: tuple[Database, list[Document]],
) -> None:
    database, _ = jobs
    async with profiling(database) as profile:
        for text in ("c99/", "usdt"):
            await JobQueue(database).find({"search": text}, limit=PAGE)
            for statement in await profile.new():
                assert statement["docsExamined"] <= 10 * PAGE, statement


async def test_jobs_are_found_by_their_ids(jobs: tuple[Database, list[Document]]) -> None:
    database, documents = jobs
    live = [str(each["_id"]) for each in documents if each["status"] == "active"]
    asked = [live[5], live[2], live[9], "f" * 24]
    found = await JobQueue(database).find({"id": asked})
    assert [str(job.id) for job in found] == sorted(asked[:3])
    rest = await JobQueue(database).find({"id": asked}, after=found[0].id, limit=1)
    assert rest[0].id == found[1].id
    gone = next(str(each["_id"]) for each in documents if each["status"] == "deleted")
    assert await JobQueue(database).find({"id": [gone]}) == []
