"""The embedded mongod answers nobody but the user of its home."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure

from collector.errors import ConfigError
from collector.mongo.embedded import EmbeddedMongo
from collector.mongo.own_password import ensure_password, password_path

if TYPE_CHECKING:
    from collections.abc import Iterator

UNAUTHORIZED, AUTHENTICATION_FAILED = 13, 18
OTHER_USER = 65_534
OP_MSG, OP_COMPRESSED = 2013, 2012
NOOP, SNAPPY, ZLIB, ZSTD = range(4)


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A home in a folder that every user may enter, as COLLECTOR_HOME=/srv/x would be."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        home.chmod(0o755)
        (home / "something else").touch()
        yield home


async def _reads(uri: str) -> None:
    async with AsyncMongoClient(uri, serverSelectionTimeoutMS=120_000) as client:
        await client.collector.jobs.find_one()


def _read_by_another_user(path: Path) -> tuple[int, bytes]:
    words = ["cat", str(path)]
    ran = subprocess.run(words, user=OTHER_USER, group=OTHER_USER, capture_output=True)
    return ran.returncode, ran.stdout


async def test_without_its_password_the_database_answers_no_one(open_home: Path) -> None:
    async with await EmbeddedMongo.start(open_home, purpose="test") as mongo:
        await _reads(mongo.uri)
        with pytest.raises(OperationFailure) as without:
            await _reads(f"mongodb://127.0.0.1:{mongo.port}/?directConnection=true")
        with pytest.raises(OperationFailure) as wrong:
            await _reads(mongo.uri.replace("collector:", "collector:0", 1))
        assert (without.value.code, wrong.value.code) == (UNAUTHORIZED, AUTHENTICATION_FAILED)
        assert password_path(open_home).stat().st_mode & 0o777 == 0o600
        if os.getuid() == 0:
            for name in ("mongod.password", "mongod/mongod.lock"):
                assert _read_by_another_user(open_home / name) == (1, b"")
        for file in (open_home / "mongod.json", open_home / "owner.lock"):
            assert ensure_password(open_home) not in file.read_text()


async def _answer_to_compressed(port: int, compressor: int, claimed_bytes: int) -> bytes:
    """What mongod says to a stranger's message that claims to be longer than it is."""
    document = struct.pack("<i", claimed_bytes) + b"\x10a\x00\x01\x00\x00\x00"
    message = b"\x00\x00\x00\x00\x00" + document
    body = struct.pack("<iiB", OP_MSG, claimed_bytes + 500, compressor)
    body += zlib.compress(message) if compressor == ZLIB else message
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(struct.pack("<iiii", 16 + len(body), 1, 0, OP_COMPRESSED) + body)
    try:
        return await reader.read(1)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_a_message_that_claims_to_be_longer_is_not_answered_with_memory(
    mongo: EmbeddedMongo,
) -> None:
    for compressor in (NOOP, SNAPPY, ZLIB, ZSTD):
        for claimed_bytes in range(30, 3_000, 50):
            said = await _answer_to_compressed(mongo.port, compressor, claimed_bytes)
            assert said == b"", (compressor, claimed_bytes)
    await _reads(mongo.uri)


async def test_a_deleted_password_is_replaced_and_the_data_stays(tmp_path: Path) -> None:
    async with (
        await EmbeddedMongo.start(tmp_path, purpose="test") as first,
        AsyncMongoClient(first.uri) as client,
    ):
        await client.collector.kept.insert_one({"_id": 1})
    password_path(tmp_path).unlink()
    async with await EmbeddedMongo.start(tmp_path, purpose="test") as second:
        async with AsyncMongoClient(second.uri) as client:
            assert await client.collector.kept.find_one() == {"_id": 1}
        with pytest.raises(OperationFailure):
            await _reads(first.uri)


def test_a_password_that_others_can_read_is_refused(tmp_path: Path) -> None:
    ensure_password(tmp_path)
    password_path(tmp_path).chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        ensure_password(tmp_path)
