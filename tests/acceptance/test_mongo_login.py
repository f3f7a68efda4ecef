"""A MongoDB with users: any password opens it, and a primary is waited for."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import pytest

from collector.mongo.schema import VERSION
from tests.support.guarded_mongo import GuardedMongo, guarded_mongo
from tests.support.verbs import Ended, run_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PASSWORD = "p/a@s:s%w?o#r&d=[+]$ '\\"
NO_PRIMARY = "No replica set members match selector"


@pytest.fixture
async def mongo(tmp_path: Path) -> AsyncIterator[GuardedMongo]:
    async with guarded_mongo(tmp_path, "collector", PASSWORD) as mongo:
        yield mongo


class Program:
    """`python -m ...` that is told where MongoDB is, and nothing else."""

    def __init__(self, mongo: GuardedMongo, home: Path) -> None:
        self._known = {k: v for k, v in os.environ.items() if not k.startswith("COLLECTOR_")}
        self._known |= {"COLLECTOR_HOME": str(home), "COLLECTOR_MONGO_URI": mongo.uri}
        self._home = home

    async def start(self, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", *arguments),
            cwd=self._home,
            env={**self._known, **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *arguments: str, **environment: str) -> Ended:
        process = await self.start(*arguments, **environment)
        out, err = await process.communicate()
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())


def login(password: str = PASSWORD) -> dict[str, str]:
    return {"COLLECTOR_MONGO_USER": "collector", "COLLECTOR_MONGO_PASSWORD": password}


async def test_migrate_waits_for_a_primary_and_says_so(mongo: GuardedMongo, tmp_path: Path) -> None:
    program = Program(mongo, tmp_path)
    brief = await program.run("migrations", "up", **login(), COLLECTOR_MONGO_PATIENCE_SECONDS="0.1")
    assert brief.code == 3
    last = brief.err.splitlines()[-1]
    assert last.startswith(f"E_API: MongoDB cannot be reached: {NO_PRIMARY}")
    assert last.endswith("(waited 0.1 s for a primary)")

    patient = await program.start("migrations", "up", **login())
    assert patient.stderr is not None
    lines = [(await patient.stderr.readline()).decode() for _ in range(2)]
    assert NO_PRIMARY in lines[0]
    assert "waiting_for_primary" in lines[1]
    assert '"at_most_seconds": 60' in lines[1]
    await mongo.initiate()
    out, err = await patient.communicate()
    assert patient.returncode == 0, err.decode()
    assert f"applied {VERSION} migrations" in out.decode()


async def verb_here(patch: pytest.MonkeyPatch, *arguments: str, **environment: str) -> Ended:
    for name, value in environment.items():
        patch.setenv(name, value)
    return await run_here(*arguments)


async def test_any_password_opens_it_and_a_wrong_one_is_one_line(
    mongo: GuardedMongo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mongo.initiate()
    program = Program(mongo, tmp_path)
    file = tmp_path / "mongo_password"
    file.write_text(f"{PASSWORD}\n", encoding="utf-8")
    by_file = {"COLLECTOR_MONGO_USER": "collector", "COLLECTOR_MONGO_PASSWORD_FILE": str(file)}
    up = await program.run("migrations", "up", "--json", **by_file)
    assert up.code == 0, up.err
    worker = await program.run("workers", "--until-idle", **login())
    assert worker.code == 0, worker.err
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.setenv("COLLECTOR_MONGO_URI", mongo.uri)
    verb = await verb_here(monkeypatch, "connector", "list", "--json", **login())
    assert verb.facts["items"] == []

    refused = await asyncio.gather(
        program.run("migrations", "up", **login("wrong/pass@word")),
        program.run("workers"),
        program.run("api", "--port", "0", **login("wrong/pass@word")),
        program.run("collector.cli", "up", "--port", "0", **login("wrong/pass@word")),
    )
    verb = await verb_here(monkeypatch, "status", **login("wrong/pass@word"))
    for ended in (*refused, verb):
        assert (ended.code, ended.err.count("\n")) == (9, 1), ended.err
        assert ended.err.startswith("E_AUTH: MongoDB refuses this user: ")
        assert "pass" not in ended.err
