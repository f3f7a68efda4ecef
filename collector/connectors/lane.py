"""The queue for one exchange's tokens in one process.

A lane has at most one command under way; requests that arrive meanwhile go with the next. That
makes it fast. Callers that may use the reserve go first, then the others by the priority of their
jobs (collector/priority.py), so that the many requests of backfills do not hold up new bars.
Between two commands the lane waits until the first waiting request may have its token.

Requests that were late (way.py) are charged with the lane's next command, or with one of its own
when no request waits.
"""

from __future__ import annotations

import asyncio
import math
import random
import uuid
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from pymongo import ReturnDocument

from collector import metrics
from collector.connectors.clock_correction import correction, date_forward
from collector.connectors.connector import Connector
from collector.connectors.grant import Ask, answer_projection, grant_filter, grant_pipeline
from collector.connectors.grant_answer import GrantAnswer
from collector.connectors.grant_window import Want
from collector.connectors.pace import Pace
from collector.connectors.starving import Starving
from collector.connectors.token import Token
from collector.connectors.way import WITHOUT_COUNTS, Way
from collector.errors import CostNeverFits, NotFound, RateLimited, RetryLater
from collector.mongo.remembered_time import SET_BACK_MS
from collector.priority import in_order

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.connectors.circuit.shared import SharedCircuit
    from collector.connectors.connector import Denial
    from collector.connectors.window import Window
    from collector.mongo.client import Collection
    from collector.mongo.server_clock import ServerClock

MAX_BATCH = 256
MIN_BATCH = 4
BUDGET_REASONS = frozenset({"window", "minute_quota", "hour_quota"})
"""Denials that end when tokens come back, not by a decision of an operator or an exchange."""
LIMIT_READS = 5
LATE_TRIES = 5


@dataclass(slots=True, eq=False)
class _Waiter:
    want: Want
    patient_until: float
    answer: asyncio.Future[Token]
    urgency: int = 0
    """The priority of the caller's job; the lower one goes first."""
    ask_at: float = 0.0
    """The earliest time at which a token may be available."""
    late: int = 0
    """How many commands for it the server has carried out too late."""


