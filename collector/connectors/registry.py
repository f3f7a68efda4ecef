"""Every statement on connectors except the granting of tokens (see grant.py).

Writes that should be noticed at once touch `wake`, which the workers' change stream watches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from collector.connectors.connector import GLOBAL, Connector, Limits
from collector.connectors.connector_fields import (
    STATE_FIELDS,
    fresh_fields,
    growing_block,
    healed_limiter,
    states_for_new_windows,
)
from collector.errors import NotFound
from collector.mongo.client import NOW_MS, WAKE, Document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.connectors.window import Unit, Window
    from collector.mongo.client import Database

_NOT_DELETED = {"status": {"$ne": "deleted"}}


class ConnectorRegistry:
    """At most one connector per exchange, and what operators do with it."""

    def __init__(self, database: Database) -> None:
        self._connectors = database.connectors
        self._jobs = database.jobs
        self._system = database.system

    async def ensure(
        self, exchange_id: str, limits: Limits, *, notes: str | None = None
    ) -> tuple[Connector, bool]:
        """The exchange's connector, made with `limits` if there is none (or a deleted one).

        Idempotent under any concurrency; the second value tells whether this call made it.
        """
        fresh = fresh_fields(exchange_id, limits, notes)
        absent = {"$eq": [{"$ifNull": ["$status", "deleted"]}, "deleted"]}
        # An existing connector keeps every field it has; a deleted one starts over, but its
        # budget and its bans are facts about the exchange and stay.
        kept = {name: {"$ifNull": [f"${name}", value]} for name, value in STATE_FIELDS.items()}
        reborn = {name: {"$cond": [absent, value, f"${name}"]} for name, value in fresh.items()}
        update = [{"$set": {**kept, **reborn}}]
        try:
            before = await self._connectors.find_one_and_update(
                {"exchange_id": exchange_id},
                update,
                upsert=True,
                projection={"status": 1},
                return_document=ReturnDocument.BEFORE,
            )
        except DuplicateKeyError:
            # Two upserts met and the other one inserted: it is there now.
            return await self.get(exchange_id), False
        return await self.get(exchange_id), before is None or before["status"] == "deleted"

    async def ensure_global(self, limits: Limits) -> None:
        """Sets the limiter over all exchanges together. Its document lives in `system`."""
        fields = {**fresh_fields(GLOBAL, limits, None), "kind": "limiter"}
        await self._system.update_one({"exchange_id": GLOBAL}, [{"$set": fields}], upsert=True)

    async def get(self, exchange_id: str) -> Connector:
        document = await self._connectors.find_one({"exchange_id": exchange_id, **_NOT_DELETED})
        return _found(document, exchange_id)

    async def all(self) -> list[Connector]:
        documents = await self._connectors.find(_NOT_DELETED, sort=[("exchange_id", 1)])
        return [Connector.from_document(document) for document in documents]

    async def pause(self, exchange_id: str, *, until_ms: int | None = None) -> Connector:
        """Stops every worker at its next token. With `until_ms` it ends by itself."""
        return await self._change(exchange_id, {"status": "paused", "paused_until": until_ms})

    async def resume(self, exchange_id: str) -> Connector:
        """Lifts a pause. A ban stays: it is the exchange's word, not the operator's.

        Also heals a limiter whose clock was once ahead of the server's: its grants are dated
        now, so that they drain within one period instead of when that far moment comes.
        """
        return await self._change(
            exchange_id,
            {
                "status": "active",
                "paused_until": None,
                "limiter": healed_limiter(),
            },
        )

    async def block(
        self,
        exchange_id: str,
        reason: str,
        *,
        until_ms: int | None = None,
        for_ms: int | None = None,
    ) -> Connector:
        """Nobody asks this exchange before `until_ms`, or for `for_ms` from now.

        Both are on the server's clock. With neither, the block is twice as long as the last one
        if that is fresh in memory. Never shortens an earlier block.
        """
        until: Any = until_ms
        if until_ms is None:
            until = {"$add": [NOW_MS, growing_block() if for_ms is None else for_ms]}
        longer = {"$gt": [until, {"$ifNull": ["$blocked_until", 0]}]}
        return await self._change(
            exchange_id,
            {
                "blocked_until": {"$cond": [longer, until, "$blocked_until"]},
                "blocked_for_ms": {
                    "$cond": [longer, {"$subtract": [until, NOW_MS]}, "$blocked_for_ms"]
                },
                "blocked_reason": {"$cond": [longer, {"$literal": reason}, "$blocked_reason"]},
            },
        )

    async def unblock(self, exchange_id: str) -> Connector:
        """Forgets a ban, on an operator's word."""
        return await self._change(exchange_id, {"blocked_until": 0, "blocked_reason": None})

    async def change_limits(self, exchange_id: str, changes: dict[str, Any]) -> Connector:
        """Sets any of the limit fields and notes. What was granted already keeps counting."""
        fields: dict[str, Any] = {name: {"$literal": value} for name, value in changes.items()}
        windows: Sequence[Window] | None = changes.get("windows")
        if windows is not None:
            fields["windows"] = {"$literal": [window.to_document() for window in windows]}
        update = [{"$set": fields}, {"$set": {"limiter.windows": states_for_new_windows()}}]
        return await self._change(exchange_id, {}, first=update)

    async def report_usage(
        self, exchange_id: str, unit: Unit, period_ms: int, used: int, for_ms: int
    ) -> None:
        """Writes down what the exchange says it has counted. The limiter takes the larger."""
        matches = {"$and": [{"$eq": ["$$w.unit", unit]}, {"$eq": ["$$w.period_ms", period_ms]}]}
        until = {"$add": [NOW_MS, for_ms]}
        reported = {"$mergeObjects": ["$$w", {"reported": {"used": used, "until": until}}]}
        windows = {
            "$map": {
                "input": {"$ifNull": ["$limiter.windows", []]},
                "as": "w",
                "in": {"$cond": [matches, reported, "$$w"]},
            }
        }
        await self._connectors.update_one(
            {"exchange_id": exchange_id, "limiter.windows": {"$exists": True}},
            [
                {
                    "$set": {
                        "limiter.windows": windows,
                        "reported_usage": {
                            "unit": unit,
                            "period_ms": period_ms,
                            "used": used,
                            "at": NOW_MS,
                        },
                    }
                }
            ],
        )

    async def remove(self, exchange_id: str) -> Connector:
        """Soft delete. Its jobs are the caller's business (see jobs.queue)."""
        return await self._change(exchange_id, {"status": "deleted", "paused_until": None})

    async def update_job_counts(self, exchange_id: str) -> Connector:
        """Counts the exchange's jobs anew; a periodic duty, cheap and never wrong for long."""
        counted = await self._jobs.aggregate(
            [
                {"$match": {"exchange_id": exchange_id, **_NOT_DELETED}},
                {
                    "$group": {
                        "_id": None,
                        "all": {"$sum": 1},
                        "active": {"$sum": {"$cond": [{"$eq": ["$status", "active"]}, 1, 0]}},
                        "last_run_ms": {"$max": "$stats.last_run_at"},
                    }
                },
            ]
        )
        count = counted[0] if counted else {"all": 0, "active": 0, "last_run_ms": None}
        last_run = count["last_run_ms"]
        ran_at = {"$toDate": last_run} if last_run is not None else "$last_job_run_time"
        return await self._change(
            exchange_id,
            {
                "jobs_count": count["all"],
                "active_jobs_count": count["active"],
                "last_job_run_time": ran_at,
            },
            wake=False,
        )

    async def _change(
        self,
        exchange_id: str,
        fields: dict[str, Any],
        *,
        first: Sequence[Document] = (),
        wake: bool = True,
    ) -> Connector:
        noticed = {"wake": WAKE, "updated_at": "$$NOW"} if wake else {}
        document = await self._connectors.find_one_and_update(
            {"exchange_id": exchange_id, **_NOT_DELETED},
            [*first, {"$set": {**fields, **noticed}}],
            return_document=ReturnDocument.AFTER,
        )
        return _found(document, exchange_id)


def _found(document: Document | None, exchange_id: str) -> Connector:
    if document is None:
        raise NotFound(f"there is no connector {exchange_id!r}")
    return Connector.from_document(document)
