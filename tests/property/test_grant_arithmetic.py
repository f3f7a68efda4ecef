"""The database's arithmetic of grants against the same arithmetic in Python, on random states."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymongo import ReturnDocument

from collector.connectors.connector import Connector
from collector.connectors.grant import Ask, answer_projection, grant_filter, grant_pipeline
from collector.connectors.grant_window import Want
from collector.connectors.lateness import Margin
from collector.connectors.window import Algorithm, Window, usage
from collector.mongo.client import Database
from tests.support.examples import examples

periods = st.sampled_from([50, 1_000, 5_000, 60_000])
counts = st.integers(0, 12)


@st.composite
def window_states(draw: st.DrawFn) -> dict[str, Any]:
    """A state whose times are ages in ms; the test dates them from the server's now."""
    ages = draw(st.lists(st.integers(0, 70_000), max_size=5))
    return {
        "age": draw(st.integers(0, 70_000)),
        "cur": draw(counts),
        "pcur": draw(counts),
        "bins": [(age, draw(counts), draw(counts)) for age in sorted(ages, reverse=True)],
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


@dataclass(frozen=True)
class Asked:
    """What the database is asked, besides the state it is in."""

    wants: list[Want]
    charges: list[int]
    saved: int | None
    algorithm: Algorithm


def dated(state: dict[str, Any], window: Window, algorithm: str, now: int) -> dict[str, Any]:
    reported = state["reported"]
    extra = {"reported": {"until": now + reported[0], "used": reported[1]}} if reported else {}
    if algorithm == "fixed_window":
        by_priority = min(state["pcur"], state["used"])
        start = now - state["start_age"]
        return {"start": start, "used": state["used"], "pcur": by_priority, **extra}
    width, count = window.bin_ms, window.bins
    current = now - state["age"]
    t = current - current % width
    bins = [
        {"t": now - age - (now - age) % width, "n": n, "p": min(p, n)}
        for age, n, p in state["bins"]
    ]
    older = [entry for entry in bins if entry["t"] < t]
    live = [entry for entry in older if entry["t"] >= t - window.kept_bins * width]
    return {
        "t": t,
        "cur": state["cur"],
        "pcur": min(state["pcur"], state["cur"]),
        "bins": live,
        "sum": sum(b["n"] for b in live if b["t"] >= t - count * width),
        "psum": sum(b["p"] for b in live if b["t"] >= t - count * width),
        "k": count,
        **extra,
    }


def charged(state: dict[str, Any], window: Window, ask: Asked, cost: int, now: int) -> Any:
    """The state after so much was charged."""
    if ask.algorithm == "sliding_window":
        current = {"t": now - now % window.bin_ms, "n": cost}
        return {**state, "bins": [*state["bins"], current]}
    expired = state["start"] + window.period_ms <= now
    begun = {"start": now, "used": 0, "pcur": 0} if expired else {}
    state = {**state, **begun}
    return {**state, "used": state["used"] + cost}


def expected_grants(connector: Connector, ask: Asked, now: int) -> int:
    """One want after the other, the obvious way."""
    windows = connector.all_windows
    states = zip(connector.document["limiter"]["windows"], windows, ask.charges, strict=False)
    usages = [
        usage(w, charged(state, w, ask, cost, now), ask.algorithm, now) for state, w, cost in states
    ]
    used, by_priority = [u.used for u in usages], [u.by_priority for u in usages]
    saved = ask.saved if ask.saved and ask.saved != ask.wants[0].weight else 0
    for position, want in enumerate(ask.wants):
        for at, window in enumerate(windows):
            if not window.fits(
                used[at],
                window.cost(want.weight),
                by_priority=None if want.priority else by_priority[at],
                threshold=0.7,
                saved=window.cost(saved) if saved else 0,
            ):
                return position
        for at, window in enumerate(windows):
            used[at] += window.cost(want.weight)
            by_priority[at] += window.cost(want.weight) if want.priority else 0
    return len(ask.wants)


def test_mongodb_grants_what_the_arithmetic_says(mongo_uri: str, database_name: str) -> None:
    with asyncio.Runner() as runner:
        database = Database(mongo_uri, database_name)

        @settings(
            max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow]
        )
        @given(
            fields=connectors,
            states=st.lists(window_states(), min_size=3, max_size=3),
            asked=wants,
            charges=st.lists(st.integers(0, 3), min_size=3, max_size=3),
            saved=st.none() | st.integers(1, 9),
            margins=st.none() | st.lists(st.integers(10, 2_000), min_size=3, max_size=3),
        )
        def check(
            fields: dict[str, Any],
            states: list[Any],
            asked: list[Want],
            charges: list[int],
            saved: int | None,
            margins: list[int] | None,
        ) -> None:
            asked = sorted(asked, key=lambda want: not want.priority)
            count = 1 + len(fields["windows"])
            ask = Asked(asked, charges[:count], saved, fields["algorithm"])
            runner.run(compare(database, fields, states, ask, measured(margins)))

        try:
            check()
        finally:
            runner.run(database.raw.client.drop_database(database_name))
            runner.run(database.close())


def measured(margins: list[int] | None) -> list[dict[str, Any]]:
    """What each window's state has of its margin."""
    if margins is None:
        return [{}, {}, {}]
    return [{"margin": Margin(ms, ms).to_document()} for ms in margins]


async def compare(
    database: Database,
    fields: dict[str, Any],
    states: list[Any],
    ask: Asked,
    margins: list[dict[str, Any]],
) -> None:
    guess = round((await database.read_server_clock()).timestamp() * 1000)
    before = {
        "_id": 1,
        "exchange_id": "x",
        "status": "active",
        **fields,
        "limiter": {
            "clock": 0,
            "windows": margins,
            "saved": ask.saved and {"weight": ask.saved, "until": guess + 60_000},
        },
    }
    windows = Connector.from_document(before).all_windows
    before["limiter"]["windows"] = [
        {**dated(state, window, ask.algorithm, guess), **margin}
        for state, window, margin in zip(states, windows, margins, strict=False)
    ]
    connectors = database.raw["connectors"]
    await connectors.replace_one({"_id": 1}, before, upsert=True)
    connector = Connector.from_document(before)
    answer = await connectors.find_one_and_update(
        grant_filter(connector),
        grant_pipeline(connector, Ask(ask.wants, "n", charges=ask.charges, charged=2)),
        projection=answer_projection("n", len(ask.wants)),
        return_document=ReturnDocument.AFTER,
    )
    now = round(answer["now"].timestamp() * 1000)
    granted = answer["limiter"]["granted"] if answer["limiter"].get("nonce") == "n" else 0
    assert granted == expected_grants(connector, ask, now)
    await check_state_after(connectors, before, ask, granted, now)


async def check_state_after(
    connectors: Any, before: dict[str, Any], ask: Asked, granted: int, now: int
) -> None:
    """What was granted and charged is counted, once, in every window; else nothing changed."""
    after = await connectors.find_one({"_id": 1})
    if not granted and not any(ask.charges):
        assert after == before
        return
    assert after["charged_total"] == 2
    was = Connector.from_document(before)
    counted = Connector.from_document(after).usages(now)
    costs = [
        sum(window.cost(want.weight) for want in ask.wants[:granted]) for window in was.all_windows
    ]
    for at, window in enumerate(was.all_windows):
        state = before["limiter"]["windows"][at]
        old = usage(window, charged(state, window, ask, ask.charges[at], now), ask.algorithm, now)
        assert counted[at].used == old.used + costs[at]
    assert after.get("rate_limit_usage", 0) <= after["rate_limit"]
    assert after.get("granted_total", 0) == granted
