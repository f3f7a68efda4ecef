"""One line from the parent, read and judged."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .failures import RefusedRequest

# Longer than any lease; a timer cannot be set to just any number.
_LONGEST_LEASE_MS = 24 * 3600 * 1000


class Request(NamedTuple):
    id: int
    op: str
    lease_seconds: float
    fields: dict[str, Any]

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if not isinstance(value, str) or not value:
            raise RefusedRequest("bad_request", f"{self.op} needs {name}, a text")
        return value

    def number(self, name: str) -> int:
        value = self.fields.get(name)
        if type(value) is not int:
            raise RefusedRequest("bad_request", f"{self.op} needs {name}, a whole number")
        return value

    def texts(self, name: str) -> list[str] | None:
        """A list of texts; None when the field is null or left out."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise RefusedRequest("bad_request", f"{self.op} needs {name}, a list of texts")
        return value


class MalformedRequest(Exception):
    """Not a request. `request_id` is its number where that much could be read."""

    def __init__(self, message: str, request_id: int | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


def parsed(line: bytes | None) -> Request:
    if line is None:
        raise MalformedRequest("the line is too long")
    try:
        fields = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        # The line itself is not repeated: it may hold a password.
        raise MalformedRequest("the line is not JSON") from None
    if not isinstance(fields, dict):
        raise MalformedRequest("the line is not an object")
    request_id, op, lease_ms = fields.get("id"), fields.get("op"), fields.get("lease_ms")
    if type(request_id) is not int:
        raise MalformedRequest("the line has no id")
    if not isinstance(op, str):
        raise MalformedRequest("the line has no op", request_id)
    if isinstance(lease_ms, bool) or not isinstance(lease_ms, (int, float)):
        raise MalformedRequest("the line has no lease_ms", request_id)
    if not 0 <= lease_ms <= _LONGEST_LEASE_MS:
        raise MalformedRequest("lease_ms is out of range", request_id)
    return Request(request_id, op, lease_ms / 1000, fields)
