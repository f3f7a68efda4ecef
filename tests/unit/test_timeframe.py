"""Bar lengths."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.market.series import Series
from collector.market.timeframe import Timeframe


@pytest.mark.parametrize(("name", "ms"), [("1m", 60_000), ("4h", 14_400_000), ("1w", 604_800_000)])
def test_lengths(name: str, ms: int) -> None:
    assert Timeframe.parse(name).ms == ms


def test_the_fxcm_spelling_means_the_same() -> None:
    assert Timeframe.parse("m1") == Timeframe.parse("1m")
    assert Timeframe.parse("H4") == Timeframe.parse("4h")


@pytest.mark.parametrize("name", ["", "m", "0m", "1y", "M1", "1mo", "-1m", "1m ", "1.5h", "99999m"])
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a timeframe"):
        Timeframe.parse(name)


@given(
    ts=st.integers(0, 4_000_000_000_000),
    name=st.sampled_from(["1m", "7m", "1h", "1d", "1w", "1M", "3M"]),
)
def test_every_moment_lies_in_exactly_one_bar(ts: int, name: str) -> None:
    frame = Timeframe.parse(name)
    assert frame.floor(ts) <= ts < frame.next_open(ts)
    assert frame.aligned(frame.floor(ts))
    assert frame.ceil(ts) == (ts if frame.aligned(ts) else frame.next_open(ts))


@given(
    ts=st.integers(0, 4_000_000_000_000),
    bars=st.integers(-50, 50),
    name=st.sampled_from(["1m", "1w", "1M", "3M"]),
)
def test_counting_undoes_shifting(ts: int, bars: int, name: str) -> None:
    frame = Timeframe.parse(name)
    opens, shifted = frame.floor(ts), frame.shift(ts, bars)
    assert frame.aligned(shifted)
    assert frame.count(opens, shifted) == bars
    if bars > 0:
        times = frame.opens(opens, shifted)
        assert len(times) == bars
        assert times.tolist()[:2] == [opens, frame.next_open(opens)][:bars]
        assert frame.ends(times).tolist()[-1] == shifted
        assert frame.floors(times + 1).tolist() == times.tolist()


@pytest.mark.parametrize("year", [1970, 1999, 2000, 2023, 2024, 2100])
def test_months_are_calendar_months(year: int) -> None:
    month = Timeframe.parse("1M")
    firsts = [moment(year, number) for number in range(1, 13)] + [moment(year + 1, 1)]
    assert month.opens(firsts[0], firsts[-1]).tolist() == firsts[:-1]
    assert month.ends(month.opens(firsts[0], firsts[-1])).tolist() == firsts[1:]
    assert [month.floor(first - 1) for first in firsts[1:]] == firsts[:-1]
    assert [month.next_open(first) for first in firsts[:-1]] == firsts[1:]


def test_quarters_begin_in_january() -> None:
    assert Timeframe.parse("3M").floor(moment(2025, 6)) == moment(2025, 4)


def test_a_month_is_never_shorter_than_its_length_says() -> None:
    month = Timeframe.parse("1M")
    opens = month.opens(moment(2000, 1), moment(2100, 1))
    assert (month.ends(opens) - opens).min() == month.ms


def test_a_month_is_longer_than_a_minute_and_another_file() -> None:
    month, minute = Timeframe.parse("1M"), Timeframe.parse("1m")
    assert month > minute
    assert (month.file_name, minute.file_name) == ("1mo", "1m")
    assert month.file_name.lower() != minute.file_name.lower()
    for frame in (month, minute, Timeframe.parse("12M"), Timeframe.parse("1w")):
        assert Timeframe.of_file_name(frame.file_name) == frame
    for name in ("1M", "m1", "", "1mo2"):
        with pytest.raises(ValueError, match="not the name"):
            Timeframe.of_file_name(name)


def moment(year: int, month: int) -> int:
    return round(datetime(year, month, 1, tzinfo=UTC).timestamp() * 1000)


def test_weeks_begin_on_monday() -> None:
    monday = 1_704_067_200_000  # 2024-01-01
    assert Timeframe.parse("1w").floor(monday + 3 * 86_400_000) == monday
    assert Series.of("binance", "BTC/USDT", "1w").timeframe.aligned(monday)


@pytest.mark.parametrize("exchange_id", ["kucoin", "kucoinfutures", "hyperliquid"])
def test_at_some_exchanges_weeks_begin_on_thursday(exchange_id: str) -> None:
    thursday = 1_642_032_000_000  # 2022-01-13, as KuCoin sent it
    week = Series.of(exchange_id, "BTC/USDT", "1w").timeframe
    assert week.floor(thursday + 6 * 86_400_000) == thursday
    assert week == Timeframe.parse("1w"), "it is the same timeframe by name"
    assert Series.of(exchange_id, "BTC/USDT", "1d").timeframe.aligned(thursday + 86_400_000)
