"""Which Python runs FXCM's SDK: the chosen one, else what runs on PATH or under pyenv."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from collector.exchanges.fxcm.failures import FxcmMissing
from collector.exchanges.fxcm.interpreter import child_environment, find_interpreter

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A machine with two folders on PATH and a pyenv, all empty."""
    return {
        "PATH": f"{tmp_path / 'one'}:{tmp_path / 'two'}:/usr/bin:/bin",
        "HOME": str(tmp_path),
    }


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def python(path: Path, version: str = "3.7.16", sdk: str | None = "1.6.43", *missing: str) -> Path:
    """A program that answers as an interpreter does."""
    answer = json.dumps({"python": version, "sdk": sdk, "missing": missing})
    return script(path, f"echo '{answer}'")


def dead_shim(path: Path) -> Path:
    """What pyenv puts on PATH for a version that is not selected."""
    return script(path, "echo 'pyenv: python3.7: command not found' >&2; exit 127")


async def test_the_chosen_one_is_taken(tmp_path: Path, environ: dict[str, str]) -> None:
    python(tmp_path / "one" / "python3.7")
    chosen = python(tmp_path / "elsewhere" / "python", "3.7.1")
    found = await find_interpreter({**environ, "COLLECTOR_FXCM_PYTHON": str(chosen)})
    assert (found.path, found.python, found.sdk) == (chosen, "3.7.1", "1.6.43")


async def test_a_chosen_one_that_does_not_run_is_never_replaced(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    python(tmp_path / "one" / "python3.7")
    for path, reason in (
        (tmp_path / "nowhere", "cannot be run"),
        (dead_shim(tmp_path / "shim"), "ended with code 127"),
    ):
        with pytest.raises(FxcmMissing, match=rf"COLLECTOR_FXCM_PYTHON=.*{reason}"):
            await find_interpreter({**environ, "COLLECTOR_FXCM_PYTHON": str(path)})


async def test_a_dead_shim_on_the_path_is_passed_over(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    dead_shim(tmp_path / "one" / "python3.7")
    second = python(tmp_path / "two" / "python3.7")
    assert (await find_interpreter(environ)).path == second


async def test_the_path_comes_before_pyenv_and_newer_before_older(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    versions = tmp_path / ".pyenv" / "versions"
    python(versions / "3.7.9" / "bin" / "python3.7", "3.7.9")
    python(versions / "3.7.16" / "bin" / "python3.7", "3.7.16")
    python(versions / "3.8.18" / "bin" / "python3.7", "3.8.18")  # nobody asks it
    assert (await find_interpreter(environ)).python == "3.7.16"
    on_path = python(tmp_path / "two" / "python3.7", "3.7.2")
    assert (await find_interpreter(environ)).path == on_path


async def test_pyenv_may_be_anywhere(tmp_path: Path, environ: dict[str, str]) -> None:
    root = tmp_path / "opt" / "pyenv"
    found = python(root / "versions" / "3.7.17" / "bin" / "python3.7")
    assert (await find_interpreter({**environ, "PYENV_ROOT": str(root)})).path == found


async def test_one_with_the_sdk_is_preferred_to_one_without(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    python(tmp_path / "one" / "python3.7", sdk=None)
    second = python(tmp_path / "two" / "python3.7")
    assert (await find_interpreter(environ)).path == second


async def test_what_an_interpreter_lacks_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    path = python(tmp_path / "one" / "python3.7", "3.7.16", None, "pandas")
    with pytest.raises(FxcmMissing) as raised:
        await find_interpreter(environ)
    message = str(raised.value)
    assert f"Python 3.7.16 at {path} lacks forexconnect, pandas" in message
    assert "pip install forexconnect==1.6.43 numpy==1.21.6 pandas==1.3.5" in message


async def test_no_interpreter_at_all_is_one_clear_error(environ: dict[str, str]) -> None:
    environ["PATH"] = environ["PATH"].removesuffix(":/usr/bin:/bin")
    with pytest.raises(FxcmMissing, match=r"^no Python 3\.7 found .*COLLECTOR_FXCM_PYTHON") as one:
        await find_interpreter(environ)
    assert "\n" not in str(one.value)


def test_neither_secrets_nor_our_own_python_reach_the_child() -> None:
    ours = {
        "COLLECTOR_SECRET_FXCM": "secret",
        "PYTHONPATH": "/our/own",
        "VIRTUAL_ENV": "/our/own",
        "HOME": "/home",
    }
    assert child_environment(ours) == {"HOME": "/home"}
