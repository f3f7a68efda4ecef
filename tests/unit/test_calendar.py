"""When a market is open."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from collector.market.calendar import lookup
from collector.market.calendar.calendar import ALWAYS_OPEN
from collector.market.calendar.fx import FX
from collector.market.calendar.lookup import calendar_of
from collector.market.calendar.sessions import Holiday, Override, Session, Sessions
from collector.market.interval import Interval, unbroken
from collector.market.moment import epoch_ms
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.settings import load

if TYPE_CHECKING:
    from pathlib import Path

_NEW_YORK = ZoneInfo("America/New_York")


def new_york(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=_NEW_YORK).timestamp() * 1000)


def fx(name: str) -> Timeframe:
    return Timeframe.parse(name).by(FX)


@pytest.mark.parametrize(
    ("moment", "is_open"),
    [
        ("2026-03-06 16:54:59.999", True),
        ("2026-03-06 16:55", False),
        ("2026-03-07 12:00", False),
        ("2026-03-08 16:59", False),  # The clocks went forward this morning.
        ("2026-03-08 17:00", True),
        ("2026-11-01 16:59", False),  # And back.
        ("2026-11-01 17:00", True),
        ("2026-03-10 17:00", True),
        ("2026-12-24 16:59", True),
        ("2026-12-25 12:00", False),
        ("2027-01-01 16:59", False),
    ],
)
def test_foreign_exchange_is_open_from_sunday_to_friday(moment: str, is_open: bool) -> None:
    assert FX.is_open(new_york(moment)) is is_open


def test_a_week_end_is_one_closed_stretch_an_hour_shorter_in_spring() -> None:
    friday, sunday = new_york("2026-03-06 16:55"), new_york("2026-03-08 17:00")
    span = Interval(new_york("2026-03-06 10:00"), new_york("2026-03-09 10:00"))
    assert FX.closed(span) == (Interval(friday, sunday),)
    assert FX.next_open(friday) == sunday
    assert FX.next_close(span.from_ms) == friday
    assert FX.next_close(friday) == friday
    assert sunday - friday == (48 * 60 + 5 - 60) * 60_000


def test_a_span_inside_closed_time_is_closed_as_a_whole() -> None:
    inside = Interval(new_york("2026-03-07 10:00"), new_york("2026-03-07 11:00"))
    assert FX.closed(inside) == (inside,)
    open_hours = Interval(new_york("2026-03-05 10:00"), new_york("2026-03-05 11:00"))
    assert FX.closed(open_hours) == ()


def test_overrides_are_applied_last_and_in_order() -> None:
    calendar = FX.with_overrides(
        [
            Override("2026-07-03 13:00", "2026-07-03 16:55"),
            Override("2026-07-03 14:00", "2026-07-03 14:30", is_open=True),
            Override("2026-07-04 10:00", "2026-07-04 11:00", is_open=True),
        ]
    )
    assert not calendar.is_open(new_york("2026-07-03 13:30"))
    assert calendar.is_open(new_york("2026-07-03 14:15"))
    assert not calendar.is_open(new_york("2026-07-03 15:00"))
    assert calendar.is_open(new_york("2026-07-04 10:59"))
    assert not calendar.is_open(new_york("2026-07-04 11:00"))


def test_the_identity_tells_other_hours_apart() -> None:
    early = FX.with_overrides([Override("2026-07-03 13:00", "2026-07-03 16:55")])
    assert FX.identity.startswith("fx:")
    assert early.identity != FX.identity
    assert FX.with_overrides([]).identity == FX.identity


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Sessions("x", "UTC", (Session("someday 17:00", "fri 16:55"),)),
        lambda: Sessions("x", "UTC", (), holidays=(Holiday("13-01 00:00", "13-02 00:00"),)),
        lambda: FX.with_overrides([Override("2026-07-03 13:00", "2026-07-03 13:00")]),
    ],
)
def test_texts_that_mean_nothing_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        wrong()  # type: ignore[operator]


def test_closed_time_holds_no_bars() -> None:
    friday, sunday = new_york("2026-03-06 16:54"), new_york("2026-03-08 17:00")
    minutes = fx("1m")
    assert minutes.opens(friday, sunday + 60_000).tolist() == [friday, sunday]
    assert minutes.next_open(friday) == sunday
    assert minutes.end(friday) == friday + 60_000
    assert minutes.count(friday, sunday) == 1
    assert minutes.shift(sunday, -1) == friday
    saturday = new_york("2026-03-07 12:00")
    assert minutes.shift(saturday, -1) == friday
    assert minutes.shift(saturday, 1) == sunday
    assert minutes.count(friday + 60_000, saturday) == 0


def test_a_bar_closes_before_the_week_end_and_the_next_one_after_its_first_minute() -> None:
    friday, sunday = new_york("2026-03-06 16:54"), new_york("2026-03-08 17:00")
    minutes = fx("1m")
    assert minutes.next_close(friday + 1) == friday + 60_000
    assert minutes.next_close(friday + 60_000) == sunday + 60_000
    assert minutes.next_close(new_york("2026-03-07 12:00")) == sunday + 60_000


def test_days_open_at_five_in_new_york_and_a_week_has_five() -> None:
    days = fx("1d").opens(new_york("2026-03-02 17:00"), new_york("2026-03-13 16:00")).tolist()
    wanted = ["02", "03", "04", "05", "08", "09", "10", "11", "12"]
    assert days == [new_york(f"2026-03-{day} 17:00") for day in wanted]


def test_four_hours_are_counted_from_the_start_of_the_trading_day() -> None:
    bars = fx("4h").opens(new_york("2026-10-30 09:00"), new_york("2026-11-02 02:00")).tolist()
    wanted = ["10-30 09:00", "10-30 13:00", "11-01 17:00", "11-01 21:00", "11-02 01:00"]
    assert bars == [new_york(f"2026-{each}") for each in wanted]


def test_weeks_and_months_are_whole_trading_days() -> None:
    assert fx("1w").floor(new_york("2026-03-12 10:00")) == new_york("2026-03-08 17:00")
    assert fx("1w").end(new_york("2026-03-12 10:00")) == new_york("2026-03-15 17:00")
    assert fx("1M").floor(new_york("2026-03-12 10:00")) == new_york("2026-02-28 17:00")
    with pytest.raises(ValueError, match="whole days"):
        fx("36h")


def test_closed_time_does_not_break_a_run_of_bars() -> None:
    minutes = fx("1m")
    friday, sunday = new_york("2026-03-06 16:50"), new_york("2026-03-08 17:05")
    times = minutes.opens(friday, sunday)
    assert unbroken(times, minutes) == (Interval(friday, sunday),)
    assert len(unbroken(times[[0, 1, 3, 4, 5, 7]], minutes)) == 3


def test_an_exchange_without_sessions_never_closes() -> None:
    assert calendar_of("binance", "BTC/USDT") is ALWAYS_OPEN
    assert Series.of("binance", "BTC/USDT", "1m").timeframe.is_uniform
    assert ALWAYS_OPEN.closed(Interval(0, 10)) == ()
    assert ALWAYS_OPEN.next_open(7) == 7
    assert ALWAYS_OPEN.next_close(7) is None


def test_a_series_keeps_the_calendar_of_its_exchange() -> None:
    assert Series.of("fxcm", "EUR/USD", "1h").timeframe.calendar_id == FX.identity


def test_overrides_of_the_settings_hold_for_every_series_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_overrides", {})
    file = tmp_path / "collector.yaml"
    early_close = "{start: 2026-12-23 13:00, end: 2026-12-23 17:00}"
    file.write_text(f"fxcm: {{calendar_overrides: [{early_close}]}}\n")
    before = Timeframe.parse("1m").at("fxcm", "EUR/USD")
    noon = epoch_ms("2026-12-23T17:59:00Z")  # 12:59 in New York
    assert before.next_open(noon) == noon + 60_000
    load(file)
    after = Timeframe.parse("1m").at("fxcm", "EUR/USD")
    assert after.next_open(noon) == epoch_ms("2026-12-23T22:00:00Z")
    assert after.calendar_id != before.calendar_id
    assert Timeframe.parse("1m").at("binance").slots is None
    # The settings that are loaded last count.
    file.write_text("fxcm: {user: somebody}\n")
    load(file)
    assert Timeframe.parse("1m").at("fxcm", "EUR/USD").calendar_id == before.calendar_id