class Lane:
    """Tokens of one exchange for one process."""

    def __init__(
        self,
        collection: Collection,
        exchange_id: str,
        clock: Clock,
        server_clock: ServerClock,
        circuit: SharedCircuit,
    ) -> None:
        self.exchange_id = exchange_id
        self.exhausted_until = 0.0
        """Monotonic time before which the budget is spent, as far as this process knows."""
        self.counted: dict[tuple[str, int], int] = {}
        """What we had counted in each window at our last answer."""
        self.way = Way(collection, exchange_id, clock, server_clock, self._wake_up)
        self._collection = collection
        self._clock = clock
        self._server_clock = server_clock
        self._circuit = circuit
        self._starving = Starving()
        self._pace = Pace()
        self._numbers = count()
        self._batch = MAX_BATCH
        self._waiting: list[_Waiter] = []
        self._arrived = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._unspent_probe: str | None = None
        self._denied_since_grant = 0
        self._turn = 0
        self._connector: Connector | None = None
        self._offset_ms: float | None
        """How far the server's clock was ahead of ours before our last command."""
        self._seen_ms: int | None
        """What it showed when that was answered."""
        self._offset_ms, self._seen_ms = server_clock.first_reading

    async def acquire(self, want: Want, patience: float, urgency: int = 0) -> Token:
        """A token, at once or within `patience` seconds. Raises RateLimited, CostNeverFits."""
        now, answer = self._clock.monotonic(), asyncio.get_running_loop().create_future()
        waiter = _Waiter(want, now + patience, answer, urgency)
        if not self._goes_first(waiter) and self.exhausted_until <= waiter.patient_until:
            # It can wait for the same tokens as the others.
            waiter.ask_at = self.exhausted_until
        self._waiting.append(waiter)
        self._wake_up()
        return await waiter.answer

    def ask_for_fewer(self, than: int) -> None:
        """More tokens came than this process could spend in time: half as many from now on."""
        self._batch = max(MIN_BATCH, min(self._batch, than // 2))

    def wasted(self, token: Token) -> None:
        """Its request did not leave. A probe is still ours to send, with the next token."""
        self.way.wasted(token)
        self._unspent_probe = token.probe or self._unspent_probe

    async def close(self) -> None:
        await self.way.close()
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        for waiter in self._waiting:
            waiter.answer.cancel()

    # -- serving ------------------------------------------------------------------------------

    def _wake_up(self) -> None:
        self._arrived.set()
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve(), name=f"tokens:{self.exchange_id}")

    async def _serve(self) -> None:
        """Runs until no request waits and nothing is to be charged."""
        while True:
            self._arrived.clear()
            self._waiting = [each for each in self._waiting if not each.answer.done()]
            batch = self._next_batch()
            if batch or any(self.way.flying.charges):
                await self._ask_for(batch)
            elif self._waiting:
                await self._pause()
            else:
                return

    def _next_batch(self) -> list[_Waiter]:
        """Requests for the next command: who goes first, then starving ones, then by urgency."""
        now = self._clock.monotonic()
        first: list[_Waiter] = []
        starving: list[_Waiter] = []
        others: list[_Waiter] = []
        for waiter in self._waiting:
            if waiter.ask_at > now:
                continue
            if self._goes_first(waiter):
                first.append(waiter)
            elif self._starving.save_ms(waiter.want.weight, now):
                starving.append(waiter)
            else:
                others.append(waiter)
        if len({waiter.urgency for waiter in others}) > 1:
            urgent = sorted(others, key=lambda waiter: waiter.urgency)
            others = in_order(urgent, others, self._turn)
        most = self._pace.most(now)
        most = self._batch if most is None else min(most, self._batch)
        return [*first, *starving, *others][:most]

    def _goes_first(self, waiter: _Waiter) -> bool:
        connector = self._connector
        return (waiter.want if connector is None else connector.ranked(waiter.want)).priority

    async def _pause(self) -> None:
        """Waits until the first of them may have its token, or another request arrives."""
        first = max(min(waiter.ask_at for waiter in self._waiting), self._pace.next_at)
        # A little spread keeps many processes from sending in the same millisecond.
        seconds = first - self._clock.monotonic() + 0.001 + random.random() * 0.004
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._arrived.wait()
        except TimeoutError:
            return

    async def _ask_for(self, batch: list[_Waiter]) -> None:
        try:
            await self._ask(batch)
        except Exception as error:  # noqa: BLE001 - every waiting caller must receive it
            for waiter in batch:
                _fail(waiter, error)
            if not batch:
                # These are charges that no request waits for: an outage must not be hammered.
                await asyncio.sleep(1.0)

    async def _ask(self, batch: list[_Waiter]) -> None:
        answer = await self._answer(batch)
        if answer.now is not None:
            self._server_clock.anchor(answer.now, answer.sent)
        if answer.came_late:
            self._ask_again(batch)
            return
        self.counted = answer.counted
        self.way.flying.lateness = answer.lateness
        self._seen_ms = answer.now_ms
        self._hand_out(batch[: answer.granted], answer)
        if answer.clock_ms > answer.now_ms + SET_BACK_MS:
            # The server's clock was set back: waiting requests repeat once that is corrected.
            await self._collection.update_one(*correction(self.exchange_id))
            return
        self._turn_away(batch[answer.granted : answer.wanted], answer)

    async def _date_forward(self, connector: Connector) -> None:
        """When the clock was set ahead, lets all that counts last as long as without the step.

        Before every command, because any part of this process may have noticed it. A slow answer
        proves no step: our idea of the server's clock moves only when an answer contradicts it.
        """
        if not self._server_clock.is_known:
            return
        offset_ms, before_ms = self._server_clock.offset_ms, self._offset_ms
        if before_ms is not None and self._seen_ms is not None:
            gained_ms = math.ceil(offset_ms - before_ms)
            if gained_ms > min(window.margin_ms for window in connector.all_windows):
                forward = date_forward(self.exchange_id, gained_ms, since_ms=self._seen_ms)
                await self._collection.update_one(*forward)
        self._offset_ms = offset_ms

    def _ask_again(self, batch: list[_Waiter]) -> None:
        """The command was late: by a slow server, or because its clock was set ahead."""
        self.ask_for_fewer(len(batch))
        for waiter in batch:
            waiter.late += 1
            if waiter.late >= LATE_TRIES:
                metrics.TOKENS_DENIED.labels(self.exchange_id, "stale").inc()
                assert self._connector is not None
                life_ms = self._connector.token_life_ms
                _fail(waiter, RateLimited(self.exchange_id, life_ms, "stale"))

    def _hand_out(self, lucky: list[_Waiter], answer: GrantAnswer) -> None:
        if not lucky:
            return
        self._batch = min(MAX_BATCH, self._batch + 1)
        self._denied_since_grant = 0
        probe = self._circuit.note_grant(answer.document.get("circuit") or {}, answer.nonce)
        self._unspent_probe = probe if lucky[0].answer.done() else None
        self._pace.took(len(lucky), self._clock.monotonic())
        life_ms, resets_at = answer.connector.token_life_ms, answer.resets_at
        self._turn += sum(not self._goes_first(waiter) for waiter in lucky)
        for waiter in lucky:
            self._starving.granted(waiter.want.weight)
            if not waiter.answer.done():
                token = Token(
                    next(self._numbers),
                    answer.sent,
                    answer.now_ms,
                    life_ms,
                    resets_at,
                    answer.granted,
                    probe,
                )
                waiter.answer.set_result(token)

    async def _answer(self, batch: list[_Waiter]) -> GrantAnswer:
        """One command for all of them, repeated only when the limits have changed."""
        for _ in range(LIMIT_READS):
            connector = self._connector or await self._read_limits()
            await self._date_forward(connector)
            answer = await self._answer_under(connector, batch)
            if answer is not None:
                return answer
            self._connector = None
        raise RetryLater(f"{self.exchange_id}: its limits keep changing")

    async def _answer_under(self, connector: Connector, batch: list[_Waiter]) -> GrantAnswer | None:
        """The answer of one command; None when the connector has other limits by now."""
        nonce, sent = uuid.uuid4().hex, self._clock.monotonic()
        wants = connector.asked_together([waiter.want for waiter in batch])
        charges, charged = self.way.flying.take_charges()
        ask = Ask(
            wants,
            nonce,
            self._denied_since_grant,
            self._unspent_probe,
            charges,
            charged,
            self._latest_ms(connector),
            self._starving.save_ms(wants[0].weight, sent) if wants else 0,
        )
        document = answer = None
        try:
            document = await self._collection.find_one_and_update(
                grant_filter(connector),
                grant_pipeline(connector, ask),
                projection=answer_projection(nonce, len(wants)),
                return_document=ReturnDocument.AFTER,
            )
            if document is not None:
                answer = GrantAnswer(connector, document, nonce, sent, len(wants), ask.latest_ms)
        finally:
            if answer is None or answer.came_late:
                self.way.flying.give_back(charges, charged)
        if answer is None or answer.came_late:
            return answer
        metrics.TOKENS_CHARGED.labels(self.exchange_id).inc(charged)
        self.way.token_took(self._clock.monotonic() - sent)
        return answer

    def _latest_ms(self, connector: Connector) -> int | None:
        """A token that is granted after this, by the server's clock, is too old when it comes."""
        if not self._server_clock.is_known:
            return None
        return self._server_clock.now_ms() + connector.token_life_ms

    async def _read_limits(self) -> Connector:
        document = await self._collection.find_one(
            {"exchange_id": self.exchange_id}, projection=WITHOUT_COUNTS
        )
        if document is None:
            self.way.flying.take_charges()  # There is nothing to charge any more.
            raise NotFound(f"there is no connector {self.exchange_id!r}")
        connector = self._connector = Connector.from_document(document)
        self.way.flying.know(connector.all_windows, connector.lateness)
        return connector

    def _turn_away(self, unlucky: list[_Waiter], answer: GrantAnswer) -> None:
        """Reports the reason to requests without a token; those that can wait stay."""
        self.exhausted_until = 0.0
        if not unlucky:
            return
        connector, now_ms, monotonic = answer.state, answer.decided_ms, self._clock.monotonic()
        for waiter in unlucky:
            want = waiter.want
            window = connector.never_fits(want.weight)
            if window is not None:
                _fail(waiter, _cost_never_fits(self.exchange_id, want, window))
                continue
            denial = connector.denial(want, now_ms)
            wait_ms = max(1, denial.retry_at_ms - now_ms)
            windows = connector.all_windows
            self._starving.denied(want.weight, denial.reason, windows, monotonic)
            self._pace.spent(denial.reason, windows, monotonic)
            waiter.ask_at = monotonic + wait_ms / 1000
            if waiter.ask_at > waiter.patient_until:
                self._deny(waiter, denial, wait_ms)
        # The budget is spent when even the lightest request would have to wait for it.
        lightest = connector.denial(Want(1, priority=connector.limits.spacing is not None), now_ms)
        if lightest.reason in BUDGET_REASONS and lightest.retry_at_ms > now_ms:
            self.exhausted_until = monotonic + (lightest.retry_at_ms - now_ms) / 1000

    def _deny(self, waiter: _Waiter, denial: Denial, wait_ms: int) -> None:
        self._denied_since_grant += 1
        metrics.TOKENS_DENIED.labels(self.exchange_id, denial.reason).inc()
        if denial.reason in BUDGET_REASONS:
            metrics.RATE_LIMIT_SATURATED.labels(self.exchange_id).inc()
        _fail(
            waiter,
            RateLimited(self.exchange_id, wait_ms, denial.reason, retry_at_ms=denial.retry_at_ms),
        )


def _fail(waiter: _Waiter, error: Exception) -> None:
    if not waiter.answer.done():
        waiter.answer.set_exception(error)


def _cost_never_fits(exchange_id: str, want: Want, window: Window) -> CostNeverFits:
    return CostNeverFits(
        f"{exchange_id}: a request of weight {want.weight} can never pass a window of "
        f"{window.limit} {window.unit} per {window.period_ms} ms"
    )
