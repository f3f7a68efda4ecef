"""The sidecar's main thread: takes requests in turn, and makes the calls of the SDK."""

from __future__ import annotations

import os
import platform
import resource
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

from . import PROTOCOL
from .ending import Ending
from .failures import RefusedRequest, described
from .inbox import Inbox
from .outbox import Outbox
from .sdk import Sdk

if TYPE_CHECKING:
    from .request import Request


def main() -> None:
    # The SDK's memory holds the password: a crash must not write it to a disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    read_fd, write_fd = take_pipes()
    # Its parent ends it, by the pipe: a signal to the whole group must not cut off a logout.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    outbox = Outbox(write_fd)
    sdk = Sdk(outbox)
    ending = Ending(outbox, sdk.logout)
    inbox = Inbox(read_fd, outbox, ending)
    outbox.start()
    inbox.start()
    while True:
        request = inbox.next()
        if request is None:
            ending.take()
        elif request.op == "exit":
            ending.take(partial(outbox.answer, request.id, None))
        else:
            serve(request, sdk, outbox)


def take_pipes() -> tuple[int, int]:
    """The descriptors of the protocol, out of reach of a library that prints or reads."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return read_fd, write_fd


def serve(request: Request, sdk: Sdk, outbox: Outbox) -> None:
    try:
        outbox.answer(request.id, _done(request, sdk, outbox))
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent decides
        secret = str(request.fields.get("password") or "")
        outbox.refuse(request.id, described(error, secret))


def _done(request: Request, sdk: Sdk, outbox: Outbox) -> Any:
    if request.op == "hello":
        if "tick_limit" in request.fields:
            outbox.tick_limit = max(1, request.number("tick_limit"))
        version = sdk.load()
        return {"protocol": PROTOCOL, "python": platform.python_version(), "sdk": version}
    if request.op == "login":
        return sdk.login(request)
    if request.op == "offers":
        return sdk.offers()
    if request.op == "subscribe":
        return sdk.subscribe(request)
    if request.op == "history":
        return sdk.history(request)
    if request.op == "logout":
        return sdk.logout()
    raise RefusedRequest("bad_request", f"no such operation: {request.op}")
