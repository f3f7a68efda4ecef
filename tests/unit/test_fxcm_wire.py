"""Lines between FXCM's sidecar and its parent, as the parent reads and writes them."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.exchanges.fxcm.bars import BidAskBars
from collector.exchanges.fxcm.sidecar.lines import Lines
from collector.exchanges.fxcm.wire import (
    BadLine,
    Batch,
    SessionStatus,
    SidecarReply,
    decoded,
    encoded,
)

COLUMNS = (
    *("BidOpen", "BidHigh", "BidLow", "BidClose"),
    *("AskOpen", "AskHigh", "AskLow", "AskClose"),
)


@given(st.lists(st.binary(max_size=40)), st.integers(1, 7))
def test_lines_are_the_same_however_they_are_cut(pieces: list[bytes], size: int) -> None:
    whole = b"\n".join(pieces) + b"\n"
    lines = Lines(limit=20)
    found = [
        line
        for start in range(0, len(whole), size)
        for line in lines.feed(whole[start : start + size])
    ]
    expected = [None if len(line) > 20 else line for line in whole.split(b"\n") if line]
    assert found == expected


def test_of_an_endless_line_nothing_is_kept() -> None:
    lines = Lines(limit=100)
    for _ in range(1000):
        assert lines.feed(b"x" * 100) == []
    assert lines.feed(b"\nnext\n") == [None, b"next"]
    assert lines._begun == [b""]


def test_a_request_carries_what_is_left_of_the_lease() -> None:
    line = json.loads(encoded(7, "history", 1.2346, {"instrument": "EUR/USD"}))
    assert line == {"id": 7, "op": "history", "lease_ms": 1235, "instrument": "EUR/USD"}
    assert json.loads(encoded(8, "ping", -5.0, {}))["lease_ms"] == 0


def test_answers_and_batches_are_told_apart() -> None:
    assert decoded(b'{"id": 1, "result": null}') == SidecarReply(1)
    refused = decoded(b'{"id": 2, "error": {"kind": "busy", "type": "R", "message": "later"}}')
    assert refused == SidecarReply(2, kind="busy", message="later")
    said = decoded(
        b'{"seq": 3, "dropped": 4, "events_dropped": 5, "events": [["session", "CONNECTED", 6]],'
        b' "ticks": [[1, "EUR/USD", 1.1, 1.2, null, null, null, 7, 8],'
        b' [2, "EUR/USD", null, 1.2, 1.2, 1.1, 1, 7, 8]]}'
    )
    assert isinstance(said, Batch)
    assert (said.seq, said.dropped, said.events_dropped, said.incomplete) == (3, 4, 5, 1)
    assert said.events == (SessionStatus("CONNECTED", 6),)
    assert [tick.number for tick in said.ticks] == [1]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"printed by the SDK",
        b"[]",
        b"7",
        b"null",
        b'{"id": 1}',
        b'{"id": 1, "error": "text"}',
        b'{"id": [1], "result": null}',
        b'{"seq": 1, "dropped": "0", "events_dropped": 0, "ticks": [], "events": []}',
        b'{"seq": 1}',
        b'{"seq": 1, "dropped": 0, "events_dropped": 0, "ticks": [[1]], "events": []}',
        b'{"seq": 1, "dropped": 0, "events_dropped": 0, "ticks": [7], "events": []}',
        b'{"seq": 1, "dropped": 0, "events_dropped": 0, "ticks": [], "events": [["new", 1]]}',
        b'{"seq": 1, "dropped": 0, "events_dropped": 0, "ticks": [], "events": [["session"]]}',
        b"\xff\xff",
    ],
)
def test_a_line_that_is_none_of_the_protocol_is_one_kind_of_error(line: bytes) -> None:
    with pytest.raises(BadLine):
        decoded(line)


@given(st.binary(max_size=200))
def test_no_line_raises_anything_else(line: bytes) -> None:
    with contextlib.suppress(BadLine):
        decoded(line)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
        lambda each: (
            st.lists(each, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "seq", "result", "error", "ticks", "events", "dropped"]),
                each,
            )
        ),
        max_leaves=10,
    )
)
def test_no_json_raises_anything_else(value: object) -> None:
    with contextlib.suppress(BadLine):
        decoded(json.dumps(value).encode())


def test_history_needs_every_column_in_the_same_length() -> None:
    columns = {"Date": [1, 2], "Volume": [3, 4], **{name: [1.0, 2.0] for name in COLUMNS}}
    assert len(BidAskBars.of(columns)) == 2
    with pytest.raises(BadLine, match="differ in length"):
        BidAskBars.of({**columns, "AskClose": [1.0]})
    with pytest.raises(BadLine, match="Volume"):
        BidAskBars.of({name: each for name, each in columns.items() if name != "Volume"})
    with pytest.raises(BadLine):
        BidAskBars.of({**columns, "Date": ["noon", "one"]})
    for unfit in (None, [], 7, "text"):
        with pytest.raises(BadLine):
            BidAskBars.of(unfit)  # type: ignore[arg-type]
