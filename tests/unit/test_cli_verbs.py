"""What holds for every verb: help with an example, JSON, one-line errors, quick help."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from collector.cli import arguments
from collector.cli.failures import UsageMistake, failure
from collector.cli.main import app, run
from collector.errors import ConfigError, RateLimited

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = {"up", "api", "worker", "simulate"}
"""They run until they are stopped, and log."""
HEAVY = (
    "ccxt",
    "pydantic",
    "pyarrow",
    "pandas",
    "numpy",
    "pymongo",
    "bson",
    "aiohttp",
    "structlog",
    "yaml",
)


def _verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", None)
    if not children:
        yield path, command
        return
    for name, child in children.items():
        yield from _verbs(child, (*path, name))


VERBS = dict(_verbs(typer.main.get_command(app)))


def test_the_verbs_of_the_contract_are_there() -> None:
    wanted = ["up", "api", "worker", "migrate up", "migrate status", "add", "status", "watch"]
    wanted += ["read", "export", "trades", "tickers", "key new", "simulate"]
    wanted += [f"connector {v}" for v in ("add", "list", "show", "pause", "resume", "remove")]
    wanted += [f"job {v}" for v in ("add", "list", "show", "pause", "resume", "run", "remove")]
    assert {" ".join(path) for path in VERBS} >= set(wanted)


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_help_has_an_example_that_begins_with_the_verb(path: tuple[str, ...]) -> None:
    assert f"Example: `collector {' '.join(path)}" in VERBS[path].help


@pytest.mark.parametrize("path", [p for p in VERBS if p[0] not in PROGRAMS], ids=" ".join)
def test_every_verb_that_answers_answers_in_json(path: tuple[str, ...]) -> None:
    options = {option for parameter in VERBS[path].params for option in parameter.opts}
    assert {"--json", "--config"} <= options


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom collector.cli.main import run\n"
        "assert run(['job', 'add', '--help']) == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "--symbol" in done.stdout


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["frob"], "No such command 'frob'"),
        (["job", "add"], "Missing argument 'EXCHANGE'"),
        (["job", "list", "--limit", "many"], "--limit"),
        (["job", "list", "--state", "asleep"], "asleep"),
        (["export", "binance", "BTC/USDT", "1m", "--out", "bars.txt"], "--format is csv"),
        (["connector", "add", "binanse"], "did you mean binance"),
        (["add", "binance", "BTC/USDT", "--timeframes", "1x"], "1x"),
        (["read", "binance", "BTC/USDT", "1x"], "1x"),
        (["read", "../etc", "BTC/USDT", "1m"], "../etc"),
        (["trades", "../etc", "BTC/USDT"], "../etc"),
        (["trades", "binanse", "BTC/USDT"], "did you mean binance"),
        (["trades", "binance", "é" * 100], "too long for a symbol"),
        (["trades", "binance", "BTC/USDT", "--format", "csv"], "add --out"),
        (["trades", "binance", "BTC/USDT", "--out", "trades.txt"], "--format is csv"),
        (["tickers", "binanse"], "did you mean binance"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(
    typed: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(typed) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("E_USAGE: ")
    assert words in err
    assert err.count("\n") == 1


def test_a_traceback_is_only_for_those_who_ask(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_DEBUG", "1")
    assert run(["connector", "add", "binanse"]) == 2
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("COLLECTOR_DEBUG", "0")
    assert run(["connector", "add", "binanse"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_errors_keep_their_names_and_numbers() -> None:
    assert failure(RateLimited("binance", 5, "window")).exit_code == 4
    grouped = ExceptionGroup("tasks", [ValueError("x"), ConfigError("two\nlines")])
    assert str(failure(grouped)) == "E_CONFIG: two lines"
    assert failure(UsageMistake("no")).exit_code == 2
    assert failure(FileNotFoundError(2, "No such file", "x/y")).exit_code == 7
    unexpected = failure(KeyError("k"))
    assert (unexpected.exit_code, unexpected.name) == (1, "E_API")
    assert "--debug" in unexpected.message


def test_a_key_is_told_once_and_its_line_lets_it_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "new", "--role", "operator", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    digest = hashlib.sha256(made["key"].encode()).hexdigest()
    assert made["line"] == f"operator:{digest}"
    assert run(["key", "new"]) == 0
    shown = capsys.readouterr().out
    assert "viewer:" in shown
    assert made["key"] not in shown


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_a_range_is_given_by_since_and_until(path: tuple[str, ...]) -> None:
    names = {name for each in VERBS[path].params for name in each.opts}
    assert not names & {"--start", "--end", "--from", "--to"}


def test_shells_complete_exchanges_types_and_the_last_timeframe() -> None:
    assert "binance" in arguments.exchange_ids("bina")
    assert arguments.job_types("gap_b") == ["gap_backfill"]
    assert arguments.timeframes("1m,15") == ["1m,15m"]
