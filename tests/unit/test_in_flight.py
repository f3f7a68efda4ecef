"""How many requests of a job are under way: more while the budget lasts, few when it is spent."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from workers.handlers.fill import FEWEST, MOST, RequestSlots


class Budget:
    def __init__(self) -> None:
        self.spent = False

    def is_spent(self) -> bool:
        return self.spent


async def answered(places: RequestSlots, times: int) -> None:
    for _ in range(times):
        async with places.place():
            pass


async def most_at_once(places: RequestSlots) -> int:
    """How many of many requests get a place before any of them ends."""
    leave = asyncio.Event()
    inside = 0

    async def request() -> None:
        nonlocal inside
        async with places.place():
            inside += 1
            await leave.wait()

    tasks = [asyncio.create_task(request()) for _ in range(2 * MOST)]
    for _ in range(3):
        await asyncio.sleep(0)
    found = inside
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


async def test_it_begins_with_few_and_grows_while_answers_come_and_the_budget_lasts() -> None:
    places = RequestSlots(Budget().is_spent)
    assert await most_at_once(places) == FEWEST
    await answered(places, FEWEST)
    assert FEWEST < await most_at_once(places) < MOST
    await answered(places, 20 * FEWEST)
    assert await most_at_once(places) == MOST


async def test_it_falls_back_when_the_budget_is_spent_and_grows_again() -> None:
    budget = Budget()
    places = RequestSlots(budget.is_spent)
    await answered(places, 20 * FEWEST)
    budget.spent = True
    await answered(places, MOST)
    assert await most_at_once(places) == FEWEST
    budget.spent = False
    await answered(places, 20 * FEWEST)
    assert await most_at_once(places) == MOST


async def test_requests_that_fail_give_their_place_back_and_do_not_widen_it() -> None:
    places = RequestSlots(Budget().is_spent)
    for _ in range(5 * FEWEST):
        with suppress(ValueError):
            async with places.place():
                raise ValueError
    assert await most_at_once(places) == FEWEST
