"""`collector`: all commands. This file only assembles them."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from collector.cli import (
    apply,
    backup,
    candles,
    config,
    connectors,
    doctor,
    fxcm,
    history,
    jobs,
    keys,
    logs,
    markets,
    programs,
    quarantine,
    repair,
    reports,
    status,
    streams,
    tickers,
    trades,
)
from collector.cli.failures import UsageMistake, report, want_tracebacks
from collector.cli.older_names import newer_name
from collector.version import __version__

_UNSAID = {"help": False}
_GROUPS = {
    "config": config.app,
    "connector": connectors.app,
    "fxcm": fxcm.app,
    "job": jobs.app,
    "key": keys.app,
    "migrate": programs.migrate,
    "report": reports.report,
}

app = typer.Typer(
    name="collector",
    help="Gathers bars, trades and prices from exchanges and keeps a lake one can trust.",
    no_args_is_help=True,
    # Markdown would look the same and cost 60 ms of imports.
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    # Typer sees a missing flag as None, and handling that imports pydantic, which takes 100 ms.
    context_settings={
        "token_normalize_func": newer_name,
        "default_map": {
            **_UNSAID,
            "install_completion": False,
            "show_completion": False,
            **dict.fromkeys(_GROUPS, _UNSAID),
        },
    },
)
for verbs in (
    programs.app,
    apply.app,
    streams.app,
    status.app,
    markets.app,
    reports.app,
    doctor.app,
    candles.app,
    trades.app,
    tickers.app,
    history.app,
    quarantine.app,
    repair.app,
    backup.app,
    logs.app,
):
    app.add_typer(verbs)
for name, verbs in _GROUPS.items():
    app.add_typer(verbs, name=name)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"collector {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback on failure.")] = False,
) -> None:
    """Collector."""
    if debug:
        want_tracebacks()


def run(arguments: list[str], program: typer.Typer = app) -> int:
    """Runs the command of the arguments; returns the exit code. Errors are one line on stderr."""
    try:
        code = program(arguments, prog_name=program.info.name, standalone_mode=False)
    except typer.TyperException as error:
        # Without a message it was help, shown because there were no arguments.
        return report(UsageMistake(_with_hint(error))) if error.format_message() else 2
    except typer.Abort:
        return 130
    except BrokenPipeError:
        # The reader of our output has closed it; Python must not complain about that at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the last one who can put it into words
        return report(error)
    return code if isinstance(code, int) else 0


def _with_hint(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" ({context.command_path} --help)" if context is not None else ""
    return f"{error.format_message().rstrip('.')}{hint}"


def main() -> None:
    """The entry point of the `collector` script."""
    sys.exit(run(sys.argv[1:]))
