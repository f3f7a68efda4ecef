"""Jobs by REST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from collector.errors import NotFound
from collector.fleet.interface import Made
from collector.fleet.remote.dates import with_dates
from collector.operations.bulk_jobs import BulkAnswer

if TYPE_CHECKING:
    from collector.fleet.interface import Filters, Shown
    from collector.operations.new_job import JobRequest
    from collector.remote.api_client import ApiClient


@dataclass(frozen=True, slots=True)
class RemoteJobs:
    api: ApiClient

    async def page(self, filters: Filters, limit: int, cursor: str | None = None) -> Shown:
        asked = {**filters, "limit": str(limit)}
        if cursor is not None:
            asked["cursor"] = cursor
        page: Shown = with_dates(await self.api.get("jobs", asked))
        return page

    async def with_prefix(self, prefix: str, limit: int) -> list[Shown]:
        asked = {"id_prefix": prefix, "limit": str(limit)}
        found: list[Shown] = with_dates((await self.api.get("jobs", asked))["items"])
        return found

    async def get(self, job_id: str) -> Shown:
        try:
            shown: Shown = with_dates(await self.api.get(_at(job_id)))
        except NotFound:
            # A deleted one is in lists only.
            if len(job_id) != 24:
                raise
            asked = {"id_prefix": job_id, "status": "deleted"}
            found = with_dates((await self.api.get("jobs", asked))["items"])
            if not found:
                raise
            return found[0]  # type: ignore[no-any-return]
        return shown

    async def runs(self, job_id: str, limit: int) -> list[Shown]:
        try:
            return (await self.api.get(f"{_at(job_id)}/runs", {"limit": str(limit)}))["items"]  # type: ignore[no-any-return]
        except NotFound:
            return []  # It was deleted.

    async def add(self, request: JobRequest) -> Made:
        body = {
            "exchange_id": request.exchange_id,
            "type": request.type,
            "symbol": request.symbol,
            "timeframe": request.timeframe,
            "since": request.since,
            "until": request.until,
            "schedule": None if request.schedule is None else request.schedule.to_document(),
            "priority": request.priority,
            "params": dict(request.params),
        }
        given = {name: value for name, value in body.items() if value is not None}
        answer = await self.api.ask("POST", "jobs", given, patient=True)
        shown = with_dates(answer.body)
        return Made(shown, answer.status == 201, tuple(shown.pop("notes", ())))

    async def change(self, verb: str, job_id: str) -> Shown:
        method, path = ("DELETE", "") if verb == "remove" else ("POST", f"/{verb}")
        answer = await self.api.ask(method, f"{_at(job_id)}{path}")
        shown: Shown = with_dates(answer.body)
        return shown

    async def change_many(self, verb: str, filters: Filters, *, every: bool) -> BulkAnswer:
        chosen = {
            name: value if isinstance(value, str) else list(value)
            for name, value in filters.items()
        }
        body = {"filter": {**chosen, **({"all": True} if every else {})}}
        answer = (await self.api.ask("POST", f"jobs/{verb}", body, patient=True)).body
        return BulkAnswer(answer["matched"], answer["changed"], tuple(answer["refused"]))


def _at(job_id: str) -> str:
    return f"jobs/{quote(job_id, safe='')}"
