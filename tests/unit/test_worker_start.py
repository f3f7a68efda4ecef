"""What the process of a worker is like once everything is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.processes import ROOT


def said_by_a_worker(statement: str) -> str:
    """What a statement prints in a process that has imported a worker's program."""
    program = f"import gc, sys, workers.__main__ as started; {statement}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "package",
    [
        *("pandas", "rich", "yaml", "ccxt", "cryptography.x509"),
        *("workers.handlers.backfill", "workers.handlers.price_stream"),
        *(
            "collector.history.ledger",
            "collector.publication.publisher",
            "collector.mongo.embedded",
        ),
    ],
)
def test_a_worker_starts_without_what_its_jobs_may_never_use(package: str) -> None:
    assert said_by_a_worker(f"print({package!r} in sys.modules)") == "False"


def test_garbage_is_looked_for_when_everything_is_imported_and_not_before() -> None:
    states = "print(gc.isenabled()); started.look_seldom(); print(gc.isenabled())"
    assert said_by_a_worker(states).split() == ["False", "True"]


def test_what_the_imports_made_is_never_looked_through() -> None:
    frozen = int(said_by_a_worker("started.look_seldom(); print(gc.get_freeze_count())"))
    assert frozen > 100_000
