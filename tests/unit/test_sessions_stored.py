"""A market that closes, from parts to reports: closed time has no rows, no gaps and no lag."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from collector.jobs.gap_jobs import gap_jobs, missing
from collector.jobs.schedule import BarClose, parse
from collector.market.calendar import lookup
from collector.market.calendar.calendar import ALWAYS_OPEN
from collector.market.calendar.fx import FX
from collector.market.calendar.sessions import Override
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.operations.census import lag_of
from collector.reader import CandleReader
from collector.reports.expected import Expected
from collector.reports.validation import Demands, inspect
from collector.store.copies import Copies
from collector.store.layout import sealed_path
from collector.store.sealed import Sealed
from collector.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

MINUTE = 60_000
EUR = Series.of("fxcm", "EUR/USD", "1m")


def new_york(text: str) -> int:
    zone = ZoneInfo("America/New_York")
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


START, FRIDAY = new_york("2026-03-06 15:00"), new_york("2026-03-06 16:55")
SUNDAY, END = new_york("2026-03-08 17:00"), new_york("2026-03-08 18:00")
SATURDAY = new_york("2026-03-07 12:00")


def minutes(from_ms: int, to_ms: int) -> CandleBatch:
    times = EUR.timeframe.opens(from_ms, to_ms).tolist()
    return CandleBatch.of([(ts, 1.0, 2.0, 0.5, 1.5, 1.0) for ts in times])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    frames = tuple(Timeframe.parse(name) for name in ("5m", "1h"))
    return Store(tmp_path, copies=Copies(frames, tail_days=3))


def filled(store: Store) -> None:
    batch = minutes(START, END)
    kept = (batch.ts != START + 5 * MINUTE) & (batch.ts != SUNDAY + 7 * MINUTE)
    friday, sunday = kept & (batch.ts < FRIDAY), kept & (batch.ts >= SUNDAY)
    store.append_page(EUR, batch.take(friday), Interval(START, FRIDAY), fence=1, known_at=1)
    store.append_page(EUR, batch.take(sunday), Interval(SUNDAY, END), fence=1, known_at=2)


@pytest.mark.parametrize("compacted", [False, True])
def test_closed_time_has_no_rows_whether_merged_or_not(store: Store, compacted: bool) -> None:
    filled(store)
    if compacted:
        store.compact(EUR)
    reader = CandleReader("EUR/USD", "1m", "fxcm", root=store)
    table = reader.arrow()
    assert table["ts"].to_pylist() == EUR.timeframe.opens(START, END).tolist()
    gaps = table.filter(table["is_gap"])
    assert gaps["ts"].to_pylist() == [START + 5 * MINUTE, SUNDAY + 7 * MINUTE]
    hours = CandleReader("EUR/USD", "1h", "fxcm", root=store).arrow()
    wanted = [START, START + 60 * MINUTE, SUNDAY]
    assert hours["ts"].to_pylist() == wanted
    assert hours["v"].to_pylist() == [59.0, 55.0, 59.0]
    assert hours["gap_reason"].to_pylist() == ["partial", None, "partial"]
    fives = CandleReader("EUR/USD", "5m", "fxcm", root=store).arrow()
    assert fives["ts"].to_pylist() == EUR.timeframe.opens(START, END).tolist()[::5]


def test_the_last_hour_of_the_week_can_be_read_at_the_week_end(store: Store) -> None:
    batch = minutes(START, FRIDAY)
    store.append_page(EUR, batch, Interval(START, FRIDAY), fence=1, known_at=1)
    hours = CandleReader("EUR/USD", "1h", "fxcm", root=store).arrow()
    assert hours["v"].to_pylist() == [60.0, 55.0]


def test_a_sealed_file_names_its_calendar_and_one_of_a_market_that_never_closes_does_not(
    store: Store,
) -> None:
    filled(store)
    store.compact(EUR)
    btc = Series.of("binance", "BTC/USDT", "1m")
    batch = CandleBatch.of([(START, 1.0, 2.0, 0.5, 1.5, 1.0)])
    store.append_page(btc, batch, Interval(START, START + MINUTE), fence=1, known_at=1)
    store.compact(btc)
    footers = []
    for series in (EUR, btc):
        file = Sealed.open(store.storage, sealed_path(series))
        footers.append((file.metadata("calendar"), b"calendar" in file.raw_footer.metadata))
        file.close()
    assert footers == [(FX.identity, True), ("", False)]


def test_a_bar_that_came_in_closed_time_is_kept(store: Store) -> None:
    filled(store)
    store.compact(EUR)
    stray = CandleBatch.of([(SATURDAY, 7.0, 8.0, 6.0, 7.5, 1.0)])
    within = Interval(SATURDAY, SATURDAY + MINUTE)
    store.append_page(EUR, stray, within, fence=1, known_at=3)
    reader = CandleReader("EUR/USD", "1m", "fxcm", root=store)
    for _ in range(2):
        assert SATURDAY in reader.arrow()["ts"].to_pylist()
        store.compact(EUR)
    hours = CandleReader("EUR/USD", "1h", "fxcm", root=store).arrow()
    assert SATURDAY in hours["ts"].to_pylist()


def test_a_changed_calendar_is_a_reason_to_write_the_sealed_file_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store)
    store.compact(EUR)
    assert not store.is_due(EUR)
    closed = Override("2026-03-06 15:05", "2026-03-06 15:06")
    monkeypatch.setattr(lookup, "SESSIONS", {"fxcm": FX.with_overrides([closed])})
    changed = Series.of("fxcm", "EUR/USD", "1m")
    assert store.is_due(changed)
    assert store.compact(changed) is not None
    assert store.compact(changed) is None
    rows = CandleReader("EUR/USD", "1m", "fxcm", root=store).arrow()
    assert START + 5 * MINUTE not in rows["ts"].to_pylist()
    assert CandleReader("EUR/USD", "1h", "fxcm", root=store).arrow()["v"].to_pylist()[0] == 59.0


def test_a_report_counts_open_time_alone(store: Store) -> None:
    filled(store)
    store.compact(EUR)
    report = inspect(store, EUR, Demands(samples=0), Expected(START, END), now_ms=END + 10 * MINUTE)
    coverage = report.coverage
    assert (coverage.expected, coverage.no_trade, coverage.missing) == (175, 2, 0)
    assert all(check.ok for check in report.checks.values()), report.checks
    hours = Series.of("fxcm", "EUR/USD", "1h")
    of_hours = inspect(
        store, hours, Demands(samples=0), Expected(START, END), now_ms=END + 10 * MINUTE
    )
    assert of_hours.coverage.expected == 3
    assert all(check.ok for check in of_hours.checks.values()), of_hours.checks


def test_nothing_is_behind_at_the_week_end(store: Store) -> None:
    store.append_page(EUR, minutes(START, FRIDAY), Interval(START, FRIDAY), fence=1, known_at=1)
    report = inspect(
        store, EUR, Demands(samples=0), Expected(START, SATURDAY), now_ms=SATURDAY + 10 * MINUTE
    )
    assert (report.coverage.lag_bars, report.coverage.missing) == (0, 0)
    assert report.coverage.worst == ()
    assert lag_of("1m", FRIDAY, SATURDAY, "fxcm").bars == 0
    assert lag_of("1m", FRIDAY, SUNDAY + 3 * MINUTE, "fxcm").bars == 3
    assert lag_of("1m", FRIDAY, FRIDAY + 3 * MINUTE, "binance").bars == 3


def test_an_outage_over_a_week_end_is_one_run_of_missing_bars(store: Store) -> None:
    batch = minutes(START, END)
    kept = (batch.ts < FRIDAY - 2 * MINUTE) | (batch.ts >= SUNDAY + 3 * MINUTE)
    early, late = batch.ts < FRIDAY - 2 * MINUTE, batch.ts >= SUNDAY + 3 * MINUTE
    for mask, span in (
        (early, Interval(START, FRIDAY - 2 * MINUTE)),
        (late, Interval(SUNDAY + 3 * MINUTE, END)),
    ):
        store.append_page(EUR, batch.take(mask & kept), span, fence=1, known_at=1)
    report = inspect(store, EUR, Demands(samples=0), Expected(START, END), now_ms=END + 10 * MINUTE)
    assert (report.coverage.missing, report.coverage.longest_gap_bars) == (5, 5)
    assert len(report.coverage.worst) == 1


def test_closed_time_makes_no_gap_jobs() -> None:
    covered = [Interval(START, FRIDAY), Interval(SUNDAY, END)]
    assert gap_jobs(EUR, missing(covered, ())) == ()
    holed = [Interval(START, FRIDAY - MINUTE), Interval(SUNDAY, END)]
    assert len(gap_jobs(EUR, missing(holed, ()))) == 1


def test_a_job_sleeps_through_closed_time() -> None:
    rule = parse({"mode": "bar_close", "timeframe": "1m"}, "fxcm", "EUR/USD")
    assert isinstance(rule, BarClose)
    last = rule.next_run(FRIDAY - 30_000, 0.0)
    assert last == FRIDAY + rule.settle_ms
    assert rule.next_run(last, 0.0) == SUNDAY + MINUTE + rule.settle_ms
    always = BarClose(Timeframe.parse("1m").by(ALWAYS_OPEN))
    assert always.next_run(last, 0.0) == last + MINUTE
