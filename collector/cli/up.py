"""`collector up`: everything on one machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.cli.actions.apply import change_lines
from collector.cli.address import address_for
from collector.cli.children import Child
from collector.cli.demo import DEMO_EXCHANGE, add_demo_jobs
from collector.cli.demo_settings import demo_config, demo_settings
from collector.cli.up_screen import UpScreen
from collector.errors import ConfigError
from collector.mongo.address import for_other_processes
from collector.mongo.client import Database
from collector.mongo.embedded import EmbeddedMongo
from collector.mongo.schema_watch import leaving_newer_schema
from collector.operations.applied_settings import apply_settings
from collector.operations.processes import command, die_with_parent, last_line
from collector.operations.wishes import record_changes
from collector.progress import console
from collector.store.root import storage_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.settings import Settings

DRAIN_SECONDS = 60.0
SCREEN_PAUSE_SECONDS = 5.0
"""Before a screen that failed begins again."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What the command line contains."""

    demo: bool = False
    workers: int = 2
    config: Path | None = None
    host: str | None = None
    port: int | None = None


class Up:
    """The running whole: a database, the API, workers, and for the demo an exchange."""

    def __init__(self, settings: Settings, options: UpOptions) -> None:
        self._settings = demo_settings(settings) if options.demo else settings
        self._options = options
        self._address = address_for(self._settings, options.host, options.port)
        self._console = console()
        self._children: list[Child] = []
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Until a signal; everything has ended when it returns."""
        self._listen_for_signals()
        async with AsyncExitStack() as stack:
            uri = await self._database_uri(stack)
            environment = self._environment(uri)
            if self._options.demo:
                environment["COLLECTOR_EXCHANGE_URLS"] = await self._simulated_exchange(stack)
            database = await stack.enter_async_context(Database(uri, self._settings.mongo_db))
            await database.reach(self._settings.mongo_patience_seconds)
            await self._migrate(environment)
            await database.read_server_clock()
            if self._options.demo:
                await add_demo_jobs(database)
            else:
                await self._apply_settings(database)
            self._print(f"dashboard and API on {self._address.url}")
            self._print(f"data in {self._settings.data_root}, logs in {self._logs}")
            async with leaving_newer_schema(database, self._stop.set):
                await self._work(database, environment)
        demo = " --demo" if self._options.demo else ""
        self._print(
            f"stopped; `collector up{demo}` continues where it was, "
            f"`collector status{demo}` shows what there is"
        )

    # -- putting it together ------------------------------------------------------------------

    async def _database_uri(self, stack: AsyncExitStack) -> str:
        if (configured := self._settings.mongo_address) is not None:
            return configured
        purpose = "collector up --demo" if self._options.demo else "collector up"
        mongo = await EmbeddedMongo.start(self._settings.home, purpose=purpose)
        await stack.enter_async_context(mongo)
        mongo.announce(dashboard=self._address.url)
        return mongo.uri

    def _environment(self, uri: str) -> dict[str, str]:
        """What the other processes need to use the same configuration."""
        settings = {
            "COLLECTOR_HOME": str(self._settings.home),
            **for_other_processes(uri),
            "COLLECTOR_MONGO_DB": self._settings.mongo_db,
            "COLLECTOR_DATA": self._settings.data_root,
        }
        return {**os.environ, **settings}

    @property
    def _logs(self) -> Path:
        folder = self._settings.home / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    async def _simulated_exchange(self, stack: AsyncExitStack) -> str:
        """Starts it, waits for its address, and returns COLLECTOR_EXCHANGE_URLS."""
        journal = self._settings.home / "exchange-journal.jsonl"
        arguments = ["--port", "0", "--journal", str(journal)]
        process = await asyncio.create_subprocess_exec(
            *command("collector.simulated", *arguments),
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )

        async def end() -> None:
            if process.returncode is None:
                process.terminate()
            await process.communicate()

        stack.push_async_callback(end)
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode().strip()
        address = line.rpartition(" ")[2]
        if not address.startswith("http://"):
            raise ConfigError("the simulated exchange did not start")
        self._print(line)
        demo_config(self._settings.home, (DEMO_EXCHANGE, address))
        return json.dumps({DEMO_EXCHANGE: address})

    async def _apply_settings(self, database: Database) -> None:
        """Makes connectors and jobs as the settings file asks, and prints what that changed."""
        plan = await apply_settings(database, self._settings)
        await record_changes(database, storage_at(self._settings.data_root))
        for line in (*change_lines(plan.changes), *plan.notes):
            self._print(line)

    async def _migrate(self, environment: dict[str, str]) -> None:
        arguments = ["up", *self._config_arguments()]
        process = await asyncio.create_subprocess_exec(
            *command("migrations", *arguments),
            env=environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, output = await process.communicate()
        if process.returncode:
            raise ConfigError(f"migrating the database failed: {last_line(output)}")

    def _config_arguments(self) -> list[str]:
        """The settings file for the other processes; the demo must not find the real one."""
        config = self._options.config
        if self._options.demo:
            config = demo_config(self._settings.home)
        return [] if config is None else ["--config", str(config)]

    # -- running ------------------------------------------------------------------------------

    async def _work(self, database: Database, environment: dict[str, str]) -> None:
        listening = ["--host", self._address.host, "--port", str(self._address.port)]
        self._children = [self._child("api", "api", environment, listening)]
        for number in range(1, self._options.workers + 1):
            self._children.append(self._child(f"worker {number}", "workers", environment))
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(child.keep_running()) for child in self._children]
            showing = group.create_task(self._keep_showing(database))
            await self._stop.wait()
            showing.cancel()
            await self._drain(running)

    async def _keep_showing(self, database: Database) -> None:
        """Shows the work until it stops. A screen that fails ends nothing and begins again."""
        while not self._stop.is_set():
            try:
                await UpScreen(database, self._console, self._print).keep_showing()
            except Exception as error:  # noqa: BLE001 - whatever it is, the fleet goes on
                self._print(f"the screen failed: {type(error).__name__}: {error}")
                await asyncio.sleep(SCREEN_PAUSE_SECONDS)

    def _child(
        self, name: str, module: str, environment: dict[str, str], arguments: Sequence[str] = ()
    ) -> Child:
        return Child(
            name,
            module,
            [*self._config_arguments(), *arguments],
            environment=environment,
            log=self._logs / f"{name.replace(' ', '-')}.log",
            report=self._print,
        )

    async def _drain(self, running: list[asyncio.Task[None]]) -> None:
        self._print("stopping: workers finish their current page (Ctrl-C again to stop at once)")
        for child in self._children:
            child.stop()
        _, late = await asyncio.wait(running, timeout=DRAIN_SECONDS)
        for task in late:
            task.cancel()

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()

        def on_signal() -> None:
            if self._stop.is_set():
                for child in self._children:
                    child.stop(signal.SIGKILL)
            self._stop.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, on_signal)

    def _print(self, words: str) -> None:
        # What reads our output may be gone, or not know a character: the fleet does not need it.
        with contextlib.suppress(OSError, ValueError):
            self._console.print(words, soft_wrap=True)


def up(settings: Settings, options: UpOptions) -> None:
    """Runs it until a signal ends it."""
    asyncio.run(Up(settings, options).run())
