"""The verbs that run until they are stopped, and migrations: each is a program of its own."""

import os
from typing import Annotated

import typer

from collector.cli.failures import want_tracebacks
from collector.cli.verb import Config, Debug, Json, check_here
from collector.operations.processes import become

app = typer.Typer()
migrate = typer.Typer(help="Bring the database to this program's schema.", no_args_is_help=True)

Host = Annotated[
    str | None, typer.Option(help="Where the API listens; others than loopback need a key.")
]
Port = Annotated[
    int | None, typer.Option(min=0, max=65535, help="The API's port, 8000 unless set; 0 is free.")
]


@app.command()
def up(
    demo: Annotated[
        bool, typer.Option("--demo", help="Collect from a simulated exchange, kept apart.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Worker processes.")] = 2,
    host: Host = None,
    port: Port = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Run everything on this machine until Ctrl-C: database, API, workers.

    Example: `collector up --demo`
    """
    from collector.cli.up import UpOptions
    from collector.cli.up import up as run_up
    from collector.settings import load

    if debug:
        want_tracebacks()
    run_up(load(config), UpOptions(demo, workers, config, host, port))


@app.command()
def api(host: Host = None, port: Port = None, config: Config = None) -> None:
    """Run the API until a signal stops it.

    Example: `collector api --port 8000`
    """
    arguments = [] if config is None else ["--config", str(config)]
    arguments += [] if host is None else ["--host", host]
    become("api", *arguments, *([] if port is None else ["--port", str(port)]))


@app.command()
def worker(
    config: Config = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Jobs at a time.")] = None,
    exchange: Annotated[
        list[str] | None, typer.Option(help="Work only for this exchange; repeatable.")
    ] = None,
    until_idle: Annotated[bool, typer.Option(help="Exit once nothing is left to do now.")] = False,
) -> None:
    """Run one worker until a signal drains it.

    Example: `collector worker --concurrency 16 --exchange binance`
    """
    arguments = [] if config is None else ["--config", str(config)]
    arguments += [] if concurrency is None else ["--concurrency", str(concurrency)]
    for name in exchange or []:
        arguments += ["--exchange", name]
    become("workers", *arguments, *(["--until-idle"] if until_idle else []))


@app.command()
def simulate(
    port: Annotated[int, typer.Option(help="Port on loopback; 0 takes a free one.")] = 8900,
    symbols: Annotated[int, typer.Option(min=1, help="How many markets to list.")] = 5,
    latency_ms: Annotated[float, typer.Option(min=0, help="Delay of every answer.")] = 0,
) -> None:
    """Run the simulated exchange alone: Binance's format, made-up bars.

    Example: `collector simulate --port 8900 --latency-ms 50`

    More options: `python -m collector.simulated --help`
    """
    become(
        "collector.simulated",
        *("--port", str(port)),
        *("--symbols", str(symbols)),
        *("--latency-ms", str(latency_ms)),
    )


@app.command()
def recover(config: Config = None, json: Json = False) -> None:
    """Bring back connectors, jobs and cursors from the lake, for a database that was lost.

    Migrates the database first. What it has already stays; stored bars are not fetched again.

    Example: `collector recover`
    """
    _migrations("recover", config, json)


@migrate.command("up")
def migrate_up(config: Config = None, json: Json = False) -> None:
    """Apply the migrations that are missing. `collector apply` makes connectors and jobs.

    Example: `collector migrate up`
    """
    _migrations("up", config, json)


@migrate.command("status")
def migrate_status(config: Config = None, json: Json = False) -> None:
    """Show every migration and when it finished here.

    Example: `collector migrate status --json`
    """
    _migrations("status", config, json)


@migrate.command("rebuild-cursors")
def migrate_rebuild_cursors(config: Config = None, json: Json = False) -> None:
    """Make connectors and jobs again from the Parquet files, for a database that was lost.

    Run it after `migrate up`. What the database has already stays as it is.

    Example: `collector migrate rebuild-cursors`
    """
    _migrations("rebuild-cursors", config, json)


def _migrations(verb: str, config: Config, as_json: bool) -> None:
    check_here(os.environ.get("COLLECTOR_URL"), verb if verb == "recover" else f"migrate {verb}")
    arguments = [verb] if config is None else [verb, "--config", str(config)]
    become("migrations", *arguments, *(["--json"] if as_json else []))
