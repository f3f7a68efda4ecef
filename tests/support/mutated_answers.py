"""Answers gone wrong, in a venue's format: each ends as an error, in quarantine, or as the truth.

What a worker makes of each is looked at, after all its questions, each of which gets the same
answer: which bars it would store, which rows it would put in quarantine and which slots it would
settle as empty. A bar that the venue never sent, and a slot called empty that has a bar, are the
two things that must not happen.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.clock import ManualClock
from collector.errors import NeedsOperator, RetryLater
from collector.exchanges.quirks.lookup import WRITTEN_DOWN
from collector.market.answer import Question
from collector.market.series import Series
from collector.mongo.server_clock import ServerClock
from tests.support.answer_mutations import MUTATIONS, Mutated, Page, rows_path
from tests.support.ccxt_venue import FIRST_BAR_MS, MINUTE, opened, says
from tests.support.dialects.dialect import Dialect, bar_at, dated
from workers.exchange_clock import ExchangeClock
from workers.handlers.asking import Inquiry, request

if TYPE_CHECKING:
    from collector.pipeline.evidence import Verdict

STEP = MINUTE.ms
BARS = 12
NOW_MS = FIRST_BAR_MS + 40 * STEP + 17_000
SEED = 20250101
_TYPE = {"Content-Type": "application/json"}


def answers(dialect: Dialect, count: int) -> list[Mutated]:
    """`count` of them, every kind of change in turn."""
    rng = random.Random(f"{SEED} {dialect.exchange_id}")
    body = json.loads(json.dumps(dialect.page([bar_at(ts) for ts in opens()])))
    page = Page(body, rows_path(body))
    return [MUTATIONS[turn % len(MUTATIONS)](rng, page) for turn in range(count)]


def opens() -> list[int]:
    return [FIRST_BAR_MS + at * STEP for at in range(BARS)]


async def ends_of(dialect: Dialect, count: int) -> Counter[str]:
    """How this many mutated answers of a venue end. Fails at the first that ends in a lie."""
    ends: Counter[str] = Counter()
    clock = ManualClock(NOW_MS)
    async with opened(dialect.exchange_id, clock=clock) as desk:
        server_clock = ServerClock(clock)
        server_clock.anchor_ms(NOW_MS, clock.monotonic())
        venue: Any = SimpleNamespace(
            exchange=desk.exchange,
            server_clock=server_clock,
            clock=ExchangeClock(server_clock, clock),
            quirks=desk.exchange.quirks,
        )
        series = Series.of(dialect.exchange_id, dialect.symbol, "1m")
        question = Question.of(MINUTE, FIRST_BAR_MS, BARS)
        run: Any = SimpleNamespace(progress={})
        for mutated in answers(dialect, count):
            desk.venue.always = says(
                mutated.status, text=mutated.text, headers={**dated(NOW_MS), **_TYPE}
            )
            inquiry = Inquiry(run, venue, series, fetch=partial(request, venue, series))
            known = inquiry.known(question.interval)
            try:
                verdict, _ = await inquiry.ask(question, known)
            except (RetryLater, NeedsOperator) as error:
                ends[type(error).__name__] += 1
                continue
            assert_true(verdict, dialect, mutated)
            ends["rejected" if verdict.refused else "the truth"] += 1
        desk.assert_one_token_a_request()
    return ends


def assert_true(verdict: Verdict, dialect: Dialect, mutated: Mutated) -> None:
    batch = verdict.bars
    stored = {int(ts): at for at, ts in enumerate(batch.ts)}
    for ts, at in stored.items():
        assert ts in opens(), mutated
        _, o, h, low, c, v, t = bar_at(ts)
        kept = [float(column[at]) for column in (batch.o, batch.h, batch.l, batch.c, batch.v)]
        assert kept == [o, h, low, c, v], mutated
        # A turnover may be lost, and then is null.
        turnover = t if WRITTEN_DOWN[dialect.exchange_id].turnover else np.nan
        assert np.isnan(batch.t[at]) or batch.t[at] == turnover, mutated
    for ts in opens():
        assert not any(each.from_ms <= ts < each.to_ms for each in verdict.empty), mutated
