"""One sidecar process, from its start to its end: requests, time-outs, lease, exit.

The parent owns every time-out. A sidecar that does not answer in time is killed with its whole
process group: whatever it is waiting for, there is no way to take a call of the SDK back.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.exchanges.fxcm.failures import FxcmMissing, SidecarLost, failure
from collector.exchanges.fxcm.interpreter import Interpreter, child_environment
from collector.exchanges.fxcm.sidecar.ending import LAST_SECONDS
from collector.exchanges.fxcm.sidecar.lines import Lines
from collector.exchanges.fxcm.wire import BadLine, Batch, SidecarReply, decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.errors import CollectorError

    Lease = Callable[[], float]

PROGRAM = Path(__file__).with_name("sidecar") / "__main__.py"

_CHUNK = 1 << 18
_LINE_LIMIT = 1 << 26
_LINE_IN_A_THREAD = 1 << 18
_STDERR_LINES = 40
_STDERR_SECONDS = 1.0
_STDERR_LINE_LIMIT = 2000
_BEAT_SECONDS = 5.0
_SHORTEST_BEAT_SECONDS = 0.05
# What the sidecar allows itself for its end, and a little more.
END_SECONDS = LAST_SECONDS + 5.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long the sidecar may take for an answer, in seconds."""

    hello: float = 60.0
    # The SDK gives up after 30 s, waits 30 s more for its tables, and then logs out: 15 s.
    login: float = 90.0
    offers: float = 45.0
    subscribe: float = 45.0
    history: float = 120.0
    ping: float = 30.0


