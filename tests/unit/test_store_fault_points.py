"""A death at every single moment of an append and of a compaction, on each medium."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.store.page import Page
from collector.store.port import StorageFault
from tests.support.bars import BTC, at, bars, flat, span

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.store.store import Store
    from tests.support.lakes import Lake

SEALED = "binance/BTC-USDT/1m.parquet"
MOMENTS = 60
"""More than either has."""


class Killed(BaseException):
    """Not an Exception, so that nothing tidies up on its way: as after kill -9."""


@dataclass
class Death:
    """Ends the process at the n-th moment. Remembers which objects were in place by then."""

    after: int
    placed: list[str] = field(default_factory=list)

    def __call__(self, point: StorageFault, path: str) -> None:
        if point is StorageFault.AFTER_RENAME:
            self.placed.append(path)
        self.after -= 1
        if self.after < 0:
            raise Killed


def died(lake: Lake, death: Death, work: Callable[[Store], object]) -> bool:
    try:
        work(lake.store(death))
    except Killed:
        return True
    return False


def prepared(lake: Lake) -> None:
    """A sealed file with an older version, page parts and a group part beside it."""
    store = lake.store()
    store.append_page(BTC, flat(0, 4, 10.0), span(0, 4), fence=1, known_at=1)
    store.append_page(BTC, bars({0: 11.0}), span(0, 1), fence=1, known_at=2)
    store.compact(BTC)
    store.append_page(BTC, bars({1: 12.0, 4: 13.0}), span(1, 6), fence=1, known_at=3)
    store.append_group([Page.of(BTC, flat(6, 1, 14.0), span(6, 7), fence=1, known_at=4)])


def told(lake: Lake) -> list[tuple[float, int, str | None]]:
    rows = lake.store().rows(BTC, at(0), at(20), columns=["ts", "o", "ver", "is_gap", "gap_reason"])
    assert rows["ts"].to_pylist() == [at(slot) for slot in range(len(rows))]
    return [(row["o"], row["ver"], row["gap_reason"]) for row in rows.to_pylist()]


PREPARED = [
    (11.0, 2, None),
    (12.0, 2, None),
    (10.0, 1, None),
    (10.0, 1, None),
    (13.0, 1, None),
    (14.0, 1, "no_trade"),
    (14.0, 1, None),
]


def settled(lake: Lake) -> None:
    """After one undisturbed compaction nothing is left over and the checksum fits."""
    store = lake.store()
    store.compact(BTC)
    store.sweep("binance")
    assert store.storage.names("binance/parts") == []
    assert store.storage.names("binance/BTC-USDT/parts/1m") == []
    digest = lake.read(f"{SEALED}.sha256").decode().split()[0]
    assert digest == hashlib.sha256(lake.read(SEALED)).hexdigest()


def test_an_append_that_dies_is_there_once_or_not_at_all(lake: Lake) -> None:
    outcomes = set()
    for moment in range(MOMENTS):
        here, death = lake.beside(str(moment)), Death(moment)
        ended = died(
            here,
            death,
            lambda store: store.append_page(BTC, flat(0, 3), span(0, 3), fence=1, known_at=1),
        )
        expected = [(100.0, 1, None)] * (3 if death.placed else 0)
        assert told(here) == expected, moment
        here.store().append_page(BTC, flat(0, 3), span(0, 3), fence=2, known_at=2)
        assert told(here) == [(100.0, 1, None)] * 3
        outcomes.add((ended, bool(death.placed)))
        if not ended:
            break
    assert outcomes == {(True, False), (True, True), (False, True)}


def test_a_compaction_that_dies_changes_nothing_anyone_reads(lake: Lake) -> None:
    moments = 0
    for moment in range(MOMENTS):
        here = lake.beside(str(moment))
        prepared(here)
        ended = died(here, Death(moment), lambda store: store.compact(BTC))
        assert told(here) == PREPARED, moment
        settled(here)
        assert told(here) == PREPARED, moment
        if not ended:
            break
        moments += 1
    assert 15 < moments < MOMENTS
