"""One request to the exchange and its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON = "application/json;charset=UTF-8"

Ending = Literal["whole", "cut", "reset", "hang"]
"""How an answer ends: sent whole, cut off in the middle, with a reset instead, or never."""


@dataclass(frozen=True, slots=True)
class PublicRequest:
    """A request to the public API, understood. `number` counts requests since the start."""

    number: int
    endpoint: str
    now_ms: int
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def symbol(self) -> str | None:
        """The market, as the exchange spells it."""
        return self.query.get("symbol")

    @property
    def interval(self) -> str | None:
        return self.query.get("interval")

    def integer(self, name: str) -> int | None:
        """A parameter that must be a number. Raises VenueError when it is something else."""
        text = self.query.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 20):
            legal = "^[0-9]{1,20}$"
            raise VenueError(
                -1100,
                f"Illegal characters found in parameter '{name}'; legal range is '{legal}'.",
            )
        return int(text)

    def required(self, name: str) -> str:
        """A parameter that must be there. Raises VenueError when it is not."""
        text = self.query.get(name)
        if not text:
            raise VenueError(
                -1102,
                f"Mandatory parameter '{name}' was not sent, was empty/null, or malformed.",
            )
        return text

    def limit(self, usual: int = 500, most: int = 1000) -> int:
        """How many rows; more than the most is quietly cut, as Binance does."""
        limit = self.integer("limit")
        if limit == 0:
            raise VenueError(-1130, "Data sent for parameter 'limit' is not valid.")
        return min(usual if limit is None else limit, most)


@dataclass(frozen=True, slots=True)
class PendingAnswer:
    """An answer that has not left yet. Faults change it by copy.

    `ban_seconds` makes the limit refuse everything for that long. A `foreign` answer is not the
    exchange's: it carries none of its headers.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON
    delay_ms: float = 0.0
    ending: Ending = "whole"
    rows: int | None = None
    ban_seconds: int = 0
    foreign: bool = False


class VenueError(Exception):
    """The exchange refuses, with Binance's message."""

    def __init__(
        self, code: int, message: str, *, status: int = 400, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.retry_after_s = retry_after_s

    def outcome(self) -> PendingAnswer:
        """The refusal as an answer."""
        return refusal(self.status, self.code, str(self), self.retry_after_s)


def refusal(
    status: int, code: int, message: str, retry_after_s: int | None = None
) -> PendingAnswer:
    """An error answer as Binance words it."""
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return PendingAnswer(orjson.dumps({"code": code, "msg": message}), status, headers)


def json_outcome(content: Any, rows: int | None = None) -> PendingAnswer:
    return PendingAnswer(orjson.dumps(content), rows=rows)
