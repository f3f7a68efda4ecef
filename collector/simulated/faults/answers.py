"""Faults of a whole answer: late, refused, broken, or never there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import orjson
from pydantic import Field

from collector.simulated.faults.record import Amount, Count, RequestFault
from collector.simulated.request import PendingAnswer, refusal

if TYPE_CHECKING:
    from collector.simulated.faults.record import Strike

Status = Annotated[int, Field(ge=400, le=599)]

_PAGE = b"<!DOCTYPE html><html><body><h1>Service is being upgraded</h1></body></html>"
_HTML = "text/html"


@dataclass(frozen=True, kw_only=True)
class AnswerFault(RequestFault, ABC):
    """Changes an answer before it leaves."""

    @abstractmethod
    def change(self, outcome: PendingAnswer, turn: Strike) -> PendingAnswer: ...


@dataclass(frozen=True, kw_only=True)
class Latency(AnswerFault):
    """Every answer takes `ms` longer, and up to `jitter_ms` more."""

    kind: Literal["latency"] = "latency"
    ms: Amount = 0.0
    jitter_ms: Amount = 0.0

    def change(self, outcome: PendingAnswer, turn: Strike) -> PendingAnswer:
        late = self.ms + self.jitter_ms * turn.roll
        return replace(outcome, delay_ms=outcome.delay_ms + late)


@dataclass(frozen=True, kw_only=True)
class TooManyRequests(AnswerFault):
    """429, whatever the limit. `retry_after_s` null leaves the header out."""

    kind: Literal["too_many_requests"] = "too_many_requests"
    retry_after_s: int | None = 1

    def change(self, _outcome: PendingAnswer, _turn: Strike) -> PendingAnswer:
        return refusal(429, -1003, "Too many requests.", self.retry_after_s)


@dataclass(frozen=True, kw_only=True)
class Ban(AnswerFault):
    """418: from here on every request is refused until the ban is over, and starts it anew."""

    kind: Literal["ban"] = "ban"
    retry_after_s: Count = 120

    def change(self, _outcome: PendingAnswer, turn: Strike) -> PendingAnswer:
        until = turn.ask.now_ms + self.retry_after_s * 1000
        return replace(banned(until, self.retry_after_s), ban_seconds=self.retry_after_s)


@dataclass(frozen=True, kw_only=True)
class ServerError(AnswerFault):
    """A 5xx, or any other status, with Binance's own message."""

    kind: Literal["server_error"] = "server_error"
    status: Status = 503

    def change(self, _outcome: PendingAnswer, _turn: Strike) -> PendingAnswer:
        return refusal(
            self.status, -1000, "An unknown error occurred while processing the request."
        )


@dataclass(frozen=True, kw_only=True)
class Hang(AnswerFault):
    """The request is taken and never answered."""

    kind: Literal["hang"] = "hang"

    def change(self, outcome: PendingAnswer, _turn: Strike) -> PendingAnswer:
        return replace(outcome, ending="hang")


@dataclass(frozen=True, kw_only=True)
class Reset(AnswerFault):
    """The connection is reset instead of an answer."""

    kind: Literal["reset"] = "reset"

    def change(self, outcome: PendingAnswer, _turn: Strike) -> PendingAnswer:
        return replace(outcome, ending="reset")


@dataclass(frozen=True, kw_only=True)
class Truncated(AnswerFault):
    """Half of the announced body arrives, then the connection closes."""

    kind: Literal["truncated"] = "truncated"

    def change(self, outcome: PendingAnswer, _turn: Strike) -> PendingAnswer:
        return replace(outcome, ending="cut")


@dataclass(frozen=True, kw_only=True)
class Malformed(AnswerFault):
    """Status 200 and a body that stops in the middle of its JSON, of the announced length."""

    kind: Literal["malformed"] = "malformed"

    def change(self, outcome: PendingAnswer, _turn: Strike) -> PendingAnswer:
        return replace(outcome, body=outcome.body[: len(outcome.body) // 2] or b"{")


@dataclass(frozen=True, kw_only=True)
class Html(AnswerFault):
    """Status 200 and a web page."""

    kind: Literal["html"] = "html"

    def change(self, outcome: PendingAnswer, _turn: Strike) -> PendingAnswer:
        return replace(outcome, body=_PAGE, content_type=_HTML)


@dataclass(frozen=True, kw_only=True)
class Gateway(AnswerFault):
    """A gateway in front of the exchange answers: a status with a web page or an empty body,
    without the exchange's own format.
    """

    kind: Literal["gateway"] = "gateway"
    status: Status = 404
    body: Literal["html", "empty"] = "html"

    def change(self, _outcome: PendingAnswer, _turn: Strike) -> PendingAnswer:
        page = f"<html><body><center><h1>{self.status}</h1></center></body></html>".encode()
        body = page if self.body == "html" else b""
        return PendingAnswer(body, self.status, content_type=_HTML, foreign=True)


@dataclass(frozen=True, kw_only=True)
class BadAnswer(AnswerFault):
    """One of three by the die: a gateway's 502, a reset connection, a web page with status 200."""

    kind: Literal["bad_answer"] = "bad_answer"

    def change(self, outcome: PendingAnswer, turn: Strike) -> PendingAnswer:
        return _BAD[int(turn.roll * len(_BAD))].change(outcome, turn)


_BAD: tuple[AnswerFault, ...] = (Gateway(status=502), Reset(), Html())


@dataclass(frozen=True, kw_only=True)
class Empty(AnswerFault):
    """An empty page, as some venues send when they are busy. With `once`, the repeated request is
    answered properly.
    """

    kind: Literal["empty"] = "empty"
    endpoint: str | None = "klines"
    once: bool = True

    def change(self, outcome: PendingAnswer, turn: Strike) -> PendingAnswer:
        if outcome.status != 200:
            return outcome
        if self.once and not turn.first_time(tuple(sorted(turn.ask.query.items()))):
            return outcome
        return replace(outcome, body=b"[]", rows=0)


@dataclass(frozen=True, kw_only=True)
class ClockDrift(AnswerFault):
    """The exchange's clock is `ms` ahead of the truth (behind, when negative) in /time."""

    kind: Literal["clock_drift"] = "clock_drift"
    endpoint: str | None = "time"
    ms: int = 1_000

    def change(self, outcome: PendingAnswer, turn: Strike) -> PendingAnswer:
        return replace(outcome, body=orjson.dumps({"serverTime": turn.ask.now_ms + self.ms}))


@dataclass(frozen=True, kw_only=True)
class Huge(AnswerFault):
    """The right answer followed by white space, `size` bytes in all."""

    kind: Literal["huge"] = "huge"
    size: Count = 64 * 1024 * 1024

    def change(self, outcome: PendingAnswer, _turn: Strike) -> PendingAnswer:
        return replace(outcome, body=outcome.body.ljust(self.size))


def banned(until_ms: int, retry_after_s: int) -> PendingAnswer:
    """Binance's answer to an address it has banned."""
    return refusal(
        418,
        -1003,
        f"Way too much request weight used; IP banned until {until_ms}. "
        "Please use WebSocket Streams for live updates to avoid bans.",
        retry_after_s,
    )
