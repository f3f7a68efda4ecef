"""The exchange's back door, /sim: faults, listings, journal, truth. Never counted, never faulty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from collector.simulated.faults.catalogue import parse_faults
from collector.simulated.relisting import changed
from collector.simulated.request import VenueError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.simulated.faults.book import FaultBook
    from collector.simulated.journal import Journal
    from collector.simulated.sockets import SocketCounts
    from collector.simulated.venue import SimulatedVenue

_PAGE = 10_000
_ARROW = "application/vnd.apache.arrow.stream"


class Control:
    """Answers /sim/faults, /sim/listings, /sim/journal, /sim/summary, /sim/sockets and
    /sim/truth."""

    def __init__(
        self,
        venue: SimulatedVenue,
        faults: FaultBook,
        journal: Journal,
        sockets: SocketCounts,
        now_ms: Callable[[], int],
    ) -> None:
        self._sockets = sockets
        self._venue = venue
        self._now_ms = now_ms
        self._faults = faults
        self._journal = journal
        self._routes: dict[tuple[str, str], Callable[[web.BaseRequest], Awaitable[Any]]] = {
            ("GET", "faults"): self._list_faults,
            ("POST", "faults"): self._add_faults,
            ("PUT", "faults"): self._replace_faults,
            ("DELETE", "faults"): self._remove_faults,
            ("POST", "listings"): self._change_listings,
            ("GET", "journal"): self._read_journal,
            ("DELETE", "journal"): self._clear_journal,
            ("GET", "summary"): self._summary,
            ("GET", "sockets"): self._socket_counts,
            ("GET", "truth"): self._truth,
        }

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        route = self._routes.get((request.method, request.path.removeprefix("/sim/")))
        if route is None:
            return _json({"error": f"no {request.method} {request.path} here"}, 404)
        try:
            found = await route(request)
        except (ValueError, VenueError) as error:
            return _json({"error": str(error)}, 400)
        return found if isinstance(found, web.StreamResponse) else _json(found)

    async def _list_faults(self, _request: web.BaseRequest) -> Any:
        return {"faults": self._faults.listing()}

    async def _add_faults(self, request: web.BaseRequest) -> Any:
        ids = self._faults.add(*parse_faults(orjson.loads(await request.read())))
        return {"ids": ids, "faults": self._faults.listing()}

    async def _replace_faults(self, request: web.BaseRequest) -> Any:
        ids = self._faults.replace(parse_faults(orjson.loads(await request.read())))
        return {"ids": ids, "faults": self._faults.listing()}

    async def _remove_faults(self, request: web.BaseRequest) -> Any:
        ids = request.query.getall("id", [])
        if ids:
            self._faults.remove(*map(int, ids))
        else:
            self._faults.clear()
        return {"faults": self._faults.listing()}

    async def _change_listings(self, request: web.BaseRequest) -> Any:
        asked = orjson.loads(await request.read())
        if not isinstance(asked, dict):
            raise ValueError("an object is expected")
        self._venue.list_anew(changed(self._venue.truth.listings, asked, self._now_ms()))
        return {"symbols": [listing.symbol for listing in self._venue.truth.listings]}

    async def _read_journal(self, request: web.BaseRequest) -> Any:
        since = int(request.query.get("since", 0))
        entries = self._journal.since(since, min(int(request.query.get("limit", _PAGE)), _PAGE))
        last = entries[-1].seq if entries else since
        return {"entries": [entry._asdict() for entry in entries], "next": last}

    async def _clear_journal(self, _request: web.BaseRequest) -> Any:
        self._journal.clear()
        return {"next": self._journal.next_seq - 1}

    async def _summary(self, request: web.BaseRequest) -> Any:
        limit, period = request.query.get("limit"), request.query.get("period_ms")
        return self._journal.summary(
            None if limit is None else int(limit), None if period is None else float(period)
        )

    async def _socket_counts(self, _request: web.BaseRequest) -> Any:
        return self._sockets.listing()

    async def _truth(self, request: web.BaseRequest) -> Any:
        query = request.query
        missing = [name for name in ("symbol", "start", "end") if name not in query]
        if missing:
            raise ValueError(f"missing: {', '.join(missing)}")
        bars = self._venue.truth.bars(
            query["symbol"], query.get("interval", "1m"), int(query["start"]), int(query["end"])
        )
        if query.get("format") == "arrow":
            return web.Response(body=_arrow_stream(bars.arrow()), content_type=_ARROW)
        return _json(bars.columns())


def _json(content: Any, status: int = 200) -> web.Response:
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return web.Response(body=body, status=status, content_type="application/json")


def _arrow_stream(table: Any) -> bytes:
    import pyarrow as pa  # Imported late: most runs never need it.

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream
