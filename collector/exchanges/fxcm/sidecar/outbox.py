"""Everything that leaves the sidecar: bounded queues, and the one thread that writes lines.

A callback of the SDK must return at once, and a parent that does not read must not make this
process grow. So ticks wait in a bounded queue, the oldest make room for new ones, and every line
carries how many were lost so far. A tick's number is given before it can be lost.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections import deque
from datetime import datetime, timedelta
from typing import Any

TICK_LIMIT = 20000
EVENT_LIMIT = 1000
TICKS_A_LINE = 500

_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)


def now_ms() -> int:
    return int(time.time() * 1000)


class Outbox:
    def __init__(self, fd: int, tick_limit: int = TICK_LIMIT) -> None:
        self.tick_limit = tick_limit
        self._fd = fd
        self._changed = threading.Condition()
        self._answers: deque[dict[str, Any]] = deque()
        self._events: deque[list[Any]] = deque()
        self._ticks: deque[tuple[Any, ...]] = deque()
        self._tick_number = 0
        self._dropped = 0
        self._events_dropped = 0
        self._line_number = 0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def tick(self, instrument: str, *values: Any) -> None:
        """One price: bid, ask, high, low, volume, and its time as the SDK gives it."""
        received = now_ms()
        with self._changed:
            self._tick_number += 1
            if len(self._ticks) >= self.tick_limit:
                self._ticks.popleft()
                self._dropped += 1
            self._ticks.append((self._tick_number, instrument, *values, received))
            self._changed.notify()

    def event(self, name: str, *words: str) -> None:
        with self._changed:
            if len(self._events) >= EVENT_LIMIT:
                self._events.popleft()
                self._events_dropped += 1
            self._events.append([name, *words, now_ms()])
            self._changed.notify()

    def answer(self, request_id: int, result: Any) -> None:
        self._send({"id": request_id, "result": result})

    def refuse(self, request_id: int, error: dict[str, str]) -> None:
        self._send({"id": request_id, "error": error})

    def close(self, seconds: float) -> None:
        """Writes what is waiting, if the parent reads it within `seconds`."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(seconds)

    def _send(self, answer: dict[str, Any]) -> None:
        with self._changed:
            self._answers.append(answer)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            lines = self._next_lines()
            if not lines:
                return
            try:
                for line in lines:
                    self._write(line)
            except OSError:
                # The pipe has no reader any more. The inbox notices the same and ends the process.
                return

    def _next_lines(self) -> list[dict[str, Any]]:
        """Waits for something to write. Empty: the outbox was closed, and all has been written."""
        with self._changed:
            while not (self._answers or self._events or self._ticks):
                if self._closing:
                    return []
                self._changed.wait()
            # Events first: what happened before an answer is written before it.
            lines = [self._batch()] if self._events or self._ticks else []
            lines += self._answers
            self._answers.clear()
            return lines

    def _batch(self) -> dict[str, Any]:
        count = min(len(self._ticks), TICKS_A_LINE)
        ticks = [self._ticks.popleft() for _ in range(count)]
        events = list(self._events)
        self._events.clear()
        self._line_number += 1
        return {
            "seq": self._line_number,
            "dropped": self._dropped,
            "events_dropped": self._events_dropped,
            "ticks": ticks,
            "events": events,
        }

    def _write(self, line: dict[str, Any]) -> None:
        waiting = memoryview(_encoded(line))
        while waiting:
            waiting = waiting[os.write(self._fd, waiting) :]


def _encoded(line: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(line, separators=(",", ":"), allow_nan=False, default=_plain)
    except ValueError:
        text = json.dumps(_finite(line), separators=(",", ":"), default=_plain)
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    """The SDK's times are naive and UTC. Here, not in the callback, which has to be quick."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MILLISECOND
    return str(value)


def _finite(value: Any) -> Any:
    """The same with null in place of numbers that JSON does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return value
