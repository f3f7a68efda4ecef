"""On whose behalf tokens are bought.

A request is sent deep inside an exchange library, in any task. The caller travels there in a
context variable, so that the code which buys the token knows its priority and counts it for the run
that spends it.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Caller:
    """Who sends requests."""

    name: str = ""
    priority: bool = False
    """Whether its requests may use the reserve of a window."""
    urgency: int = 0
    """The priority of its job: the lower one gets the next token. Who has no job goes first."""
    tokens: int = 0
    """How many tokens it has spent."""


_CALLER: ContextVar[Caller | None] = ContextVar("collector_caller", default=None)


def current_caller() -> Caller:
    """The caller of this task; a nameless one when none was set."""
    return _CALLER.get() or Caller()


@contextmanager
def on_behalf_of(caller: Caller) -> Iterator[None]:
    """Makes `caller` the current one, for this task and those it starts."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)
