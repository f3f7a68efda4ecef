"""What a shell completes from a collector that runs: ids of jobs, and symbols.

A shell waits for the answer with every key: nothing is started for it, nothing heavy is imported,
and when there is no collector, or it does not answer in a moment, nothing is offered.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer  # noqa: TC002 - typer reads the annotations

from collector.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_SECONDS = 1.0
MOST = 100
_HEX = re.compile(r"[0-9a-f]{0,24}")
_WORD = re.compile(r"[\w/:.+-]+")


def symbols_of_exchange(ctx: typer.Context, incomplete: str) -> list[str]:
    """Symbols that begin like this, of the exchange that was typed, if any."""
    with _silently() as found:
        typed = ctx.params.get("exchange") or None
        # An option that may be repeated: the first one will do.
        exchange_id = typed[0] if isinstance(typed, list | tuple) else typed
        found += _source(ctx).symbols(exchange_id, incomplete)
    return found


def jobs_by_id(ctx: typer.Context, incomplete: str) -> list[Any]:
    """Ids that begin like this, each with what the job is; or the words that describe one."""
    typed = ctx.params.get("job") or ctx.params.get("jobs") or []
    words = [str(each) for each in typed if each != incomplete]
    with _silently() as found:
        source = _source(ctx)
        if words and _HEX.fullmatch(words[0]) is None:
            found += source.words(words, incomplete)
        else:
            if _HEX.fullmatch(incomplete) is not None:
                found += source.jobs(incomplete)
            if not words:
                found += source.exchanges(incomplete)
    return found


@contextmanager
def _silently() -> Iterator[list[Any]]:
    """A list to fill. What fails leaves it as it is: a shell cannot show why.

    A shell puts a word into the line as it is: one that it would act on is left out.
    """
    found: list[Any] = []
    with suppress(Exception):
        yield found
    found[:] = [
        (each[0], printable(each[1])) if isinstance(each, tuple) else each
        for each in found
        if isinstance(each, tuple) or _WORD.fullmatch(each)
    ]


def _source(ctx: typer.Context) -> Any:
    """The API that was named, else the database that is configured or runs in the home."""
    from collector.cli.completion_sources import ApiSource, DatabaseSource
    from collector.settings_file import default_file, misplaced_key, read_file

    path = ctx.params.get("config") or default_file()
    file = read_file(Path(path)) if path else {}
    if (misplaced := misplaced_key(file)) is not None:
        raise LookupError(misplaced)

    def setting(name: str) -> str | None:
        return os.environ.get(f"COLLECTOR_{name.upper()}") or file.get(name)

    demo = bool(ctx.params.get("demo"))
    url = None if demo else setting("url")
    if url:
        return ApiSource(url, setting("token"))
    home = Path(setting("home") or Path.home() / ".local" / "share" / "collector").expanduser()
    name = "collector_demo" if demo else setting("mongo_db") or "collector"
    return DatabaseSource(_address(setting, home / "demo" if demo else home), name)


def _address(setting: Any, home: Path) -> str:
    from collector.mongo.address import address, password_in
    from collector.mongo.home import announced_uri

    uri = setting("mongo_uri")
    if not uri:
        found = announced_uri(home)
        if found is None:
            raise LookupError("no database runs")
        return found
    file = setting("mongo_password_file")
    password = password_in(Path(file)) if file else setting("mongo_password")
    return address(uri, setting("mongo_user"), password)
