"""A worker's own port for Prometheus."""

from __future__ import annotations

import hashlib

import aiohttp
import pytest

from collector import metrics
from collector.errors import ConfigError
from collector.keys import ApiKeys
from workers.metrics_port import metrics_port

KEY = "a-long-random-key"
KEYS = ApiKeys.parse(f"viewer:{hashlib.sha256(KEY.encode()).hexdigest()}")


async def scrape(address: str, **headers: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{address}/metrics", headers=headers) as answer,
    ):
        return answer.status, await answer.text()


async def test_it_tells_what_this_process_counted() -> None:
    metrics.JOBS_RESCUED.inc()
    async with metrics_port("127.0.0.1", 0, ApiKeys()) as address:
        status, text = await scrape(address)
    assert status == 200
    assert "collector_jobs_rescued_total" in text


async def test_every_worker_of_a_machine_has_a_port_of_its_own() -> None:
    async with (
        metrics_port("127.0.0.1", 0, ApiKeys()) as one,
        metrics_port("127.0.0.1", 0, ApiKeys()) as other,
    ):
        assert one != other
        assert [(await scrape(each))[0] for each in (one, other)] == [200, 200]


async def test_a_taken_port_is_a_clear_error() -> None:
    async with metrics_port("127.0.0.1", 0, ApiKeys()) as address:
        port = int(address.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1 port {port}"):
            async with metrics_port("127.0.0.1", port, ApiKeys()):
                pass


async def test_where_others_can_reach_it_a_key_is_needed() -> None:
    with pytest.raises(ConfigError, match="no API key is configured"):
        async with metrics_port("0.0.0.0", 0, ApiKeys()):
            pass
    async with metrics_port("0.0.0.0", 0, KEYS) as address:
        here = f"127.0.0.1:{address.rpartition(':')[2]}"
        assert (await scrape(here))[0] == 401
        assert (await scrape(here, Authorization="Bearer wrong"))[0] == 401
        assert (await scrape(here, Authorization=f"Bearer {KEY}"))[0] == 200


async def test_on_loopback_it_answers_to_names_of_loopback_only() -> None:
    """A page whose name resolves to 127.0.0.1 sends that name as Host."""
    async with metrics_port("127.0.0.1", 0, ApiKeys()) as address:
        assert (await scrape(address, Host="evil.example"))[0] == 400
        assert (await scrape(address, Host="localhost"))[0] == 200
