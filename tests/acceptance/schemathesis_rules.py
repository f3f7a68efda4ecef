"""What schemathesis cannot know about this API; loaded by its own process.

Its checks judge an answer by the document alone, so some of them complain about answers that are
right. And there is a question that it does not ask: whether it ever got through.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import requests
import schemathesis
from bson import ObjectId
from schemathesis.core.failures import ServerError
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import IgnoredAuth, RejectedPositiveData

if TYPE_CHECKING:
    from typing import Any

    from schemathesis import Case, CheckContext, HookContext, Response
    from schemathesis.core.failures import Failure


@schemathesis.hook
def before_call(_context: HookContext, case: Case, _kwargs: dict[str, Any]) -> None:
    """Asks about a job that is there: those that schemathesis knows may have been removed by now.

    Except in chains, which also look whether what they have removed is gone.
    """
    job_id = case.path_parameters.get("job_id")
    is_chain = case.meta is not None and case.meta.phase.name is TestPhase.STATEFUL
    if ObjectId.is_valid(job_id) and not is_chain:
        jobs = f"{case.operation.base_url.rstrip('/')}/api/v1/jobs"
        key = {"Authorization": f"Bearer {os.environ['API_KEY']}"}
        job = {"exchange_id": "simulated", "type": "tail_refresh"}
        made = requests.post(jobs, json=job, headers=key, timeout=30)
        if made.ok:
            case.path_parameters["job_id"] = made.json()["id"]


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Whether it is a failure here, too."""
    if isinstance(failure, RejectedPositiveData):
        return not _refused_for_its_meaning(response)
    if isinstance(failure, ServerError):
        # No worker runs here: an event that was accepted is never applied, however long one waits.
        return b"history_not_applied" not in response.content
    if isinstance(failure, IgnoredAuth):
        # After ten wrong keys in a minute the answer to the next one is 429: no less a refusal.
        return "got `429" not in failure.message
    return True


def _refused_for_its_meaning(response: Response) -> bool:
    """A schema says types, ranges and names (`invalid_request`), and those it has to say rightly.

    It cannot say that an exchange lists a symbol or that `until` comes after `since`. Such a
    refusal names the field that is to blame. Nor can it say which tag `If-Match` has to name.
    """
    if response.status_code == 412:
        return True
    if response.status_code != 422:
        return False
    problem = response.json()
    named = [error["field"] and error["reason"] and error["code"] for error in problem["errors"]]
    return problem["code"] != "invalid_request" and bool(named) and all(named)


@schemathesis.check
class EverythingWasReached:
    """Each operation succeeded at least once, with each kind of content that it documents.

    Without this a run in which all requests are refused would pass.
    """

    def __init__(self) -> None:
        self._documented: set[tuple[str, str]] = set()
        self._seen: set[tuple[str, str]] = set()

    def after_response(self, ctx: CheckContext, response: Response, case: Case) -> None:
        label = case.operation.label
        responses = case.operation.definition.raw["responses"]
        success = next(each for status, each in responses.items() if status.startswith("2"))
        self._documented |= {(label, kind) for kind in success["content"]}
        if 200 <= response.status_code < 300:
            kind = response.headers["content-type"][0].partition(";")[0]
            self._seen.add((label, kind))

    def after_run(self, ctx: CheckContext) -> None:
        missed = sorted(self._documented - self._seen)
        assert not missed, f"never answered as documented: {missed}"
