"""The connection to Redis: one publication at a time, and a pause after failures.

A call never waits out a pause: while Redis is paused it returns None at once, and the caller
decides what to do with its message. Whatever goes wrong with Redis ends here as None too.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from collector import logs, metrics
from collector.mongo.change_stream import keeping_cancellation
from collector.publication.gate import GateVerdict
from collector.publication.gate_script import SCRIPT, arguments, ruling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pydantic import SecretStr

    from collector.backoff_controller import BackoffController
    from collector.publication.gate import Ruling
    from collector.publication.message import Publication

TIMEOUT_SECONDS = 5.0
"""A Redis that takes longer for a message counts as away."""

_log = logs.get("collector.publication")


class ScriptRunner(Protocol):
    """What is needed of a Redis client: the gate's script, run with one key."""

    async def run(self, key: str, arguments: Sequence[str | bytes]) -> Sequence[bytes | int]: ...

    async def close(self) -> None: ...


class RedisLink:
    """Publishes through the gate's script. `backoff` is the controller named `redis`."""

    def __init__(
        self,
        runner: ScriptRunner,
        backoff: BackoffController,
        rest: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._runner = runner
        self.backoff = backoff
        self._rest = rest
        self._turn = asyncio.Lock()

    async def publish(self, publication: Publication) -> Ruling | None:
        """What the gate decided, or None when Redis is away: nothing is known of this message."""
        # In turn, so that one outage is one failure however many messages wait for it.
        async with self._turn:
            if self.backoff.paused:
                return None
            try:
                # The client takes a cancellation for a broken connection, and the task would go on.
                with keeping_cancellation():
                    async with asyncio.timeout(TIMEOUT_SECONDS):
                        answer = await self._runner.run(publication.key, arguments(publication))
                decided = ruling(answer)
            except Exception as error:  # noqa: BLE001 - a Redis of whatever kind must not end a task
                self._failed(error)
                return None
            self._succeeded()
        if decided.verdict is GateVerdict.ADMITTED and decided.new:
            messages = decided.new if publication.envelope is None else 1
            metrics.PUBLISHED.labels(publication.channel).inc(messages)
        elif decided.verdict is GateVerdict.STALE_FENCE:
            metrics.PUBLICATION_REFUSED.labels(publication.channel).inc()
        return decided

    async def resumed(self) -> None:
        """Returns when the pause is over, if there is one."""
        while self.backoff.paused:
            await self._rest(self.backoff.remaining_seconds)

    async def close(self) -> None:
        await self._runner.close()

    def _failed(self, error: Exception) -> None:
        first = not self.backoff.state.active
        pause = self.backoff.fail(error)
        if first:
            _log.warning(
                "redis_away",
                kind=type(error).__name__,
                error=str(error)[:300],
                pause_seconds=round(pause, 1),
            )

    def _succeeded(self) -> None:
        if self.backoff.state.active:
            _log.warning("redis_back", failures=self.backoff.state.fail_count)
            self.backoff.success()


class RedisScript:
    """The gate's script on a Redis server. The `redis` package is imported here and only here."""

    def __init__(self, url: SecretStr) -> None:
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        # The client's own retries would run the script again without a look at the back-off.
        self._client = Redis.from_url(
            url.get_secret_value(),
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._script = self._client.register_script(SCRIPT)

    async def run(self, key: str, arguments: Sequence[str | bytes]) -> Sequence[bytes | int]:
        answer: Sequence[bytes | int] = await self._script(keys=[key], args=list(arguments))
        return answer

    async def load(self) -> None:
        """Hands the script over without running it."""
        await self._client.script_load(SCRIPT)

    async def close(self) -> None:
        await self._client.aclose()


async def refusal(url: SecretStr) -> str | None:
    """Why nothing could be published now; None when Redis answers and takes the script."""
    try:
        runner = RedisScript(url)
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await runner.load()
        finally:
            await runner.close()
    except Exception as error:  # noqa: BLE001 - a Redis of whatever kind; what it says is the answer
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    return None
