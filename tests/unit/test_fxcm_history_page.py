"""FXCM's history as pages of bars."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from collector.errors import BadRequest
from collector.exchanges.fxcm.bars import TIMEFRAMES, BidAskBars
from collector.exchanges.fxcm.history_page import SDK_NAMES, HistoryWindow
from collector.market.answer import Question
from collector.market.calendar.fx import FX
from collector.market.timeframe import Timeframe
from tests.support.fxcm.fxcorepy import truth

MINUTE = 60_000
DAY = 86_400_000
MIN = Timeframe.parse("1m").by(FX)


def ms(*parts: int) -> int:
    return round(datetime(*parts, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc,arg-type]


def window(name: str, since_ms: int, limit: int) -> HistoryWindow:
    return HistoryWindow(Timeframe.parse(name).by(FX), since_ms, limit)


def history(times: list[int], *, bid: float | None = 1.0, ask: float | None = 2.0) -> BidAskBars:
    columns: dict[str, Any] = {"Date": times, "Volume": [7] * len(times)}
    for name in ("Open", "High", "Low", "Close"):
        columns[f"Bid{name}"] = [bid] * len(times)
        columns[f"Ask{name}"] = [ask] * len(times)
    return BidAskBars.of(columns)


def test_every_timeframe_of_the_sdk_has_a_name_of_ours() -> None:
    assert sorted(SDK_NAMES.values()) == sorted(TIMEFRAMES)
    assert (SDK_NAMES["1m"], SDK_NAMES["4h"], SDK_NAMES["1w"], SDK_NAMES["1M"]) == (
        *("m1", "H4"),
        *("W1", "M1"),
    )
    for name in SDK_NAMES:
        assert Timeframe.parse(name).name == name


def test_a_timeframe_that_is_not_served_is_refused_by_name() -> None:
    with pytest.raises(BadRequest, match="serves no 45m"):
        _ = window("45m", 0, 1).sdk_name


def test_bid_is_the_bar_and_ask_stands_beside_it() -> None:
    noon = ms(2024, 1, 17, 17)
    answer = window("1m", noon, 10).answer(history([noon, noon + MINUTE]), FX)
    assert answer.rows[0] == (noon, 1.0, 1.0, 1.0, 1.0, 7.0, None)
    assert answer.rows.batch.extra["ask_c"].tolist() == [2.0, 2.0]
    assert (answer.question, answer.full) == (Question.of(MIN, noon, 10), False)


def test_a_window_ends_before_the_bar_behind_it() -> None:
    noon = ms(2024, 1, 17, 17)
    asked = window("1m", noon, 2)
    assert (asked.from_ms, asked.to_ms) == (noon, noon + 2 * MINUTE - 1000)
    answer = asked.answer(history([noon, noon + MINUTE, noon + 2 * MINUTE]), FX)
    assert (answer.question.to_ms, answer.full) == (noon + 2 * MINUTE, True)


def test_a_window_over_a_weekend_counts_bars_and_not_minutes() -> None:
    friday = ms(2024, 1, 19, 21, 50)  # 16:50 in New York; five minutes are left
    asked = window("1m", friday, 10)
    assert asked.end_ms == ms(2024, 1, 21, 22, 5)


def test_bars_out_of_order_and_twice_are_put_in_order() -> None:
    noon = ms(2024, 1, 17, 17)
    answer = window("1m", noon, 10).answer(history([noon + MINUTE, noon, noon]), FX)
    assert answer.rows.batch.ts.tolist() == [noon, noon, noon + MINUTE]


def test_a_bar_without_a_price_is_kept_apart_for_the_pipeline_to_refuse() -> None:
    noon = ms(2024, 1, 17, 17)
    answer = window("1m", noon, 10).answer(history([noon], bid=None), FX)
    assert (len(answer.rows.batch), len(answer.rows.odd)) == (0, 1)
    asks = window("1m", noon, 10).answer(history([noon], ask=None), FX).rows.batch.column("ask_o")
    assert asks[0] != asks[0]  # unknown


def test_no_data_is_an_empty_page() -> None:
    answer = window("1m", 0, 10).nothing()
    assert (len(answer.rows), answer.full) == (0, False)


@pytest.mark.parametrize("name", sorted(SDK_NAMES))
def test_every_bar_opens_where_the_calendar_expects_it(name: str) -> None:
    # Four weeks around a change of clocks; long bars over months.
    frame = Timeframe.parse(name).by(FX)
    length = 70 if frame.ms > DAY else 9
    start = frame.ceil(ms(2024, 3, 5))
    end = start + length * DAY
    asked = HistoryWindow(frame, start, frame.count(start, frame.floor(end)))
    bars = truth.bars("EUR/USD", SDK_NAMES[name], asked.from_ms, asked.to_ms, ms(2025, 1, 1))
    dated = [round((bar.date - datetime(1970, 1, 1)).total_seconds() * 1000) for bar in bars]
    answer = asked.answer(history(dated), FX)
    # A long bar may be dated into the closed time before it, so more is requested than is asked.
    ts = answer.rows.batch.ts
    asked_for = ts[(ts >= start) & (ts < asked.end_ms)]
    assert asked_for.tolist() == frame.opens(start, asked.end_ms).tolist()
    assert answer.full


def test_a_date_that_is_off_in_open_time_is_left_to_be_refused() -> None:
    start = ms(2024, 1, 15, 22)
    off = start + 3_600_000
    answer = window("4h", start, 10).answer(history([off]), FX)
    assert answer.rows.batch.ts.tolist() == [off]
