"""Which range of time an answer with trades covers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from collector.clock import ManualClock
from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.empty import EmptyAnswers
from collector.exchanges.ccxt.trade_questions import TradeQuestions
from collector.exchanges.ccxt.trades import LIVE_EDGE_MS, trades_answer
from collector.exchanges.ccxt.visit import Errand, Reply, Visit
from collector.exchanges.port import Call, TradePage
from collector.exchanges.quirks.binance import BINANCE

HOUR = 3_600_000
NOW = 1_735_732_800_000
SINCE = NOW - 10 * HOUR
EDGE = NOW - LIVE_EDGE_MS
PAGED = replace(BINANCE, trades_page=3)
NEWEST_ONLY = replace(BINANCE, trades_page=None)


async def granted() -> float:
    return 0.0


def parsed(ts: Any, **fields: Any) -> dict[str, Any]:
    return {"id": str(ts), "timestamp": ts, "price": 2.0, "amount": 1.0, "side": "buy", **fields}


def page(*trades: dict[str, Any], quirks: Any = PAGED, json: Any = None, raw: int = 0) -> TradePage:
    visit = Visit()
    rows = list(trades) + [None] * raw
    errand = Errand(Call("binance", "aggTrades"), granted, reply=Reply(200, {}))
    errand.json = rows if json is None else json
    visit.last, visit.raw_rows = errand, rows
    question = TradeQuestions(quirks, ManualClock(NOW)).about("BTC/USDT", SINCE)
    return question.read(
        trades_answer(list(trades), visit, EmptyAnswers({}), "binance", now_ms=NOW)
    )


def stretch(found: TradePage) -> tuple[int, int, bool]:
    return found.from_ms, found.to_ms, found.is_latest


def test_an_answer_that_is_not_full_reaches_the_present() -> None:
    assert stretch(page(parsed(SINCE + 5))) == (SINCE, EDGE, True)
    assert stretch(page()) == (SINCE, EDGE, True)


def test_a_full_answer_settles_what_lies_before_its_last_trade() -> None:
    found = page(parsed(SINCE + 9), parsed(SINCE + 5), parsed(SINCE + 7))
    assert stretch(found) == (SINCE, SINCE + 9, False)
    assert [trade.ts - SINCE for trade in found.trades] == [5, 7, 9]


def test_rows_that_ccxt_dropped_count_for_a_full_answer() -> None:
    assert stretch(page(parsed(SINCE + 5), raw=2)) == (SINCE, SINCE + 5, False)


def test_a_full_answer_of_one_moment_still_leads_on() -> None:
    found = page(*[parsed(SINCE, id=str(n)) for n in range(3)])
    assert stretch(found) == (SINCE, SINCE + 1, False)


def test_what_is_too_young_stays_open() -> None:
    found = page(*[parsed(NOW - n) for n in (3, 2, 1)])
    assert stretch(found) == (SINCE, EDGE, True)
    assert len(found.trades) == 3


def test_newest_trades_alone_speak_from_their_first_one_on() -> None:
    late = page(parsed(SINCE + 7), parsed(SINCE + 9), quirks=NEWEST_ONLY)
    assert stretch(late) == (SINCE + 7, EDGE, True)
    reaching = page(parsed(SINCE - 7), parsed(SINCE + 9), quirks=NEWEST_ONLY)
    assert stretch(reaching) == (SINCE, EDGE, True)
    assert [trade.ts for trade in reaching.trades] == [SINCE + 9]


def test_a_trade_without_an_id_is_named_by_what_it_is() -> None:
    (found,) = page(parsed(SINCE, id=None)).trades
    assert found.id == f"{SINCE}-2.0-1.0-buy"


@pytest.mark.parametrize(
    "fields",
    [
        {"timestamp": None},
        {"timestamp": 5},
        {"timestamp": NOW + HOUR},
        {"price": None},
        {"price": float("nan")},
        {"amount": None},
        {"amount": -1.0},
    ],
)
def test_one_broken_trade_breaks_the_answer(fields: dict[str, Any]) -> None:
    with pytest.raises(ExchangeUnavailable):
        page(parsed(SINCE), parsed(SINCE + 1, **fields))


def test_nothing_is_believed_of_an_answer_without_a_list() -> None:
    with pytest.raises(ExchangeUnavailable, match="no empty list"):
        page(json={"msg": "busy"})
