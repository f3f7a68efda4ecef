"""Rows of an answer: how many, and what a spreadsheet may see of them."""

from __future__ import annotations

import csv

import orjson
import pyarrow as pa

from api.row_formats import encode

SCHEMA = pa.schema([("v", pa.float64()), ("text", pa.string())])


def _batches(*texts: str | None) -> list[pa.RecordBatch]:
    columns = [[-1.0] * len(texts), list(texts)]
    return [pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=SCHEMA)]


def test_text_that_begins_as_a_formula_is_escaped_on_request_and_numbers_never() -> None:
    cells = ("=1+1", "+x", "-x", "@x", "plain", None)
    escaped = _csv_rows(b"".join(encode(iter(_batches(*cells)), SCHEMA, "csv", escape=True)))
    plain = _csv_rows(b"".join(encode(iter(_batches(*cells)), SCHEMA, "csv")))
    assert [text for _, text in escaped] == ["'=1+1", "'+x", "'-x", "'@x", "plain", ""]
    assert [text for _, text in plain] == ["=1+1", "+x", "-x", "@x", "plain", ""]
    assert {value for value, _ in escaped} == {"-1"}


def _csv_rows(answer: bytes) -> list[list[str]]:
    return list(csv.reader(answer.decode().splitlines()))[1:]


def test_a_limit_ends_the_answer_whatever_the_batches() -> None:
    batches = _batches("a", "b") + _batches("c", "d") + _batches("e")
    for limit in (1, 2, 3, 5, 9):
        answer = b"".join(encode(iter(batches), SCHEMA, "json", limit=limit))
        texts = [row[1] for row in orjson.loads(answer)["rows"]]
        assert texts == ["a", "b", "c", "d", "e"][:limit]