class Sidecar:
    """A running sidecar. `start` is the way to one, and `close` or `kill` end it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        lease: Lease,
        timeouts: Timeouts,
        on_batch: Callable[[Sidecar, Batch], None],
        on_end: Callable[[Sidecar], None],
    ) -> None:
        self._process = process
        self._lease = lease
        self._timeouts = timeouts
        self._on_batch = on_batch
        self._on_end = on_end
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[SidecarReply]]] = {}
        self._turn = asyncio.Lock()
        self._turns: set[asyncio.Task[Any]] = set()
        self._last_seq = 0
        self._cause: CollectorError | None = None
        self._closing = False
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._secret = ""
        self.end_cause: CollectorError | None = None
        """Why it has ended; None while it lives."""
        self._life = asyncio.create_task(self._live(), name=f"fxcm sidecar {process.pid}")

    @classmethod
    async def start(
        cls,
        interpreter: Interpreter,
        home: Path,
        environ: Mapping[str, str],
        *,
        lease: Lease,
        timeouts: Timeouts,
        on_batch: Callable[[Sidecar, Batch], None],
        on_end: Callable[[Sidecar], None],
    ) -> Sidecar:
        """`home` becomes its working directory: the SDK keeps its cache there."""
        await asyncio.to_thread(home.mkdir, parents=True, exist_ok=True)
        try:
            process = await asyncio.create_subprocess_exec(
                interpreter.path,
                PROGRAM,
                cwd=home,
                env=child_environment(environ),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # its own group, out of reach of a terminal's Ctrl-C
            )
        except OSError as error:
            raise FxcmMissing(f"{interpreter.path} cannot be run: {error.strerror}") from error
        return cls(process, lease, timeouts, on_batch, on_end)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def closing(self) -> bool:
        """Whether its end was requested."""
        return self._closing

    @property
    def is_ending(self) -> bool:
        """Whether it is about to end, asked for or not: nothing more can be asked of it."""
        return self._closing or self._cause is not None or self.end_cause is not None

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines that it, or the SDK in it, has printed."""
        return tuple(self._stderr)

    def waits_for(self, op: str) -> bool:
        """Whether a request of this kind was sent and not answered yet."""
        return any(op == each for each, _ in self._waiting.values())

    async def ask(self, op: str, **fields: Any) -> Any:
        """The result of one request; they are sent one at a time.

        A caller that is cancelled while waiting leaves the request behind. It keeps its turn and
        its time-out, because the SDK is busy with it all the same.
        """
        self._secret = fields.get("password") or self._secret
        turn = asyncio.create_task(self._in_turn(op, fields))
        self._turns.add(turn)
        turn.add_done_callback(self._turn_is_over)
        return await asyncio.shield(turn)

    def kill(self, cause: CollectorError) -> None:
        """Ends the process and all it has started, now."""
        self._cause = self._cause or cause
        self._kill_group()

    async def close(self) -> None:
        """Lets it log out and exit, and kills it when it takes too long. May be called again."""
        self._closing = True
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await asyncio.shield(self._life)
        except TimeoutError:
            self.kill(SidecarLost("fxcm: the sidecar did not end and was killed"))
        except asyncio.CancelledError:
            self.kill(SidecarLost("fxcm: the sidecar was killed in a hurry"))
            raise
        finally:
            await asyncio.shield(self._life)
        await asyncio.gather(*self._turns, return_exceptions=True)

    def _kill_group(self) -> None:
        if self.end_cause is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _turn_is_over(self, turn: asyncio.Task[Any]) -> None:
        self._turns.discard(turn)
        if not turn.cancelled():
            turn.exception()  # its caller may have been cancelled

    async def _in_turn(self, op: str, fields: dict[str, Any]) -> Any:
        seconds: float = getattr(self._timeouts, op)
        async with self._turn:
            answer = await self._within(seconds, op, fields)
        if answer.kind is not None:
            raise failure(answer.kind, answer.message)
        return answer.result

    async def _within(self, seconds: float, op: str, fields: dict[str, Any]) -> SidecarReply:
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(op, fields)
        except TimeoutError:
            hung = SidecarLost(
                f"fxcm: no answer to {op} within {seconds:g} s: the sidecar is killed"
            )
            self.kill(hung)
            raise hung from None

    async def _exchange(self, op: str, fields: dict[str, Any]) -> SidecarReply:
        if self.end_cause is not None:
            raise self.end_cause
        number = next(self._numbers)
        answer: asyncio.Future[SidecarReply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (op, answer)
        try:
            await self._send(encoded(number, op, self._lease(), fields))
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def _send(self, line: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        # A pipe that is closed means the end, and `_live` fails everyone who waits.
        if not stdin.is_closing():
            with contextlib.suppress(ConnectionError):
                stdin.write(line)
                await stdin.drain()

    async def _live(self) -> None:
        errors = asyncio.create_task(self._keep_stderr())
        beat = asyncio.create_task(self._beat())
        try:
            await self._read()
        except BadLine as error:
            self.kill(error)
        finally:
            # Its output has ended, and so has its use. It may have left children behind.
            self._kill_group()
            code = await self._process.wait()
            beat.cancel()
            await asyncio.wait({errors}, timeout=_STDERR_SECONDS)
            errors.cancel()
            await asyncio.gather(errors, beat, return_exceptions=True)
            self._report_end(self._cause or SidecarLost(f"fxcm: the sidecar {_exit_text(code)}"))

    def _report_end(self, cause: CollectorError) -> None:
        self.end_cause = cause
        for _, answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(cause)
        self._waiting.clear()
        self._on_end(self)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        lines = Lines(_LINE_LIMIT)
        while chunk := await self._process.stdout.read(_CHUNK):
            for line in lines.feed(chunk):
                if line is None:
                    raise BadLine("fxcm: the sidecar wrote a line without an end")
                if len(line) < _LINE_IN_A_THREAD:
                    self._take(decoded(line))
                else:
                    self._take(await asyncio.to_thread(decoded, line))

    def _take(self, message: SidecarReply | Batch) -> None:
        if isinstance(message, Batch):
            self._last_seq += 1
            if message.seq != self._last_seq:
                raise BadLine(f"fxcm: batch {message.seq} came in place of {self._last_seq}")
            self._on_batch(self, message)
            return
        _, answer = self._waiting.pop(message.id, (None, None))
        if answer is not None and not answer.done():
            answer.set_result(message)

    async def _keep_stderr(self) -> None:
        assert self._process.stderr is not None
        lines = Lines(_STDERR_LINE_LIMIT)
        while chunk := await self._process.stderr.read(_CHUNK):
            for line in lines.feed(chunk):
                self._stderr.append("(a long line)" if line is None else self._cleaned(line))

    def _cleaned(self, line: bytes) -> str:
        """The text without the password, and without characters that a terminal would obey."""
        text = line.decode(errors="replace")
        if self._secret:
            text = text.replace(self._secret, "***")
        return "".join(letter if letter.isprintable() else " " for letter in text)

    async def _beat(self) -> None:
        """Renews the sidecar's lease, and kills a sidecar that does not answer."""
        while (left := self._lease()) > 0:
            await self._within(self._timeouts.ping, "ping", {})
            await asyncio.sleep(max(min(left / 3, _BEAT_SECONDS), _SHORTEST_BEAT_SECONDS))
        # This line carries a lease of zero, so the sidecar logs out and exits.
        self._closing = True
        self._cause = self._cause or SidecarLost("fxcm: the session lease has passed")
        await self._within(self._timeouts.ping, "ping", {})
        await asyncio.sleep(END_SECONDS)
        self._kill_group()


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    return f"was killed by {signal.Signals(-code).name}"
