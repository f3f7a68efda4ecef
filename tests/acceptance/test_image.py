"""What the image holds, and the compose file's services run from it, without Docker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import tempfile
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.support.dockerfile import ROOT, Image, build
from tests.support.fleet import LONG
from tests.support.guarded_mongo import GuardedMongo, guarded_mongo
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PASSWORD = "p/a@s:s%w?o#r&d=[+]$ '\\"
SETTINGS = """
exchanges:
  simulated: {{}}
  binance: {{key_ref: "secret://binance/prod/read_key"}}
streams:
  - {{exchange: simulated, symbol: BTC/USDT, timeframe: 1m, since: {since:%Y-%m-%d}}}
"""


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    # Not pytest's own folder: a socket's and a script's path may only be so long.
    with tempfile.TemporaryDirectory() as folder:
        yield build(Path(folder), COMMIT, download=LONG)


def ran(image: Image, *line: str, **environment: str) -> str:
    done = subprocess.run(
        line, env={**image.environment, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_image_holds_what_runs_and_nothing_else(image: Image) -> None:
    ours = (
        "import api.main, collector.cli.main, datalayer, migrations.runner, workers.main, botocore"
    )
    ran(image, image.program("python"), "-c", ours)
    for name in ("collector", "datalayer"):
        assert "Usage" in ran(image, image.program(name), "--help")
    folders = next(image.root.glob("opt/collector/lib/python*/site-packages"))
    there = {path.name for path in folders.iterdir()}
    assert {"api", "collector", "datalayer.py", "migrations", "workers"} <= there
    assert not there & {"mypy", "duckdb", "fiftyone", "pytest", "ruff", "pip", "hatchling"}
    assert not list(image.root.glob("opt/**/mongod"))


def test_a_key_is_made_before_there_is_anything_else(image: Image) -> None:
    shown = ran(image, image.program("collector"), "key", "new", "--role", "operator")
    assert "operator:" in shown


class Host:
    """The host of the compose file: its services are processes of the image."""

    def __init__(self, image: Image, mongo: GuardedMongo, keys: str, exchange: str) -> None:
        self._image = image
        self._known = {
            "${API_KEYS:?set it in .env}": keys,
            "${REDIS_URL:-}": "",
            "mongo:27017": f"127.0.0.1:{mongo.port}",
        }
        self._exchange = {"COLLECTOR_EXCHANGE_URLS": json.dumps({"simulated": exchange})}

    def environment(self, service: str) -> dict[str, str]:
        given = COMPOSE["services"][service]["environment"]
        return (
            self._image.environment
            | {k: self._adapted(v) for k, v in given.items()}
            | self._exchange
        )

    async def start(self, service: str, **replaced: str) -> asyncio.subprocess.Process:
        """The service's own command; `replaced` are words that name this machine's ports."""
        words = [replaced.get(word, word) for word in COMPOSE["services"][service]["command"]]
        return await asyncio.create_subprocess_exec(
            *(self._image.program("collector"), *words),
            env=self.environment(service) | {"COLLECTOR_WORKER__METRICS_PORT": "0"},
            cwd=self._image.root,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    def _adapted(self, value: str) -> str:
        for word, here in self._known.items():
            value = value.replace(word, here)
        return self._image.path(value)


def mount(image: Image) -> None:
    """The files that the compose file mounts, with the modes that Docker gives them."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    files = {
        "home/collector/.collector/collector.yaml": SETTINGS.format(since=yesterday),
        "run/secrets/mongo_password": f"{PASSWORD}\n",
        "run/exchange-keys/binance/prod/read_key": "the-key:the-secret",
    }
    for name, text in files.items():
        path = image.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o444)
    (image.root / "data").mkdir()


@asynccontextmanager
async def stopped(process: asyncio.subprocess.Process) -> AsyncIterator[asyncio.subprocess.Process]:
    """Asked to end as `docker stop` asks; it must end well."""
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        _, err = await asyncio.wait_for(process.communicate(), 120)
        assert process.returncode == 0, err.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def first_line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(120):
        return (await process.stdout.readline()).decode().strip()


async def test_the_services_of_the_compose_file_run_from_the_image(
    image: Image, tmp_path: Path
) -> None:
    mount(image)
    key = json.loads(ran(image, image.program("collector"), "key", "new", "--json"))
    async with guarded_mongo(tmp_path, "collector", PASSWORD) as mongo:
        exchange = await asyncio.create_subprocess_exec(
            *(image.program("collector"), "simulate", "--port", "0"),
            env=image.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with stopped(exchange):
            url = (await first_line(exchange)).rpartition(" ")[2]
            host = Host(image, mongo, key["line"], url)
            await migrated(host, mongo)
            async with stopped(await host.start("api", **{"8000": "0"})) as api:
                address = (await first_line(api)).rpartition(" ")[2]
                healthy(image, host, address.rpartition(":")[2])
                async with stopped(await host.start("worker")):
                    await collected(image, host)
    # The root of a container is read-only: nothing may be written but the lake.
    assert sorted(os.listdir(image.root / "home/collector/.collector")) == ["collector.yaml"]


async def migrated(host: Host, mongo: GuardedMongo) -> None:
    """`migrate` starts before there is a primary, and waits for it."""
    migrate = await host.start("migrate")
    assert migrate.stderr is not None
    lines = [(await migrate.stderr.readline()).decode() for _ in range(2)]
    assert "waiting_for_primary" in lines[1]
    await mongo.initiate()
    out, err = await migrate.communicate()
    assert migrate.returncode == 0, err.decode()
    assert b"migrations" in out
    apply = await host.start("apply")
    out, err = await apply.communicate()
    assert apply.returncode == 0, err.decode()
    assert out.count(b"created connector") == 2


def healthy(image: Image, host: Host, port: str) -> None:
    """The service's own health check passes, and both services can read the exchange's key."""
    _, *check = COMPOSE["services"]["api"]["healthcheck"]["test"]
    check = [image.program(check[0]), *(word.replace("8000", port) for word in check[1:])]
    ran(image, *check)
    shows = "from collector.settings import load; print(load().keyring.credentials('binance').key)"
    for service in ("api", "worker"):
        told = ran(image, image.program("python"), "-c", shows, **host.environment(service))
        assert told.strip() == "the-key"


async def collected(image: Image, host: Host) -> None:
    """The worker stores bars, in files that say which commit wrote them."""
    environment = host.environment("worker")

    async def verb(*words: str) -> Any:
        line = (image.program("collector"), *words, "--json")
        return json.loads(await asyncio.to_thread(ran, image, *line, **environment))

    async def in_parts() -> bool:
        return any(series.rglob("*.parquet"))

    async def merged() -> bool:
        return file.exists()

    series = image.root / "data/simulated/BTC-USDT"
    file = series / "1m.parquet"
    await until(in_parts, "bars are collected")
    listed = await verb("job", "list", "--exchange", "simulated", "--type", "compact")
    await verb("job", "run", listed["items"][0]["id"])
    await until(merged, "bars are merged")
    written = pq.read_metadata(file).metadata[b"build_signature"].decode()
    assert written.endswith(f"+{COMMIT[:12]}")
