"""Which authorities a connection to an exchange trusts."""

from __future__ import annotations

import ssl

import certifi

from collector.exchanges.ccxt.session import tls_of


def test_connections_trust_the_authorities_of_the_file() -> None:
    for address in (None, "https://gateway.example"):
        context = tls_of(address, certifi.where())
        assert isinstance(context, ssl.SSLContext)
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context is tls_of(None, certifi.where()), "read once"


def test_no_authorities_are_read_for_an_address_without_tls() -> None:
    assert tls_of("http://127.0.0.1:8900", "no such file") is True
