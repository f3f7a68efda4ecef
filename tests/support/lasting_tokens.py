"""Tokens that a busy machine cannot be too slow for.

One that aged is bought again, and after a few of them the run ends and repeats its pages: a test
that counts requests, grants or runs would count how busy the machine is. One that is marked with
`tokens_age` gets tokens as they are.
"""

from __future__ import annotations

import pytest

from collector.connectors.connector import Connector


@pytest.fixture(autouse=True)
def lasting_tokens(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("tokens_age") is None:
        monkeypatch.setattr(Connector, "token_life_ms", 600_000)
