"""Every error of the library has its problem."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from api import problems
from api.schemas.fields import moment_ms
from collector import errors
from collector.errors import CollectorError, DatabaseUnavailable, RateLimited, StoreError
from collector.listening import host_name

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPECTED = {
    errors.NotFound: 404,
    errors.JobConflict: 409,
    errors.BadRequest: 422,
    errors.DatabaseUnavailable: 503,
    errors.MarketsUnavailable: 503,
    errors.ExchangeUnavailable: 503,
    errors.SchemaMismatch: 503,
    errors.StoreError: 500,
}


def every_error(kind: type[CollectorError] = CollectorError) -> Iterator[type[CollectorError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from every_error(child)


@pytest.mark.parametrize("kind", list(every_error()), ids=lambda kind: kind.__name__)
def test_every_error_answers_with_a_status(kind: type[CollectorError]) -> None:
    error = kind.__new__(kind)
    assert problems.status_of(error) in problems.TITLES


@pytest.mark.parametrize(("kind", "status"), EXPECTED.items(), ids=lambda value: str(value))
def test_statuses(kind: type[CollectorError], status: int) -> None:
    assert problems.status_of(kind("x")) == status


def test_retry_after_is_in_whole_seconds_and_never_zero() -> None:
    for error, seconds in (
        (RateLimited("x", 1_001, "window"), "2"),
        (RateLimited("x", 0, "window"), "1"),
        (DatabaseUnavailable("gone"), str(problems.RETRY_AFTER_SECONDS)),
    ):
        assert problems.of_error(error).headers["Retry-After"] == seconds


def test_what_an_operator_must_mend_is_not_told_to_clients() -> None:
    body = json.loads(bytes(problems.of_error(StoreError("secret place is damaged")).body))
    assert "secret" not in str(body)
    assert body["code"] == "store_error"


def test_text_that_is_no_text_is_escaped() -> None:
    body = json.loads(bytes(problems.problem_response(422, "x", "\ud800").body))
    assert body["detail"] == "\\ud800"


def test_every_code_of_the_api_is_in_the_docs() -> None:
    root = Path(__file__).parents[2]
    documented = (root / "docs" / "errors.md").read_text("utf-8")
    used: set[str] = set()
    for path in (*(root / "api").rglob("*.py"), *(root / "collector").rglob("*.py")):
        text = path.read_text("utf-8")
        used |= set(re.findall(r'InvalidInput\(\s*[^,]+,\s*"([a-z_]+)"', text))
        used |= set(re.findall(r'(?:Refusal|problem_response)\(\s*\d+,\s*"([a-z_]+)"', text))
        used |= set(re.findall(r'_unauthenticated\("([a-z_]+)"', text))
    used |= set(problems._CODES.values()) | {"invalid_request", "http_error"}
    assert len(used) > 20
    assert [code for code in sorted(used) if f"`{code}`" not in documented] == []


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:80", "localhost"),
        ("[::1]:80", "::1"),
        ("a@localhost", None),
        ("localhost:x", None),
        ("localhost/x", None),
        ("[::1", None),
        ("", None),
    ],
)
def test_the_name_in_a_host_header(host: str, name: str | None) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        (0, 0),
        (1735689600000.0, 1_735_689_600_000),
        ("1735689600000", 1_735_689_600_000),
        ("1735689600", 1_735_689_600_000),
        ("20250101", 1_735_689_600_000),
        ("2025-01-01", 1_735_689_600_000),
        ("2025-01-01T00:00:00Z", 1_735_689_600_000),
        ("2025-01-01T02:00:00+02:00", 1_735_689_600_000),
    ],
)
def test_moments(given: object, ms: int) -> None:
    assert moment_ms(given) == ms


@pytest.mark.parametrize(
    "given", [True, 1.5, None, "", "soon", -1, 2**60, "9" * 5000, "0001-01-01T00:00:00+14:00", {}]
)
def test_what_is_no_moment(given: object) -> None:
    with pytest.raises(ValueError, match=r"is no moment|is not between|must be"):
        moment_ms(given)
