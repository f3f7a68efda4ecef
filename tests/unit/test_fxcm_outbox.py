"""What leaves FXCM's sidecar: in order, bounded, with every loss counted."""

from __future__ import annotations

import json
import os
import threading
from datetime import datetime
from typing import Any

import pytest

from collector.exchanges.fxcm.sidecar.failures import RefusedRequest, described, kind_of
from collector.exchanges.fxcm.sidecar.outbox import EVENT_LIMIT, Outbox

NOON = datetime(2024, 1, 17, 17)


class Pipe:
    """The parent's end. The outbox writes what it was given before it was started."""

    def __init__(self) -> None:
        self.read_fd, self.write_fd = os.pipe()

    def lines(self, outbox: Outbox) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        # Read meanwhile: a pipe that is full holds its writer.
        reading = threading.Thread(target=self._read, args=(found,))
        reading.start()
        outbox.start()
        outbox.close(60)
        os.close(self.write_fd)
        reading.join()
        return found

    def _read(self, found: list[dict[str, Any]]) -> None:
        with os.fdopen(self.read_fd) as lines:
            found += [json.loads(line) for line in lines]


@pytest.fixture
def pipe() -> Pipe:
    return Pipe()


def tick(outbox: Outbox, bid: float | None = 1.1) -> None:
    outbox.tick("EUR/USD", bid, 1.2, 1.3, 1.0, 7, NOON)


def test_a_full_queue_keeps_the_newest_ticks(pipe: Pipe) -> None:
    outbox = Outbox(pipe.write_fd, tick_limit=3)
    for _ in range(10):
        tick(outbox)
    (line,) = pipe.lines(outbox)
    assert [each[0] for each in line["ticks"]] == [8, 9, 10]
    assert line["dropped"] == 7


def test_events_are_bounded_as_well(pipe: Pipe) -> None:
    outbox = Outbox(pipe.write_fd)
    for number in range(EVENT_LIMIT + 5):
        outbox.event("session", str(number))
    (line,) = pipe.lines(outbox)
    assert line["events_dropped"] == 5
    assert len(line["events"]) == EVENT_LIMIT
    assert line["events"][-1][:2] == ["session", str(EVENT_LIMIT + 4)]


def test_what_happened_before_an_answer_is_written_before_it(pipe: Pipe) -> None:
    outbox = Outbox(pipe.write_fd)
    outbox.event("session", "CONNECTED")
    outbox.answer(1, None)
    first, second = pipe.lines(outbox)
    assert (first["seq"], second["id"]) == (1, 1)


def test_many_ticks_are_many_lines_in_order(pipe: Pipe) -> None:
    outbox = Outbox(pipe.write_fd)
    for _ in range(1200):
        tick(outbox)
    lines = pipe.lines(outbox)
    assert [line["seq"] for line in lines] == [1, 2, 3]
    assert [each[0] for line in lines for each in line["ticks"]] == list(range(1, 1201))


def test_numbers_json_does_not_know_become_null(pipe: Pipe) -> None:
    outbox = Outbox(pipe.write_fd)
    tick(outbox, float("nan"))
    tick(outbox, None)
    outbox.answer(1, {"BidOpen": [float("inf"), 1.0]})
    batch, answer = pipe.lines(outbox)
    assert [each[2] for each in batch["ticks"]] == [None, None]
    assert answer["result"] == {"BidOpen": [None, 1.0]}


def test_a_parent_that_is_gone_does_not_stop_the_writer_with_an_error(pipe: Pipe) -> None:
    outbox = Outbox(pipe.write_fd)
    tick(outbox)
    os.close(pipe.read_fd)
    outbox.start()
    outbox.close(60)
    assert not outbox._thread.is_alive()
    os.close(pipe.write_fd)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("PriceHistoryManager error: PriceHistoryCommunicator is not ready. code: X", "not_ready"),
        ("QuotesManager error: x code: QuotesNotFound subcode: 0", "no_data"),
        ("QuotesManager error: x code: NoRoute subcode: 0", "unavailable"),
        ("PriceHistoryManager error: Invalid timeframe tf=m7 code: BadArguments", "bad_request"),
        ("ORA-499: Unable to obtain station descriptor. HTTP request failed", "unavailable"),
        ("Wait timeout exceeded", "unavailable"),
        ("Incorrect user name or password", "login_refused"),
        ("a text of tomorrow", "unknown"),
        ("", "unknown"),
    ],
)
def test_errors_are_classified_by_their_text(text: str, kind: str) -> None:
    assert kind_of(Exception(text)) == kind


def test_a_secret_is_cut_out_of_an_error() -> None:
    error = described(RefusedRequest("busy", "pass word pass"), "pass")
    assert error == {"kind": "busy", "type": "RefusedRequest", "message": "*** word ***"}
