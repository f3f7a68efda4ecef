"""What each day of a series lacks, against a count of every slot."""

from __future__ import annotations

import random

import pytest

from collector.durations import DAY_MS, HOUR_MS
from collector.market.interval import Interval, covers, union
from collector.market.series import Series
from collector.pipeline.evidence import Silence
from collector.reports.coverage_days import calendar_of, coverage_days, holes
from collector.reports.expected import Expected

T0 = 1_704_067_200_000
"""2024-01-01, a Monday."""
DAYS = Interval(T0, T0 + 20 * DAY_MS)
SERIES = [
    ("binance", "BTC/USDT", "1m"),
    ("binance", "BTC/USDT", "1h"),
    ("binance", "BTC/USDT", "1d"),
    ("binance", "BTC/USDT", "1w"),
    ("binance", "BTC/USDT", "1M"),
    ("fxcm", "EUR/USD", "1m"),
    ("fxcm", "EUR/USD", "1h"),
    ("fxcm", "EUR/USD", "1d"),
]


def random_coverage(rng: random.Random, series: Series) -> tuple[Interval, ...]:
    frame, found = series.timeframe, []
    for _ in range(rng.randint(1, 6)):
        start = frame.floor(T0 + rng.randint(-5, 22) * DAY_MS + rng.randint(0, 23) * HOUR_MS)
        found.append(Interval(start, frame.shift(start, rng.randint(1, 5_000))))
    return union(found)


@pytest.mark.parametrize("name", SERIES, ids=lambda name: " ".join(name))
def test_every_day_has_the_slots_that_open_in_it(name: tuple[str, str, str]) -> None:
    series, rng = Series.of(*name), random.Random(str(name))
    frame = series.timeframe
    for _ in range(25):
        covered = random_coverage(rng, series)
        to_ms = T0 + rng.randint(1, 25) * DAY_MS + rng.randint(0, 86_399) * 1000
        heard = [*random_coverage(rng, series), *random_coverage(rng, series)]
        silences = [Silence(s.from_ms, s.to_ms, 1, 0, 0, 0, 0) for s in heard]
        from_ms = T0 + rng.randint(-5, 10) * DAY_MS
        expected = Expected(from_ms, to_ms, unconfirmed=tuple(silences))
        found = coverage_days(series, covered, expected, DAYS)
        calendar = calendar_of(frame, covered, expected)
        assert len(found.expected) == len(found.missing) == 20
        for day in range(20):
            begin = T0 + day * DAY_MS
            slots = frame.opens(frame.ceil(begin), frame.ceil(begin + DAY_MS))
            inside = slots[:0] if calendar is None else slots[covers([calendar], slots)]
            uncovered = inside[~covers(covered, inside)]
            unconfirmed = int(covers(union(heard), uncovered).sum())
            counts = found.expected[day], found.missing[day], found.unconfirmed[day]
            assert counts == (len(inside), len(uncovered) - unconfirmed, unconfirmed), day


def test_nothing_is_expected_of_a_series_without_answers_or_jobs() -> None:
    series = Series.of("binance", "BTC/USDT", "1m")
    found = coverage_days(series, (), Expected(None, T0), DAYS)
    assert set(found.expected) == set(found.missing) == {0}


def test_holes_are_what_no_answer_covers() -> None:
    frame = Series.of("binance", "BTC/USDT", "1h").timeframe
    covered = [Interval(T0, T0 + 3 * HOUR_MS), Interval(T0 + 5 * HOUR_MS, T0 + 6 * HOUR_MS)]
    calendar = Interval(T0 - HOUR_MS, T0 + 8 * HOUR_MS)
    silent = Silence(T0 + 4 * HOUR_MS, T0 + 7 * HOUR_MS, 1, 0, 0, 0, 0)
    missing, unconfirmed = holes(
        frame, covered, calendar, Expected(None, None, unconfirmed=(silent,))
    )
    assert missing == (
        Interval(T0 - HOUR_MS, T0),
        Interval(T0 + 3 * HOUR_MS, T0 + 4 * HOUR_MS),
        Interval(T0 + 7 * HOUR_MS, T0 + 8 * HOUR_MS),
    )
    assert unconfirmed == (
        Interval(T0 + 4 * HOUR_MS, T0 + 5 * HOUR_MS),
        Interval(T0 + 6 * HOUR_MS, T0 + 7 * HOUR_MS),
    )
