"""Whose call to FXCM's SDK is next."""

from __future__ import annotations

import asyncio

from collector.exchanges.fxcm.history_turns import HistoryTurns


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Callers:
    """Calls that wait for their turn, and the order in which they had it."""

    def __init__(self, *first: str) -> None:
        self.turns = HistoryTurns(frozenset(first))
        self.made: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def comes(self, key: str) -> None:
        self.ends[key] = asyncio.Event()
        self.tasks[key] = asyncio.create_task(self._call(key))
        await settle()

    async def ends_call(self, key: str) -> None:
        self.ends[key].set()
        await settle()

    async def _call(self, key: str) -> None:
        async with self.turns.turn(key):
            self.made.append(key)
            await self.ends[key].wait()


async def test_a_series_that_goes_first_waits_for_one_other_call_and_keeps_none_from_theirs() -> (
    None
):
    callers = Callers("XAUUSD:1m", "XAUUSD:5m")
    for key in ("EURJPY:1m", "GBPUSD:1m", "AUDUSD:1m", "XAUUSD:1m", "XAUUSD:5m"):
        await callers.comes(key)
    assert callers.made == ["EURJPY:1m"]
    order = ["EURJPY:1m", "XAUUSD:1m", "GBPUSD:1m", "XAUUSD:5m", "AUDUSD:1m"]
    for key in order:
        await callers.ends_call(key)
    assert callers.made == order
    await callers.comes("NZDUSD:1m")
    assert callers.made[-1] == "NZDUSD:1m", "the turn is free again"
    await callers.ends_call("NZDUSD:1m")


async def test_a_caller_that_left_takes_no_turn() -> None:
    callers = Callers()
    for key in ("a", "b", "c", "d"):
        await callers.comes(key)
    callers.tasks["b"].cancel()
    await settle()
    # It gets the turn and is cancelled before it could begin.
    callers.ends["a"].set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    callers.tasks["c"].cancel()
    await settle()
    assert callers.made[-1] == "d"
    await callers.ends_call("d")
    assert [task.cancelled() for task in callers.tasks.values()] == [False, True, True, False]


async def test_a_call_that_fails_passes_its_turn_on() -> None:
    turns = HistoryTurns()

    async def fails() -> None:
        async with turns.turn("a"):
            raise ValueError

    results = await asyncio.gather(fails(), fails(), return_exceptions=True)
    assert [type(each) for each in results] == [ValueError, ValueError]
