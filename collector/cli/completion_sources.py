"""Where a shell's completions come from: a database, or an API."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from collector.cli.completion import MOST, PATIENCE_SECONDS

_LIVE = {"$in": ["active", "paused"]}
_WORDS = ("symbol", "timeframe", "type")


@dataclass(frozen=True, slots=True)
class DatabaseSource:
    """A MongoDB that is asked once and not waited for."""

    uri: str = field(repr=False)
    name: str

    def symbols(self, exchange_id: str | None, begin: str) -> list[str]:
        of = {} if exchange_id is None else {"exchange_id": exchange_id}
        like = {**of, "symbol": {"$regex": f"^{re.escape(begin)}"}}
        listed = self._distinct("markets", {**like, "active": True}, "symbol")
        return listed or self._distinct("jobs", {**like, "status": _LIVE}, "symbol")

    def exchanges(self, begin: str) -> list[str]:
        like = {"exchange_id": {"$regex": f"^{re.escape(begin)}"}, "status": {"$ne": "deleted"}}
        return self._distinct("connectors", like, "exchange_id")

    def jobs(self, begin: str) -> list[tuple[str, str]]:
        from bson import ObjectId

        first, last = (ObjectId(begin.ljust(24, digit)) for digit in "0f")
        found = self._database()["jobs"].find(
            {"_id": {"$gte": first, "$lte": last}, "status": _LIVE},
            ["exchange_id", *_WORDS],
            sort=[("_id", 1)],
            limit=MOST,
        )
        return [(str(each["_id"]), _about(each)) for each in found]

    def words(self, words: list[str], begin: str) -> list[str]:
        """Symbols, timeframes and types of jobs of the exchange that is the first word."""
        of: dict[str, Any] = {"exchange_id": words[0], "status": _LIVE}
        if len(words) > 1:
            of["$and"] = [{"$or": [{name: word} for name in _WORDS]} for word in words[1:]]
        found = [each for name in _WORDS for each in self._distinct("jobs", of, name)]
        return [each for each in found if each not in words and each.startswith(begin)][:MOST]

    def _distinct(self, collection: str, query: dict[str, Any], name: str) -> list[str]:
        grouped = self._database()[collection].aggregate(
            [
                {"$match": query},
                {"$group": {"_id": f"${name}"}},
                {"$sort": {"_id": 1}},
                {"$limit": MOST},
            ]
        )
        return [each["_id"] for each in grouped if each["_id"]]

    def _database(self) -> Any:
        from pymongo import MongoClient

        wait_ms = round(PATIENCE_SECONDS * 1000)
        client: MongoClient[Any] = MongoClient(
            self.uri,
            serverSelectionTimeoutMS=wait_ms,
            connectTimeoutMS=wait_ms,
            socketTimeoutMS=wait_ms,
        )
        return client[self.name]


@dataclass(frozen=True, slots=True)
class ApiSource:
    """An API that is asked once and not waited for."""

    url: str
    token: str | None = field(repr=False)

    def symbols(self, exchange_id: str | None, begin: str) -> list[str]:
        if exchange_id is None:
            jobs = self._items("jobs", {})
            symbols = {str(each["symbol"]) for each in jobs if each["symbol"]}
            return sorted(each for each in symbols if each.startswith(begin))
        asked = {"exchange_id": exchange_id, "search": f"{begin}*", "active": "true"}
        return [each["symbol"] for each in self._items("markets", asked)]

    def exchanges(self, begin: str) -> list[str]:
        found = (each["exchange_id"] for each in self._items("connectors", {}))
        return [each for each in found if each.startswith(begin)]

    def jobs(self, begin: str) -> list[tuple[str, str]]:
        asked = {"id_prefix": begin} if len(begin) >= 4 else {}
        found = self._items("jobs", asked)
        return [(each["id"], _about(each)) for each in found if each["id"].startswith(begin)]

    def words(self, words: list[str], begin: str) -> list[str]:
        jobs = [
            each
            for each in self._items("jobs", {"exchange_id": words[0]})
            if all(word in (each[name] for name in _WORDS) for word in words[1:])
        ]
        found = sorted({each[name] for name in _WORDS for each in jobs if each[name]})
        return [each for each in found if each not in words and each.startswith(begin)]

    def _items(self, path: str, asked: dict[str, str]) -> list[Any]:
        from collector.remote.api_client import ApiAddress

        address = ApiAddress(self.url, self.token)
        found = address.get(path, {**asked, "limit": str(MOST)}, seconds=PATIENCE_SECONDS)
        items: list[Any] = found["items"]
        return items


def _about(job: Any) -> str:
    return " ".join(str(job[name]) for name in ("exchange_id", *_WORDS) if job.get(name))
