"""A permit for exchanges that must not send anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.exchanges.port import Answer, Call


class NoPermit:
    async def before(self, call: Call) -> float:
        raise AssertionError(f"{call} wanted to leave")

    async def after(self, answer: Answer) -> None:
        raise AssertionError(f"{answer} came back")
