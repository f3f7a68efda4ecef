"""What the process of a worker is like once everything is imported."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from typing import Any

import pytest

from tests.support.processes import ROOT

PROGRAM = """
import gc, json, ssl, sys, workers.__main__ as started
modules, before = list(sys.modules), gc.isenabled()
started.look_seldom()
garbage = [before, gc.isenabled(), gc.get_freeze_count()]
from aiohttp.connector import _SSL_CONTEXT_VERIFIED as default
later = "set_default_verify_paths" not in vars(ssl.SSLContext)  # That would be the stand-in.
trust = [default.verify_mode, default.cert_store_stats(), later]
print(json.dumps({"modules": modules, "garbage": garbage, "trust": trust}))
"""


@pytest.fixture(scope="module")
def started() -> Any:
    """What a process tells about itself that has imported a worker's program."""
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
    modules = started["modules"]
    assert "workers.__main__" in modules
    assert package not in modules


def test_garbage_is_looked_for_when_everything_is_imported_and_not_before(started: Any) -> None:
    before, after, _ = started["garbage"]
    assert (before, after) == (False, True)


def test_what_the_imports_made_is_never_looked_through(started: Any) -> None:
    *_, frozen = started["garbage"]
    assert frozen > 100_000


def test_a_session_without_authorities_of_its_own_trusts_nobody(started: Any) -> None:
    mode, read, can_be_read_later = started["trust"]
    assert mode == ssl.CERT_REQUIRED
    assert set(read.values()) == {0}
    assert can_be_read_later
