"""What is believed of a home's files when the process that wrote them is gone."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from collector.clock import ManualClock
from collector.mongo.home import Announcement, HomeLock, Owner, announce, announced_uri

if TYPE_CHECKING:
    from pathlib import Path

URI = "mongodb://127.0.0.1:28000/?replicaSet=collector"


@pytest.fixture
def owner() -> Owner:
    return Owner(os.getpid(), "test", "2026-01-01T00:00:00+00:00")


def test_an_announcement_that_nobody_stands_behind_is_not_believed(tmp_path: Path) -> None:
    announce(tmp_path, Announcement(URI, 1, "killed", ""))
    assert announced_uri(tmp_path) is None
    (tmp_path / "owner.lock").write_text(json.dumps({"pid": 1, "purpose": "", "started_at": ""}))
    assert announced_uri(tmp_path) is None


async def test_an_announcement_is_believed_while_the_lock_is_held(
    tmp_path: Path, owner: Owner
) -> None:
    lock = await HomeLock.take(tmp_path, owner, ManualClock())
    assert announced_uri(tmp_path) is None
    announce(tmp_path, Announcement(URI, owner.pid, owner.purpose, owner.started_at))
    assert announced_uri(tmp_path) == URI
    lock.release()
    assert announced_uri(tmp_path) is None


@pytest.mark.parametrize("garbage", ["", "{", "[]", '{"uri": 1}'])
async def test_garbage_in_an_announcement_is_no_announcement(
    tmp_path: Path, owner: Owner, garbage: str
) -> None:
    lock = await HomeLock.take(tmp_path, owner, ManualClock())
    (tmp_path / "mongod.json").write_text(garbage)
    assert announced_uri(tmp_path) is None
    lock.release()
