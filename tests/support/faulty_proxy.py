"""A proxy to an object store that fails on demand: refusals, lost answers, cut uploads."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Trouble(Enum):
    """What may happen on the way."""

    INTERNAL = 500
    BUSY = 503
    CUT = "half of the body arrives, then the line is dead"
    LOST = "the request is done, and its answer never comes back"
    AGREEABLE = "yes to everything, whatever the conditions"


class FaultyProxy:
    """Listens at `host`. `rule` decides about every request, by its method and its path."""

    def __init__(self, host: str, rule: Callable[[str, str], Trouble | None]) -> None:
        self.host = host
        self.rule = rule


@contextmanager
def faulty_proxy(server: str) -> Iterator[FaultyProxy]:
    """A proxy before `server` (host and port) that begins without faults."""
    proxy = FaultyProxy("", lambda _method, _path: None)

    class Handler(_Handler):
        upstream = server
        owner = proxy

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    proxy.host = f"127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listening.shutdown()
        listening.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: str
    owner: FaultyProxy

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: a test knows its own requests."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        trouble = self.owner.rule(self.command, self.path)
        if trouble in (Trouble.INTERNAL, Trouble.BUSY):
            self._answer(trouble.value, {}, b"" if self.command == "HEAD" else b"not now")
            return
        if trouble is Trouble.AGREEABLE:
            self._answer(200, {"etag": '"1"'}, b"")
            return
        sent = body[: len(body) // 2] if trouble is Trouble.CUT else body
        line = http.client.HTTPConnection(self.upstream, timeout=30)
        try:
            line.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                line.putheader(name, value)
            line.endheaders(sent)
            if trouble is Trouble.CUT:
                self.close_connection = True
                return
            with line.getresponse() as answer:
                data = answer.read()
            if trouble is Trouble.LOST:
                self.close_connection = True
                return
            self._answer(answer.status, dict(answer.getheaders()), data)
        finally:
            line.close()

    def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        told = {name.lower(): value for name, value in headers.items()}
        length = told.pop("content-length", str(len(data)))
        told.pop("transfer-encoding", None)
        for name, value in told.items():
            if name not in ("date", "server", "connection"):
                self.send_header(name, value)
        self.send_header("content-length", length if self.command == "HEAD" else str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815
