"""What every benchmark stands on: a database of its own, rounds in turn, figures with a bound.

The machine is shared and noisy, so absolute numbers mean little. Contenders take turns inside one
run (A, B, B, A, ...), and a ratio is the median of the ratios of each round: noise that lasts
longer than a round hits both sides of it.
"""

from __future__ import annotations

import math
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.table import Table

from collector.mongo.client import Database
from migrations import runner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from rich.console import Console

Samples = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and what it must reach, if anything."""

    name: str
    value: float
    unit: str = "x"
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ok(self) -> bool:
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def required(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}{self.unit}"
        if self.at_most is not None:
            return f"<= {self.at_most:g}{self.unit}"
        return ""

    @property
    def verdict(self) -> str:
        if not self.required:
            return ""
        return "ok" if self.ok else "SHORT"


@dataclass(frozen=True, slots=True)
class Bench:
    """What a benchmark is given."""

    uri: str
    console: Console
    quick: bool
    million: bool
    ten_thousand: bool = False

    def pick(self, full: Any, quick: Any) -> Any:
        """The size of something in the full and in the short form."""
        return quick if self.quick else full

    @asynccontextmanager
    async def database(self, *, migrated: bool = True) -> AsyncIterator[Database]:
        """A database nobody else uses, dropped at the end."""
        async with Database(self.uri, f"bench_{uuid.uuid4().hex[:12]}") as database:
            await database.read_server_clock()
            if migrated:
                await runner.up(database)
            try:
                yield database
            finally:
                await database.raw.client.drop_database(database.raw.name)

    def show(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.console.print(f"[bold]{title}")
        table = Table(show_edge=False, pad_edge=False)
        for position, column in enumerate(columns):
            table.add_column(column, justify="right" if position else "left")
        for row in rows:
            table.add_row(*(cell if isinstance(cell, str) else number(cell) for cell in row))
        self.console.print(table)
        self.console.print()


async def in_turn(
    contenders: Mapping[str, Callable[[], Awaitable[float]]],
    rounds: int,
    *,
    settled: Callable[[Samples], bool] = lambda _: True,
) -> Samples:
    """What each contender scored in each round, after a first lap that only warms up.

    Noise can look like a regression: as long as the samples are not `settled`, up to two times
    `rounds` more are run. A real regression is still there afterwards.
    """
    samples: Samples = {name: [] for name in contenders}
    for contender in contenders.values():
        await contender()
    for number_of_round in range(3 * rounds):
        if number_of_round >= rounds and settled(samples):
            break
        names = list(contenders)
        for name in names if number_of_round % 2 == 0 else reversed(names):
            samples[name].append(await contenders[name]())
    return samples


def ratio(samples: Samples, one: str, other: str) -> float:
    """How many times `other` the contender `one` scored: the median over the rounds."""
    pairs = zip(samples[one], samples[other], strict=True)
    return median(a / b for a, b in pairs)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def number(value: float) -> str:
    """Three digits that matter, thousands apart."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
