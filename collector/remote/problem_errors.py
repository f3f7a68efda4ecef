"""Problems that the API answers, as the errors they were before they became problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from collector.errors import ApiRefused, ApiUnavailable, CollectorError, InvalidInput, RetryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

WRONG_KEY = "the API does not accept this key: set COLLECTOR_TOKEN to another one"


def error_of(status: int, problem: Mapping[str, Any], path: str) -> CollectorError:
    """What a front end on the other machine would have raised."""
    code, detail = str(problem.get("code") or ""), str(problem.get("detail") or "")
    if status == 401 or code == "too_many_wrong_keys":
        return ApiRefused(WRONG_KEY)
    if status == 403:
        return ApiRefused(detail or "the key is not allowed to do this")
    if code == "no_such_route" or not code:
        words = "has no" if status == 404 else f"answers {status} to"
        return ApiUnavailable(f"the API {words} {path}: it is of another version, or no collector")
    if status == 422 and problem.get("errors"):
        return _invalid(problem["errors"][0], detail)
    return _by_code(code, detail)


def unreachable(url: str, error: Exception) -> ApiUnavailable:
    """No answer at all."""
    if isinstance(error, httpx.TimeoutException):
        return ApiUnavailable(f"{url}: no answer in time")
    if isinstance(error, httpx.ConnectError):
        return ApiUnavailable(f"{url}: no API answers there; `collector up` starts one")
    return ApiUnavailable(f"{url}: {str(error).partition(chr(10))[0] or type(error).__name__}")


def _invalid(blamed: Mapping[str, Any], detail: str) -> InvalidInput:
    """The reason names what is near already."""
    error = InvalidInput(str(blamed.get("field")), str(blamed.get("code")), detail)
    error.near = tuple(blamed.get("near") or ())
    return error


def _by_code(code: str, detail: str) -> CollectorError:
    """An error of the class that has this code; exit codes and reactions are those of the class."""
    kind = _kinds().get(code, CollectorError)
    error = kind.__new__(kind)
    error.args = (detail,)
    error.code = code
    if isinstance(error, RetryLater):
        error.retry_after_ms = None
    return error


def _kinds() -> dict[str, type[CollectorError]]:
    """The outermost class of each code; a subclass without a code of its own has its parent's."""
    found: dict[str, type[CollectorError]] = {}
    waiting: list[type[CollectorError]] = [CollectorError]
    for kind in waiting:
        found.setdefault(kind.code if "code" in vars(kind) else "", kind)
        waiting += kind.__subclasses__()
    return found
