"""Sends an exchange's requests somewhere else: to a gateway, a testnet or a test."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from collector.errors import ConfigError


def checked_address(exchange_id: str, address: str) -> str:
    """`address` as scheme, host and port. Raises ConfigError when it has more or fewer parts."""
    try:
        parts = urlsplit(address)
        usable = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.path in ("", "/")
            and not (parts.query or parts.fragment or parts.username)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"COLLECTOR_EXCHANGE_URLS: {exchange_id}: {address!r} is not a scheme, a host and "
            "a port, such as http://127.0.0.1:9001"
        )
    return f"{parts.scheme}://{parts.netloc}"


def moved(addresses: Any, address: str) -> Any:
    """`addresses`, ccxt's nest of URLs and templates, all on `address`, each with its own path."""
    if isinstance(addresses, str):
        return _moved_url(addresses, address)
    if isinstance(addresses, dict):
        return {name: moved(value, address) for name, value in addresses.items()}
    if isinstance(addresses, list):
        return [moved(value, address) for value in addresses]
    return addresses


def _moved_url(url: str, address: str) -> str:
    scheme, _, rest = url.partition("://")
    _, slash, path = rest.partition("/")
    if scheme in ("ws", "wss"):
        # Websockets follow the address too: http becomes ws, https becomes wss.
        address = "ws" + address.removeprefix("http")
    return f"{address}{slash}{path}"
