"""ETag, If-Match and If-None-Match of connectors and jobs.

A tag has two halves: one of what operators change (status, limits, schedule, ...), one of all that
is shown. `If-None-Match` compares the whole: 304 only when nothing that is shown is different.
`If-Match` compares the first half: the counters of a busy exchange change with every request, and
must not keep anyone from changing a limit that is still the one they saw.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Header
from pydantic import BaseModel
from starlette.responses import Response

from collector.errors import Changed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.connectors.connector import Connector
    from collector.jobs.job import Job

V = TypeVar("V", bound=BaseModel)
ETAG: dict[str, Any] = {
    "ETag": {
        "description": "Of this version; for `If-Match` and `If-None-Match`",
        "schema": {"type": "string"},
    }
}
"""A header of answers, for the OpenAPI document."""

_IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="Do it only if the settings are still those of this `ETag`; else 412",
        examples=['"0f3b-77aa"'],
    ),
]
_IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        description="Answer only if it is not this `ETag` any more; else 304",
        examples=['"0f3b-77aa"'],
    ),
]


def tag_of(settings: Mapping[str, Any], view: BaseModel) -> str:
    """The tag of something as it is shown now."""
    own = json.dumps(settings, sort_keys=True, default=str).encode()
    return f'"{_digest(own)}-{_digest(view.model_dump_json().encode())}"'


class UnlessKnown:
    """For a GET: what the client has already."""

    def __init__(self, if_none_match: _IfNoneMatch = None) -> None:
        self._known = if_none_match

    def answer(self, of: Connector | Job, view: V, response: Response) -> V | Response:
        """The view with its tag, or 304."""
        tag = tag_of(of.settings, view)
        response.headers["ETag"] = tag
        if self._known is not None and tag in _listed(self._known, tag):
            return Response(status_code=304, headers={"ETag": tag})
        return view


class OnlyIfSeen:
    """For a change: what the client saw last."""

    def __init__(self, if_match: _IfMatch = None) -> None:
        self._seen = if_match

    def only_if(self, of: Connector | Job) -> dict[str, Any] | None:
        """Values that must still be there when it is changed; None for whatever is there.

        Changed when they are not there already.
        """
        if self._seen is None:
            return None
        own = _digest(json.dumps(of.settings, sort_keys=True, default=str).encode())
        halves = {tag.strip('"').partition("-")[0] for tag in _listed(self._seen, f'"{own}-"')}
        if own not in halves:
            raise Changed("it was changed since you read it: read it again")
        return of.settings

    def answer(self, of: Connector | Job, view: V, response: Response) -> V:
        """The view after the change, with its tag."""
        response.headers["ETag"] = tag_of(of.settings, view)
        return view


IfNoneMatch = Annotated[UnlessKnown, Depends(UnlessKnown)]
IfMatch = Annotated[OnlyIfSeen, Depends(OnlyIfSeen)]


def _listed(header: str, any_tag: str) -> list[str]:
    """The tags of a header; a star stands for any."""
    tags = [each.strip().removeprefix("W/") for each in header.split(",")]
    return [any_tag if tag == "*" else tag for tag in tags]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
