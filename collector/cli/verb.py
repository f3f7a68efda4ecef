"""What makes a function a verb of the command line.

Every verb takes the same standing options (`--json`, `--config`, `--demo`, `--debug`); the function
gets them as one record, `asked`, and declares only its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from collector.cli.failures import UsageMistake, say, want_tracebacks

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from collector.cli.output import Output
    from collector.operations.deployment import Deployment
    from collector.settings import Settings

Config = Annotated[
    Path | None, typer.Option("--config", help="Settings file (default: ./collector.yaml).")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Demo = Annotated[bool, typer.Option("--demo", help="Speak to the demo, which is kept apart.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when it fails.")]

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_STANDING = (
    inspect.Parameter("json", _KEYWORD, default=False, annotation=Json),
    inspect.Parameter("config", _KEYWORD, default=None, annotation=Config),
    inspect.Parameter("demo", _KEYWORD, default=False, annotation=Demo),
    inspect.Parameter("debug", _KEYWORD, default=False, annotation=Debug),
)
F = TypeVar("F", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Asked:
    """The standing options of a call: which settings, which form of output."""

    json: bool = False
    config: Path | None = None
    demo: bool = False
    embedded: list[Path] = field(default_factory=list)
    """The real home, once settings were read that lead to its embedded database."""
    urls: list[str] = field(default_factory=list)
    """The API that a key goes to, once settings were read that name one."""

    def settings(self) -> Settings:
        """The settings the verb works with. Raises ConfigError."""
        from collector.settings import load

        settings = load(self.config)
        if settings.url is not None and settings.token is not None:
            self.urls.append(settings.url)
        if settings.mongo_uri is None and settings.url is None:
            self.embedded.append(settings.home)
        if not self.demo:
            return settings
        from collector.cli.demo_settings import demo_settings

        return demo_settings(settings)

    def deployment(self) -> Deployment:
        """The same with the file that processes are to read."""
        from collector.operations.deployment import Deployment

        settings = self.settings()
        if not self.demo:
            return Deployment(settings, self.config)
        from collector.cli.demo_settings import demo_config

        return Deployment(settings, demo_config(settings.home))

    def here(self, verb: str) -> Deployment:
        """For a verb that works on this machine's database or files and not through an API.

        Raises UsageMistake where COLLECTOR_URL names one.
        """
        where = self.deployment()
        check_here(where.settings.url, verb)
        return where


def check_here(url: str | None, verb: str) -> None:
    """Raises UsageMistake when an API is named: what would be done here is not meant then."""
    if url:
        needs = f"{verb} needs the database and the files themselves"
        raise UsageMistake(f"{needs}: run it on the collector's machine, or unset COLLECTOR_URL")


def verb(app: typer.Typer, name: str) -> Callable[[F], F]:
    """Makes a function whose first parameter is `asked` a command of `app`."""

    def registered(function: F) -> F:
        signature = inspect.signature(function, eval_str=True)
        _, *given = signature.parameters.values()
        parameters = [*(each.replace(kind=_KEYWORD) for each in given), *_STANDING]

        def command(
            *, json: bool, config: Path | None, demo: bool, debug: bool, **own: Any
        ) -> None:
            if debug:
                want_tracebacks()
            asked = Asked(json, config, demo)
            try:
                function(asked, **own)
            finally:
                _mention_neighbour(asked)
                _mention_open_key(asked)

        # What typer reads a command's arguments from.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        command.__doc__ = function.__doc__
        app.command(name)(command)
        return function

    return registered


def _mention_neighbour(asked: Asked) -> None:
    if asked.embedded:
        from collector.cli.neighbour import neighbour

        note = neighbour(asked.embedded[0], demo=asked.demo)
        if note is not None:
            say(note)


def _mention_open_key(asked: Asked) -> None:
    if asked.urls:
        from urllib.parse import urlsplit

        from collector.listening import is_on_this_machine

        url = urlsplit(asked.urls[0])
        if url.scheme == "http" and not is_on_this_machine(asked.urls[0]):
            say(f"the key for {url.hostname} is sent unencrypted: everybody on the way can read it")


def give(asked: Asked, work: Coroutine[Any, Any, Output]) -> None:
    """Does the work and prints its answer. Raises the first failure after that."""
    import asyncio

    given(asked, asyncio.run(work))


def given(asked: Asked, answer: Output) -> None:
    """Prints an answer that is there already. Raises the first failure after that."""
    from collector.cli.output import show, to_json

    if asked.json:
        print(to_json(answer.facts))
    elif answer.shown:
        show(answer.shown)
    for note in answer.notes:
        say(note)
    for failure in answer.failures:
        raise failure
    if answer.exit_code:
        raise typer.Exit(answer.exit_code)
