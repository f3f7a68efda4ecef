"""Every statement on connectors except the granting of tokens (see grant.py).

Writes that should be noticed at once touch `wake`, which the workers' change stream watches.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from collector.connectors.changed_limits import under_new_limits
from collector.connectors.clock_correction import correction
from collector.connectors.connector import GLOBAL, Connector, Limits
from collector.connectors.connector_fields import (
    BLOCK_FORGOTTEN_MS,
    FIRST_BLOCK_MS,
    SHAPE_FIELDS,
    STATE_FIELDS,
    fresh_fields,
    growing_block,
    shortest_period_ms,
    shown_window,
)
from collector.errors import Changed, NotFound
from collector.exchanges.throttle_log import QUOTAS
from collector.mongo.client import NOW_MS, WAKE, Document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.connectors.window import Unit, Window
    from collector.exchanges.quirks.spacing import Spacing
    from collector.mongo.client import Database

_NOT_DELETED = {"status": {"$ne": "deleted"}}


class ConnectorRegistry:
    """At most one connector per exchange, and what operators do with it."""

    def __init__(self, database: Database) -> None:
        self._connectors = database.connectors
        self._system = database.system
        self._server_clock = database.server_clock

    async def ensure(
        self, exchange_id: str, limits: Limits, *, notes: str | None = None
    ) -> tuple[Connector, bool]:
        """The exchange's connector, created with `limits` if there is none (or a deleted one).

        Idempotent under any concurrency; the second value is True when this call created it.
        """
        fresh = fresh_fields(exchange_id, limits, notes)
        absent = {"$eq": [{"$ifNull": ["$status", "deleted"]}, "deleted"]}
        # An existing connector keeps all its fields; a deleted one starts over, but its grants and
        # bans are facts about the exchange and stay.
        kept = {name: {"$ifNull": [f"${name}", value]} for name, value in STATE_FIELDS.items()}
        reborn = {name: {"$cond": [absent, value, f"${name}"]} for name, value in fresh.items()}
        carried = {
            name: {"$cond": ["$_reborn", value, f"${name}"]}
            for name, value in {**under_new_limits(), **shown_window()}.items()
        }
        maker = uuid.uuid4().hex
        update = [
            {"$set": {"_reborn": absent}},
            {"$set": {**kept, **reborn, "made_by": {"$cond": [absent, maker, "$made_by"]}}},
            {"$set": carried},
            {"$unset": "_reborn"},
        ]
        while True:
            try:
                document = await self._connectors.find_one_and_update(
                    {"exchange_id": exchange_id},
                    update,
                    upsert=True,
                    return_document=ReturnDocument.AFTER,
                )
            except DuplicateKeyError:
                continue  # Two upserts met and the other one inserted: it is there now.
            # As it was at that moment: another process may delete it next.
            connector = _found(document, exchange_id)
            return connector, connector.document.get("made_by") == maker

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

    async def pause(
        self,
        exchange_id: str,
        *,
        until_ms: int | None = None,
        only_if: Document | None = None,
    ) -> Connector:
        """Stops every worker at its next token. With `until_ms` it ends by itself."""
        fields = {"status": "paused", "paused_until": until_ms}
        return await self._change(exchange_id, fields, only_if=only_if)

    async def resume(self, exchange_id: str, *, only_if: Document | None = None) -> Connector:
        """Lifts a pause. A ban stays: it was imposed by the exchange, not by the operator."""
        fields = {"status": "active", "paused_until": None}
        return await self._change(exchange_id, fields, only_if=only_if)

    async def correct_dates(self) -> int:
        """Corrects what a clock that was ahead has dated too far in the future (see
        clock_correction.py); returns in how many connectors.
        """
        result = await self._connectors.update_many(*correction())
        return result.modified_count

    async def block(
        self,
        exchange_id: str,
        reason: str,
        *,
        until_ms: int | None = None,
        for_ms: int | None = None,
        ban: bool = False,
        sent_ms: int | None = None,
    ) -> Connector:
        """Blocks requests to this exchange until `until_ms`, or for `for_ms` from now.

        Both are on the server's clock. With neither, an exceeded limit blocks for one period and a
        `ban` for half a minute, twice as long each time it repeats soon after. Never shortens an
        earlier block. Refusals of one burst count once: a request that was sent, at `sent_ms`,
        before the block was stored belongs to the same burst, and only a time that it names counts,
        from now on.
        """
        blocked_at = {"$ifNull": ["$blocked_at", 0]}
        same_burst = sent_ms is not None and {"$lte": [sent_ms, blocked_at]}
        until: Any = until_ms
        if until_ms is None and for_ms is not None:
            until = {"$add": [NOW_MS, for_ms]}
        elif until_ms is None:
            period = shortest_period_ms()
            growing = (
                growing_block(FIRST_BLOCK_MS, BLOCK_FORGOTTEN_MS)
                if ban
                else growing_block(period, period)
            )
            until = {"$cond": [same_burst, 0, {"$add": [NOW_MS, growing]}]}
        longer = {"$gt": [until, {"$ifNull": ["$blocked_until", 0]}]}
        return await self._change(
            exchange_id,
            {
                "blocked_until": {"$cond": [longer, until, "$blocked_until"]},
                "blocked_at": {"$cond": [longer, NOW_MS, "$blocked_at"]},
                "blocked_for_ms": {
                    "$cond": [longer, {"$subtract": [until, NOW_MS]}, "$blocked_for_ms"]
                },
                "blocked_reason": {"$cond": [longer, {"$literal": reason}, "$blocked_reason"]},
            },
        )

    async def unblock(self, exchange_id: str, *, only_if: Document | None = None) -> Connector:
        """Removes a ban, by an operator's decision."""
        forgotten = {"blocked_until": 0, "blocked_reason": None, "blocked_for_ms": 0}
        return await self._change(exchange_id, forgotten, only_if=only_if)

    async def change_limits(
        self, exchange_id: str, changes: dict[str, Any], *, only_if: Document | None = None
    ) -> Connector:
        """Sets any of the limit fields and notes. What was granted already keeps counting."""
        fields: dict[str, Any] = {name: {"$literal": value} for name, value in changes.items()}
        windows: Sequence[Window] | None = changes.get("windows")
        if windows is not None:
            fields["windows"] = {"$literal": [window.to_document() for window in windows]}
        spacing: Spacing | None = changes.get("spacing")
        if spacing is not None:
            fields["spacing"] = {"$literal": spacing.to_document()}
        update: list[Document] = [{"$set": fields}]
        if not changes.keys().isdisjoint(SHAPE_FIELDS):
            update.append({"$set": {**under_new_limits(), **shown_window()}})
        return await self._change(exchange_id, {}, first=update, only_if=only_if)

    async def set_cadence(
        self, exchange_id: str, cadence: Mapping[str, float | str] | None
    ) -> None:
        """Records how often new bars are polled for: seconds for `m1` and `m5`, and why.

        None: prices are not watched, so polls come as often as they may.
        """
        await self._change(exchange_id, {"cadence": {"$literal": cadence and dict(cadence)}})

    async def report_usage(
        self, exchange_id: str, unit: Unit, period_ms: int, used: int, *, sent_ms: int
    ) -> None:
        """Records what the exchange reports as counted. The limiter uses the larger figure.

        An answer that a later one has overtaken, by `sent_ms`, is ignored.
        """
        at = {"$ifNull": ["$$w.reported.at", 0]}
        live = {"$gt": [{"$ifNull": ["$$w.reported.until", 0]}, NOW_MS]}
        matches = {
            "$and": [
                {"$eq": ["$$w.unit", unit]},
                {"$eq": ["$$w.period_ms", period_ms]},
                {"$or": [{"$not": live}, {"$lt": [at, sent_ms]}]},
            ]
        }
        reported = {"used": used, "until": {"$add": [NOW_MS, period_ms]}, "at": sent_ms}
        windows = {
            "$map": {
                "input": {"$ifNull": ["$limiter.windows", []]},
                "as": "w",
                "in": {
                    "$cond": [matches, {"$mergeObjects": ["$$w", {"reported": reported}]}, "$$w"]
                },
            }
        }
        shown = {"unit": unit, "period_ms": period_ms, "used": used, "at": NOW_MS}
        await self._connectors.update_one(
            {"exchange_id": exchange_id, "limiter.windows": {"$exists": True}},
            [{"$set": {"limiter.windows": windows, "reported_usage": shown}}],
        )

    async def register_skip(
        self, exchange_id: str, key: str, reason: str, *, at_ms: int | None = None
    ) -> None:
        """Counts a request for the series `key` that was refused, `at_ms` on the server's clock."""
        symbol, _, tf = key.rpartition(":")
        at = f"budget.skipped.{_field_name(key)}"
        now_ms = self._server_clock.now_ms() if at_ms is None else at_ms
        update: Document = {
            "$inc": {f"{at}.count": 1, f"{at}.by_reason.{reason}": 1},
            "$set": {
                f"{at}.symbol": symbol,
                f"{at}.tf": tf,
                f"{at}.last_reason": reason,
                "budget.last_denied_reason": reason,
            },
        }
        if reason in QUOTAS:
            update["$max"] = {"budget.quota_denied_at": now_ms}
        await self._connectors.update_one({"exchange_id": exchange_id}, update)

    async def _change(
        self,
        exchange_id: str,
        fields: dict[str, Any],
        *,
        first: Sequence[Document] = (),
        only_if: Document | None = None,
    ) -> Connector:
        """`only_if` are values that the connector must still have; Changed when it has others."""
        noticed = {"wake": WAKE, "updated_at": "$$NOW"}
        document = await self._connectors.find_one_and_update(
            {"$and": [{"exchange_id": exchange_id, **_NOT_DELETED}, only_if or {}]},
            [*first, {"$set": {**fields, **noticed}}],
            return_document=ReturnDocument.AFTER,
        )
        if document is None and only_if is not None:
            await self.get(exchange_id)
            raise Changed(f"the connector {exchange_id!r} was changed meanwhile")
        return _found(document, exchange_id)


def _field_name(key: str) -> str:
    """A dot would make a path of it."""
    return key.replace(".", "\uff0e")


def _found(document: Document | None, exchange_id: str) -> Connector:
    if document is None:
        raise NotFound(f"there is no connector {exchange_id!r}")
    return Connector.from_document(document)
