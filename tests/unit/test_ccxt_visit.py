"""A visit ends with nothing running and nothing kept."""

from __future__ import annotations

from collector.exchanges.ccxt.visit import Errand, Grant, Reply, Visit, current_errand
from collector.exchanges.port import Call

CALL = Call("binance", "klines", 2)


async def granted() -> Grant:
    return Grant(at=1.0, until=2.0)


def test_one_request_leaves_and_only_when_it_was_announced() -> None:
    errand = Errand(CALL, granted)
    assert not errand.leave(), "it never passed the throttle"
    errand = Errand(CALL, granted)
    errand.announce()
    assert errand.leave()
    assert not errand.leave()


async def test_an_answer_counts_from_its_token() -> None:
    errand = Errand(CALL, granted)
    await errand.buy()
    assert errand.answer(3.5, "good").seconds == 2.5
    assert errand.answer(3.5, "good").outcome == "none"
    errand.reply = Reply(200, {"date": "now"})
    assert errand.answer(3.5, "good").outcome == "2xx"
    assert errand.answer(3.5, "good").headers == {"date": "now"}


async def test_a_visit_lets_go_of_what_it_heard() -> None:
    visit = Visit()
    first, second = Errand(CALL, granted), Errand(CALL, granted)
    for errand in (first, second):
        with visit.running(errand):
            assert current_errand() is errand
            errand.reply, errand.json = Reply(200, {}, "[]"), []
    assert current_errand() is None
    assert first.json is None
    assert visit.last is second
    assert second.json == []
    await visit.end()
    visit.forget()
    assert second.json is None
    assert second.reply is None
