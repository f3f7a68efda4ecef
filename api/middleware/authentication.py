"""Authentication. Everything needs a key except the listed paths; routes check the role."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from api import problems
from collector.clock import Clock, SystemClock
from collector.keys import ApiKeys, Role

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

FAILURES_ALLOWED = 10
FAILURES_WINDOW_S = 60.0
MOST_ADDRESSES = 10_000


class WrongKeys:
    """How often each address has shown a wrong key of late."""

    def __init__(self, *, allowed: int = FAILURES_ALLOWED, clock: Clock | None = None) -> None:
        self._allowed = allowed
        self._clock = clock or SystemClock()
        self._failures: dict[str, deque[float]] = {}

    def note(self, address: str) -> int | None:
        """Counts one more. Seconds to stay away when it was one too many, else None."""
        now = self._clock.monotonic()
        recent = self._failures.pop(address, deque())
        while recent and recent[0] <= now - FAILURES_WINDOW_S:
            recent.popleft()
        over = len(recent) >= self._allowed
        if not over:
            recent.append(now)
        # Put back at the end: when there are too many addresses, the longest unseen is forgotten.
        self._failures[address] = recent
        if len(self._failures) > MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        return max(1, round(recent[0] + FAILURES_WINDOW_S - now)) if over else None


class Authentication:
    """Puts the caller's role and the key's name into the scope.

    Without any keys, everyone is an admin.
    A right key is never refused for wrong ones from the same address: many people may stand
    behind one, and a key cannot be guessed.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: ApiKeys,
        open_paths: frozenset[str],
        wrong_keys: WrongKeys | None = None,
    ) -> None:
        self._app = app
        self._keys = keys
        self._open_paths = open_paths
        self._wrong_keys = wrong_keys or WrongKeys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._judge(scope)
        if isinstance(answer, Role):
            scope["role"] = answer
            await self._app(scope, receive, send)
        else:
            await answer(scope, receive, send)

    def _judge(self, scope: Scope) -> Role | Response:
        if not self._keys:
            return Role.ADMIN
        if scope["path"] in self._open_paths:
            return Role.ANYONE
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            return _unauthenticated("unauthenticated", "send `Authorization: Bearer KEY`", "")
        entry = self._keys.find(key.strip())
        if entry is not None:
            scope["key_name"] = entry.name
            return entry.role
        wait = self._wrong_keys.note((scope.get("client") or ("unknown",))[0])
        if wait is None:
            return _unauthenticated("wrong_key", "no such key", ', error="invalid_token"')
        return problems.problem_response(
            429,
            "too_many_wrong_keys",
            "too many wrong keys from this address",
            headers={"Retry-After": str(wait)},
        )


def _unauthenticated(code: str, detail: str, params: str) -> Response:
    challenge = {"WWW-Authenticate": f'Bearer realm="collector"{params}'}
    return problems.problem_response(401, code, detail, headers=challenge)
