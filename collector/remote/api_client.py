"""A client of the REST API. Every failure is an error of ours, with the exit code it has here."""

from __future__ import annotations

import io
import json
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from collector.errors import ApiUnavailable
from collector.remote.problem_errors import error_of, unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from pydantic import SecretStr

    Params = Mapping[str, str | Sequence[str]]

PAGE = 1_000
TIMEOUT_SECONDS = 10.0
PATIENT_SECONDS = 180.0
"""For answers that take their time: reports, and many jobs at once."""
SILENCE_SECONDS = 45.0
"""The API sends a comment every 15 s; a stream that is quiet for longer has died."""


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """One answer, read to its end."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """Where an API is, and the key for it."""

    url: str
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str, token: SecretStr | None) -> ApiAddress:
        return cls(url, None if token is None else token.get_secret_value())

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[ApiClient]:
        """A client for as long as the block lasts. Sends nothing yet."""
        with _reaching(self.url):
            made = httpx.AsyncClient(**self._options())
        async with made as session:
            yield ApiClient(self.url, session)

    def get(self, path: str, params: Params, *, seconds: float = PATIENT_SECONDS) -> Any:
        """The body of one answer, for callers without an event loop."""
        with _reaching(self.url), httpx.Client(**self._options(seconds)) as session:
            return _checked(session.get(f"/api/v1/{path}", params=dict(params)))

    @contextmanager
    def rows(self, path: str, params: Params) -> Iterator[tuple[io.RawIOBase, httpx.Headers]]:
        """A streamed answer as a file that is read once, and its headers."""
        with (
            _reaching(self.url),
            httpx.Client(**self._options(PATIENT_SECONDS)) as session,
            session.stream("GET", f"/api/v1/{path}", params=dict(params)) as response,
        ):
            if response.is_error:
                response.read()
            _checked(response)
            yield _Body(response.iter_bytes()), response.headers

    def _options(self, seconds: float = TIMEOUT_SECONDS) -> dict[str, Any]:
        return {
            "base_url": self.url.rstrip("/"),
            "headers": self.headers,
            "timeout": httpx.Timeout(seconds, connect=min(seconds, TIMEOUT_SECONDS)),
            # A proxy between here and the API would have to be named by the operator.
            "trust_env": False,
        }


class ApiClient:
    """One session with an API."""

    def __init__(self, url: str, session: httpx.AsyncClient) -> None:
        self.url = url
        self._session = session

    async def get(self, path: str, params: Params | None = None, *, patient: bool = False) -> Any:
        """The body of an answer. Raises what the other side would have raised."""
        return (await self.ask("GET", path, params=params, patient=patient)).body

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Params | None = None,
        patient: bool = False,
    ) -> ApiAnswer:
        """One request to a path below `/api/v1/`."""
        options: dict[str, Any] = {} if body is None else {"json": body}
        if patient:
            options["timeout"] = PATIENT_SECONDS
        with _reaching(self.url):
            response = await self._session.request(
                method, f"/api/v1/{path}", params=dict(params or {}), **options
            )
        return ApiAnswer(response.status_code, _checked(response))

    async def items(
        self, path: str, most: int, params: Params | None = None
    ) -> tuple[list[dict[str, Any]], bool]:
        """Items of a list that comes in pages, and whether there are more than were read."""
        items: list[dict[str, Any]] = []
        asked = {**(params or {}), "limit": str(min(PAGE, most))}
        while True:
            page = await self.get(path, asked)
            items += page["items"]
            cursor = page.get("next_cursor")
            if cursor is None or len(items) >= most:
                return items[:most], cursor is not None
            asked["cursor"] = cursor

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
        """Names and data of server-sent events, once the server listens to changes."""
        timeout = httpx.Timeout(TIMEOUT_SECONDS, read=SILENCE_SECONDS)
        with _reaching(self.url):
            async with self._session.stream("GET", "/api/v1/events", timeout=timeout) as response:
                if response.is_error:
                    await response.aread()
                _checked(response)
                lines = response.aiter_lines()
                if not (await anext(lines, "")).startswith(":"):
                    raise ApiUnavailable(f"{self.url}: this is not the API of a collector")
                yield _events(lines)


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, Any]]:
    name = ""
    async for line in lines:
        if line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            yield name, json.loads(line.removeprefix("data:"))
    raise ApiUnavailable("the stream of events has ended")


@contextmanager
def _reaching(url: str) -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        raise unreachable(url, error) from error


def _checked(response: httpx.Response) -> Any:
    """The body of a success; raises the error that a problem stands for."""
    if not response.is_error:
        is_json = "json" in response.headers.get("content-type", "")
        return response.json() if is_json and response.is_closed else None
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    known = problem if isinstance(problem, dict) else {}
    raise error_of(response.status_code, known, response.url.path)


class _Body(io.RawIOBase):
    """What arrives, as a file for readers that want one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._held = piece
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        return size
