"""Sockets that a program opens, and the refusal to open one to the world without keys."""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from collector.errors import ConfigError

if TYPE_CHECKING:
    from collector.keys import ApiKeys

BACKLOG = 2048
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


def host_names(host: str, keys: ApiKeys) -> frozenset[str] | None:
    """The names to answer to: loopback's on loopback, any elsewhere.

    Raises ConfigError for an address that others can reach while there are no keys.
    """
    return LOOPBACK_NAMES | {host.lower()} if only_loopback(host, keys) else None


def host_name(header: str) -> str | None:
    """The name in a Host header, without its port; None when it is no host at all."""
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == header and "@" not in header else None


def only_loopback(host: str, keys: ApiKeys) -> bool:
    """Whether only this machine can reach `host`.

    Raises ConfigError for an address that others can reach while there are no keys.
    """
    if all(ipaddress.ip_address(address).is_loopback for address in _addresses(host)):
        return True
    if not keys:
        raise ConfigError(
            f"refusing to listen on {host}: others can reach it and no API key is configured "
            "(`collector key new` makes one for COLLECTOR_API_KEYS; or listen on 127.0.0.1)"
        )
    return False


def is_on_this_machine(url: str) -> bool:
    """Whether requests to the address stay here, as far as its name says: nothing is looked up."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in LOOPBACK_NAMES
    return address.is_loopback or address.is_unspecified


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. ConfigError explains why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host} port {port}: {error.strerror}") from error


def address_of(sock: socket.socket) -> str:
    """The URL to type into a browser."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _addresses(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"there is no address {host!r} to listen on") from error
    return [str(entry[4][0]).partition("%")[0] for entry in found]
