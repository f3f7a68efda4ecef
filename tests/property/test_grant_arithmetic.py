"""The database's arithmetic of grants against the same arithmetic in Python, on random states."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymongo import ReturnDocument

from collector.connectors.connector import Connector
from collector.connectors.grant import Want, answer_projection, grant_filter, grant_pipeline
from collector.connectors.window import Window
from collector.mongo.client import Database

periods = st.sampled_from([50, 1_000, 5_000, 60_000])
counts = st.integers(0, 12)


@st.composite
def window_states(draw: st.DrawFn) -> dict[str, Any]:
    """A state whose times are ages in ms; the test dates them from the server's now."""
    ages = draw(st.lists(st.integers(0, 70_000), max_size=5))
    return {
        "age": draw(st.integers(0, 70_000)),
        "cur": draw(counts),
        "bins": [(age, draw(counts)) for age in sorted(ages, reverse=True)],
        "start_age": draw(st.integers(0, 70_000)),
        "used": draw(counts),
        "reported": draw(st.none() | st.tuples(st.integers(-5_000, 5_000), st.integers(0, 40))),
    }


connectors = st.fixed_dictionaries(
    {
        "rate_limit": st.integers(1, 40),
        "rate_limit_period_ms": periods,
        "algorithm": st.sampled_from(["sliding_window", "fixed_window"]),
        "priority_reserve": st.integers(0, 5),
        "windows": st.lists(
            st.fixed_dictionaries(
                {
                    "unit": st.sampled_from(["requests", "weight"]),
                    "limit": st.integers(1, 60),
                    "period_ms": periods,
                    "priority_reserve": st.integers(0, 5),
                }
            ),
            max_size=2,
        ),
    }
)
wants = st.lists(st.builds(Want, st.integers(1, 9), st.booleans()), min_size=1, max_size=12)


def dated(
    state: dict[str, Any], window: dict[str, Any], algorithm: str, now: int
) -> dict[str, Any]:
    reported = state["reported"]
    extra = {"reported": {"until": now + reported[0], "used": reported[1]}} if reported else {}
    if algorithm == "fixed_window":
        return {"start": now - state["start_age"], "used": state["used"], **extra}
    shape = Window("requests", 1, window["period_ms"])
    width, count = shape.bin_ms, shape.bins
    current = now - state["age"]
    t = current - current % width
    bins = [{"t": now - age - (now - age) % width, "n": n} for age, n in state["bins"]]
    older = [entry for entry in bins if entry["t"] < t]
    live = [entry for entry in older if entry["t"] >= t - count * width]
    return {"t": t, "cur": state["cur"], "bins": live, "sum": sum(b["n"] for b in live), **extra}


def expected_grants(connector: Connector, asked: list[Want], now: int) -> int:
    """One want after the other, the obvious way."""
    used = [usage.used for usage in connector.usages(now)]
    loaded = [u >= 0.7 * w.limit for u, w in zip(used, connector.all_windows, strict=True)]
    for position, want in enumerate(asked):
        for index, window in enumerate(connector.all_windows):
            kept = 0 if want.priority or not loaded[index] else window.priority_reserve
            if used[index] + window.cost(want.weight) > window.limit - kept:
                return position
        for index, window in enumerate(connector.all_windows):
            used[index] += window.cost(want.weight)
    return len(asked)


def test_mongodb_grants_what_the_arithmetic_says(mongo_uri: str, database_name: str) -> None:
    with asyncio.Runner() as runner:
        database = Database(mongo_uri, database_name)

        @settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(
            fields=connectors,
            states=st.lists(window_states(), min_size=3, max_size=3),
            asked=wants,
        )
        def check(fields: dict[str, Any], states: list[Any], asked: list[Want]) -> None:
            runner.run(compare(database, fields, states, asked))

        try:
            check()
        finally:
            runner.run(database.raw.client.drop_database(database_name))
            runner.run(database.close())


async def compare(
    database: Database, fields: dict[str, Any], states: list[Any], asked: list[Want]
) -> None:
    asked = sorted(asked, key=lambda want: not want.priority)
    guess = round((await database.read_server_clock()).timestamp() * 1000)
    first = {"unit": "requests", "period_ms": fields["rate_limit_period_ms"]}
    configured = [first, *fields["windows"]]
    stored = [
        dated(state, window, fields["algorithm"], guess)
        for state, window in zip(states, configured, strict=False)
    ]
    before = {
        "_id": 1,
        "exchange_id": "x",
        "status": "active",
        **fields,
        "limiter": {"clock": 0, "windows": stored},
    }
    connectors = database.raw["connectors"]
    await connectors.replace_one({"_id": 1}, before, upsert=True)
    connector = Connector.from_document(before)
    answer = await connectors.find_one_and_update(
        grant_filter(connector),
        grant_pipeline(connector, asked, "n", 0),
        projection=answer_projection("n", len(asked)),
        return_document=ReturnDocument.AFTER,
    )
    now = round(answer["now"].timestamp() * 1000)
    granted = answer["limiter"]["granted"] if answer["limiter"].get("nonce") == "n" else 0
    assert granted == expected_grants(connector, asked, now)
    await check_state_after(connectors, before, asked[:granted], now)


async def check_state_after(
    connectors: Any, before: dict[str, Any], granted: list[Want], now: int
) -> None:
    """What was granted is counted, once, in every window; a denial changed nothing."""
    after = await connectors.find_one({"_id": 1})
    if not granted:
        assert after == before
        return
    was = Connector.from_document(before)
    counted = Connector.from_document(after).usages(now)
    for window, old, new in zip(was.all_windows, was.usages(now), counted, strict=True):
        assert new.used == old.used + sum(window.cost(want.weight) for want in granted)
    assert after["rate_limit_usage"] <= after["rate_limit"]
