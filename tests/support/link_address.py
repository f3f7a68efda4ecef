"""The address of a MongoDB behind a wire that a test controls."""

from __future__ import annotations

from pymongo.uri_parser import parse_uri


def through(port: int, uri: str) -> str:
    """`uri` with its login, by way of another port of this machine."""
    known = parse_uri(uri)
    login = f"{known['username']}:{known['password']}@"
    return f"mongodb://{login}127.0.0.1:{port}/?directConnection=true&authSource=admin"
