"""Fixtures of tests that publish to a real Redis-compatible server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.redis_server import RedisServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def redis_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RedisServer]:
    """A server of this test's own, running."""
    server = RedisServer(tmp_path_factory.mktemp("valkey"))
    await server.start()
    yield server
    await server.kill()
