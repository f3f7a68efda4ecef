"""The hint that a demo runs beside, or a real collector beside the demo."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from collector.cli.actions.viewer import api_url
from collector.cli.demo_settings import demo_config, demo_home, demo_settings
from collector.cli.neighbour import neighbour
from collector.clock import SystemClock
from collector.mongo.home import Announcement, HomeLock, Owner, announce
from collector.settings import Settings
from tests.support.verbs import run_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DASHBOARD = "http://127.0.0.1:8123"


@asynccontextmanager
async def held(home: Path, purpose: str) -> AsyncIterator[None]:
    """A home whose database another process has announced."""
    home.mkdir(parents=True, exist_ok=True)
    owner = Owner(os.getpid(), purpose, "2026-01-01T00:00:00+00:00")
    lock = await HomeLock.take(home, owner, SystemClock())
    at = "mongodb://127.0.0.1:1/"
    announce(home, Announcement(at, owner.pid, purpose, owner.started_at, DASHBOARD))
    try:
        yield
    finally:
        lock.release()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_a_verb_mentions_a_demo_that_runs_in_this_home(home: Path) -> None:
    async with held(demo_home(home), "collector up --demo"):
        shown = await run_here("read", "simulated", "BTC/USDT", "1m", "--json")
    assert (shown.code, shown.out) == (3, "")
    hint, error = shown.err.splitlines()
    assert hint == f"a demo is running at {DASHBOARD}: --demo shows it"
    assert "nothing is stored" in error


async def test_a_verb_on_the_demo_mentions_the_real_one_when_only_that_runs(home: Path) -> None:
    async with held(home, "collector up"):
        hint = neighbour(home, demo=True)
    assert hint == (
        f"no demo is running, but a collector is at {DASHBOARD}: leave out --demo to see it"
    )


async def test_nothing_is_mentioned_when_the_one_that_was_meant_runs(home: Path) -> None:
    async with held(home, "collector up"), held(demo_home(home), "collector up --demo"):
        assert neighbour(home, demo=False) is None
        assert neighbour(home, demo=True) is None


async def test_a_verb_that_holds_the_database_for_a_moment_is_no_demo(home: Path) -> None:
    async with held(demo_home(home), "collector status"):
        assert neighbour(home, demo=False) is None
    assert neighbour(home, demo=False) is None


async def test_verbs_on_a_mongodb_elsewhere_mention_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_MONGO_URI", "mongodb://127.0.0.1:1/")
    async with held(demo_home(home), "collector up --demo"):
        shown = await run_here("read", "simulated", "BTC/USDT", "1m")
    assert len(shown.err.splitlines()) == 1


async def test_watch_shows_the_demo_when_only_that_runs(home: Path) -> None:
    async with held(demo_home(home), "collector up --demo"):
        assert api_url(Settings(home=home)) == DASHBOARD


def test_verbs_on_the_demo_know_where_its_exchange_listens(home: Path) -> None:
    assert demo_settings(Settings(home=home)).exchange_urls == {}
    assert not demo_home(home).exists(), "looking makes no home"
    demo_config(demo_home(home), ("simulated", "http://127.0.0.1:4242"))
    demo_config(demo_home(home))
    found = demo_settings(Settings(home=home, exchange_urls={"binance": "http://elsewhere"}))
    assert found.exchange_urls == {"simulated": "http://127.0.0.1:4242"}
