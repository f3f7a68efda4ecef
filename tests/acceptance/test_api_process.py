"""The API's process: its end, and where it refuses to start."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.acceptance.api_process import api_process, settings_of
from tests.support.processes import program

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


async def test_a_process_serves_until_sigterm_and_exits_with_0(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with api_process(**settings_of(database, mongo_uri, tmp_path)) as api:
        assert (await api.get("/readyz")).status == 200
        async with api.session.get("/api/v1/events") as events:
            # An open stream of events must not hold the end up.
            assert await events.content.readline() == b": listening\n"
            api.process.signal(signal.SIGTERM)
            assert await api.process.ended() == 0


async def test_it_refuses_to_listen_to_the_world_without_keys(tmp_path: Path) -> None:
    async with program("api", "--host", "0.0.0.0", COLLECTOR_HOME=str(tmp_path)) as process:
        assert await process.ended() == 8
        assert process.said.startswith("E_CONFIG: refusing to listen on")
        assert process.said.count("\n") == 1
