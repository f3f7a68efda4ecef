"""Answers gone wrong on the way: one change each, chosen by a seeded generator.

Changes that cannot be distinguished from the truth are left out: another digit, another sign, two
prices exchanged, a row that is missing or one bar later, the same cell missing in every row, a
well-formed empty page. Each of them is a plausible answer.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
import re

_ODD: tuple[Any, ...] = (None, "", "abc", {}, True, False, "NaN", "12abc", "0x10", "1 0", "--1")
_NOT_JSON = ("", "null", "true", "17", '"busy"', "<html>busy</html>", "{}", "\x00\x01", "OK", "[[")
_GARBAGE = ("}", "{", "]", "[", '"', "\x00", "null", "<", "NaN", ":", "\\", "é", "]]")
_STATUSES = (201, 203, 400, 403, 404, 408, 418, 429, 451, 500, 502, 503, 504, 520, 524, 599)


@dataclass(frozen=True)
class Mutated:
    """An answer as it comes out of the wire."""

    how: str
    text: str
    status: int = 200


@dataclass(frozen=True)
class Page:
    """An answer in a venue's format, and where in it the rows stand."""

    body: Any
    rows_at: tuple[Any, ...]

    @property
    def rows(self) -> Any:
        return at(self.body, self.rows_at)


Mutation = Callable[["random.Random", Page], Mutated]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def rows_path(value: Any) -> tuple[Any, ...]:
    """Where the rows stand: the longest list of lists or of objects."""
    found = [
        path
        for path in paths(value)
        if isinstance(at(value, path), list)
        and at(value, path)
        and all(isinstance(row, (list, dict)) for row in at(value, path))
    ]
    return max(found, key=lambda path: len(at(value, path)))


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every node of a JSON value."""
    below = value.items() if isinstance(value, dict) else []
    below = enumerate(value) if isinstance(value, list) else below
    return [here, *(path for key, item in below for path in paths(item, (*here, key)))]


def _dump(how: str, body: Any) -> Mutated:
    return Mutated(how, json.dumps(body))


def cut_off(rng: random.Random, page: Page) -> Mutated:
    text = json.dumps(page.body)
    return Mutated("cut off", text[: rng.randrange(len(text))])


def not_json(rng: random.Random, page: Page) -> Mutated:
    return Mutated("another body", rng.choice(_NOT_JSON))


def garbage(rng: random.Random, page: Page) -> Mutated:
    text = json.dumps(page.body)
    place = rng.randrange(len(text) + 1)
    return Mutated("garbage", text[:place] + rng.choice(_GARBAGE) + text[place:])


def encoded_twice(rng: random.Random, page: Page) -> Mutated:
    return _dump("encoded twice", json.dumps(page.body))


def another_status(rng: random.Random, page: Page) -> Mutated:
    return Mutated("another status", json.dumps(page.body), rng.choice(_STATUSES))


def odd_node(rng: random.Random, page: Page) -> Mutated:
    body = copy.deepcopy(page.body)
    path = rng.choice(paths(body)[1:])
    at(body, path[:-1])[path[-1]] = rng.choice(_ODD)
    return _dump(f"odd node at {path}", body)


def odd_cell(rng: random.Random, page: Page) -> Mutated:
    body = copy.deepcopy(page.body)
    row = rng.choice(at(body, page.rows_at))
    place = rng.choice(list(row)) if isinstance(row, dict) else rng.randrange(len(row))
    row[place] = rng.choice(_ODD)
    return _dump(f"odd cell {place}", body)


def endless_number(rng: random.Random, page: Page) -> Mutated:
    body = copy.deepcopy(page.body)
    row = rng.choice(at(body, page.rows_at))
    place = rng.choice(list(row)) if isinstance(row, dict) else rng.randrange(len(row))
    row[place] = "@" if rng.random() < 0.5 else "1e400"
    return Mutated(f"endless number in {place}", json.dumps(body).replace('"@"', "1e400"))


def lost_key(rng: random.Random, page: Page) -> Mutated:
    body = copy.deepcopy(page.body)
    objects = [at(body, path) for path in paths(body)]
    inside = [each for each in objects if isinstance(each, dict) and each]
    if not inside:
        return lost_cell(rng, page)
    chosen = rng.choice(inside)
    key = rng.choice(list(chosen))
    value = chosen.pop(key)
    if rng.random() < 0.5:
        chosen[f"{key}x"] = value
    return _dump(f"lost key {key}", body)


def lost_cell(rng: random.Random, page: Page) -> Mutated:
    body = copy.deepcopy(page.body)
    row = rng.choice(at(body, page.rows_at))
    place = rng.choice(list(row)) if isinstance(row, dict) else rng.randrange(len(row))
    del row[place]
    return _dump(f"lost cell {place}", body)


def extra_cell(rng: random.Random, page: Page) -> Mutated:
    body = copy.deepcopy(page.body)
    row = rng.choice(at(body, page.rows_at))
    if isinstance(row, dict):
        row["extra"] = rng.choice(_ODD)
    else:
        row.insert(rng.randrange(len(row) + 1), rng.choice(_ODD))
    return _dump("extra cell", body)


def broken_row(rng: random.Random, page: Page) -> Mutated:
    body = copy.deepcopy(page.body)
    rows = at(body, page.rows_at)
    rows[rng.randrange(len(rows))] = rng.choice((*_ODD, [], 5))
    return _dump("broken row", body)


def said_twice(rng: random.Random, page: Page) -> Mutated:
    body = copy.deepcopy(page.body)
    rows = at(body, page.rows_at)
    rows.insert(rng.randrange(len(rows) + 1), rng.choice(rows))
    return _dump("said twice", body)


def disorder(rng: random.Random, page: Page) -> Mutated:
    body = copy.deepcopy(page.body)
    rng.shuffle(at(body, page.rows_at))
    return _dump("disorder", body)


def another_unit_of_time(rng: random.Random, page: Page) -> Mutated:
    """Seconds for milliseconds, microseconds, or a moment that no bar opens at."""
    body = copy.deepcopy(page.body)
    row = rng.choice(at(body, page.rows_at))
    place = _time_key(row)
    seen = int(row[place])
    other = rng.choice((seen * 1000, seen // 1000, seen + 1, seen * 1_000_000, -seen, 0))
    row[place] = str(other) if isinstance(row[place], str) else other
    return _dump(f"time {seen} became {other}", body)


def another_type(rng: random.Random, page: Page) -> Mutated:
    """The same value, as a number where a text was and the other way round; else in a list."""
    body = copy.deepcopy(page.body)
    row = rng.choice(at(body, page.rows_at))
    place = rng.choice(list(row)) if isinstance(row, dict) else rng.randrange(len(row))
    value = row[place]
    if value in ("true", "false"):
        row[place] = True
    elif isinstance(value, str):
        row[place] = json.loads(value) if re.fullmatch(r"[0-9.]+", value) else [value]
    else:
        row[place] = str(value)
    return _dump(f"another type of {place}", body)


def _time_key(row: Any) -> Any:
    if isinstance(row, list):
        return 0
    return next(name for name in ("start", "timestamp", "id", "t") if name in row)


MUTATIONS: tuple[Mutation, ...] = (
    cut_off,
    not_json,
    garbage,
    encoded_twice,
    another_status,
    odd_node,
    odd_cell,
    endless_number,
    lost_key,
    lost_cell,
    extra_cell,
    broken_row,
    said_twice,
    disorder,
    another_unit_of_time,
    another_type,
)
