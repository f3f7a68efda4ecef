"""Where `collector up` lets its API listen."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.errors import ConfigError
from collector.keys import ApiKeys
from collector.listening import only_loopback

if TYPE_CHECKING:
    from collector.settings import Settings


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port that was free a moment ago."""

    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def address_for(settings: Settings, host: str | None, port: int | None) -> Address:
    """The given address, else that of the settings; another port if theirs is taken.

    Raises ConfigError when a given port is taken, and for an address that others can reach while
    there are no keys: the API would refuse it, again and again.
    """
    where = settings.server.host if host is None else host
    secret = settings.api_keys
    only_loopback(where, ApiKeys.parse(secret.get_secret_value() if secret else None))
    wanted = settings.server.port if port is None else port
    free = _free_port(where, wanted)
    if free is None and port is None:
        free = _free_port(where, 0)
    if free is None:
        raise ConfigError(f"cannot listen on {where} port {wanted}: choose another with --port")
    return Address(where, free)


def _free_port(host: str, port: int) -> int | None:
    """The port, or a free one for 0; None when it is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return None
        free: int = probe.getsockname()[1]
        return free
