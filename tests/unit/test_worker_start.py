"""What the process of a worker is like once everything is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.processes import ROOT

PROGRAM = """
import gc, json, sys, workers.__main__ as started
modules, before = list(sys.modules), gc.isenabled()
started.look_seldom()
print(json.dumps([modules, before, gc.isenabled(), gc.get_freeze_count()]))
"""


@pytest.fixture(scope="module")
def started() -> Any:
    """Modules of a process that has imported a worker's program, and what it does with garbage."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


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
def test_a_worker_starts_without_what_its_jobs_may_never_use(started: Any, package: str) -> None:
    modules, *_ = started
    assert "workers.__main__" in modules
    assert package not in modules


def test_garbage_is_looked_for_when_everything_is_imported_and_not_before(started: Any) -> None:
    _, before, after, _ = started
    assert (before, after) == (False, True)


def test_what_the_imports_made_is_never_looked_through(started: Any) -> None:
    *_, frozen = started
    assert frozen > 100_000
