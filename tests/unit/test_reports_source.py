"""Random stored bars are compared with the exchange's."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from collector.errors import BadRequest, ExchangeUnavailable
from collector.reports.validation import Comparing, Demands, inspect
from collector.reports.validation_report import ValidationReport
from collector.store.store import Store
from tests.support.bars import BTC, ETH, at, bars, flat
from tests.support.validated import AS_STORED, NOW, failed, keep

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.market.candles import CandleBatch
    from collector.market.series import Series
    from collector.reports.validation import SeriesReport


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


class Venue:
    """An exchange that remembers what it was asked."""

    def __init__(self, batch: CandleBatch) -> None:
        columns = (batch.ts, batch.o, batch.h, batch.l, batch.c, batch.v, batch.t)
        self.rows = list(zip(*(column.tolist() for column in columns), strict=True))
        self.asked: list[tuple[int, int]] = []

    async def __call__(
        self, series: Series, since_ms: int, limit: int
    ) -> Sequence[Sequence[float | None]]:
        self.asked.append((since_ms, limit))
        return [row for row in self.rows if row[0] >= since_ms][:limit]


async def compared(store: Store, venue: Venue, samples: int = 200) -> SeriesReport:
    demands = Demands(samples=samples)
    report = inspect(store, BTC, demands, AS_STORED, now_ms=NOW, rng=random.Random(7))
    return await Comparing(venue).of(report)


async def test_random_bars_are_the_exchanges_own(store: Store) -> None:
    batch = bars({n: 100.0 + n for n in range(3_000)})
    keep(store, BTC, batch, 0, 3_000)
    venue = Venue(batch)
    report = await compared(store, venue)
    assert failed(report) == {}
    assert report.sample is not None
    assert len(report.sample) == 200
    # Samples that lie close together share a request.
    assert 3_000 // 500 <= len(venue.asked) < 20
    assert all(limit <= 500 for _, limit in venue.asked)


async def test_a_bar_that_differs_or_is_not_there_is_found(store: Store) -> None:
    batch = flat(0, 300)
    keep(store, BTC, batch, 0, 300)
    changed = Venue(batch)
    changed.rows[5] = (*changed.rows[5][:4], 7.0, *changed.rows[5][5:])
    del changed.rows[9]
    report = await compared(store, changed, samples=300)
    assert failed(report) == {"source": 2}
    first, second = report.checks["source"].examples
    assert first == {"ts": at(5), "column": "c", "stored": 101.0, "source": 7.0}
    assert second == {"ts": at(9), "column": None, "stored": None, "source": None}


async def test_slots_without_a_trade_are_compared_and_missing_ones_are_not(store: Store) -> None:
    """0-9 have bars, 10-19 had no trade, 20-29 are missing, 30-39 have bars."""
    keep(store, BTC, flat(0, 10), 0, 20)
    keep(store, BTC, flat(30, 10), 30, 40)
    same = await compared(store, Venue(bars({**dict.fromkeys(range(10), 100.0), 35: 100.0})), 40)
    assert failed(same)["source"] == 9, "the bars that the exchange does not have"
    assert same.sample is not None
    assert len(same.sample) == 30
    everywhere = await compared(store, Venue(flat(0, 40)), 40)
    assert failed(everywhere)["source"] == 10
    first = everywhere.checks["source"].examples[0]
    assert (first["ts"], first["stored"]) == (at(10), None)
    assert first["source"] == [100.0, 102.0, 99.0, 101.0, 1000.0]


async def test_a_quiet_slot_that_the_exchange_fills_without_volume_is_no_difference(
    store: Store,
) -> None:
    keep(store, BTC, flat(0, 10), 0, 20)
    venue = Venue(flat(0, 20))
    venue.rows[10:] = [(*row[:5], 0.0, row[6]) for row in venue.rows[10:]]
    report = await compared(store, venue, samples=20)
    assert "source" not in failed(report)


async def test_an_exchange_that_is_away_is_said_and_not_raised(store: Store) -> None:
    keep(store, BTC, flat(0, 10), 0, 10)

    async def away(series: Series, since_ms: int, limit: int) -> Any:
        raise ExchangeUnavailable("binance: nobody answers")

    report = inspect(store, BTC, Demands(), AS_STORED, now_ms=NOW)
    report = await Comparing(away).of(report)
    whole = ValidationReport(NOW, [report], Demands())
    assert [error.exit_name for error in whole.errors()] == ["E_API"]
    assert "nobody answers" in str(next(whole.errors()))


async def test_an_exchange_that_is_away_is_not_asked_for_every_series(store: Store) -> None:
    keep(store, BTC, flat(0, 10), 0, 10)
    asked: list[int] = []

    async def away(series: Series, since_ms: int, limit: int) -> Any:
        asked.append(since_ms)
        raise ExchangeUnavailable("binance: nobody answers")

    report = inspect(store, BTC, Demands(), AS_STORED, now_ms=NOW)
    comparing = Comparing(away)
    found = [await comparing.of(report) for _ in range(20)]
    assert len(asked) == 3
    assert all(
        each.checks["source"].examples == found[0].checks["source"].examples for each in found
    )


@pytest.mark.parametrize("is_listed", [False, True])
async def test_a_market_that_the_exchange_has_forgotten_is_no_fault_unless_it_is_listed(
    store: Store, is_listed: bool
) -> None:
    keep(store, BTC, flat(0, 10), 0, 10)
    keep(store, ETH, flat(0, 10), 0, 10)
    theirs = Venue(flat(0, 10))

    async def forgotten(series: Series, since_ms: int, limit: int) -> Any:
        if series == BTC:
            raise BadRequest("binance does not have market symbol BTC/USDT")
        return await theirs(series, since_ms, limit)

    comparing = Comparing(forgotten)
    reports = [
        await comparing.of(
            inspect(store, each, Demands(), AS_STORED, now_ms=NOW),
            is_listed=is_listed or each == ETH,
        )
        for each in (BTC, ETH)
    ]
    gone, other = (report.checks["source"] for report in reports)
    assert (gone.ok, other.ok) == (not is_listed, True)
    assert "does not have market symbol" in str(gone.examples)
    errors = list(ValidationReport(NOW, reports, Demands()).errors())
    assert [error.exit_name for error in errors] == (["E_API"] if is_listed else [])
