"""What a user sees when mongod would not start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from collector.mongo.mongod_log import last_words, port_was_taken

if TYPE_CHECKING:
    from pathlib import Path


def entry(severity: str, headline: str, **facts: str) -> str:
    return json.dumps({"t": {}, "s": severity, "c": "CONTROL", "msg": headline, "attr": facts})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "mongod.log"


def test_the_last_error_is_told_and_chatter_is_not(log: Path) -> None:
    log.write_text(
        "\n".join(
            [
                entry("E", "WiredTiger error", message="first"),
                entry("E", "DBException in initAndListen", error="Location28596: bad checksum"),
                entry("I", "Now exiting"),
                "2026-01-01T00:00:00Z guardian: mongod 7 exited with code 100",
            ]
        )
    )
    assert last_words(log) == "DBException in initAndListen: Location28596: bad checksum"


def test_a_missing_library_names_the_package(log: Path) -> None:
    log.write_text(
        "mongod: error while loading shared libraries: libcurl.so.4: cannot open shared object\n"
        "2026-01-01T00:00:00Z guardian: mongod 7 exited with code 127\n"
    )
    assert last_words(log).endswith("install libcurl4 (Debian, Ubuntu: apt install libcurl4)")


def test_without_an_error_the_manner_of_death_is_told(log: Path) -> None:
    log.write_text(entry("I", "hello") + "\n2026 guardian: mongod 7 was killed by SIGILL\n")
    assert "was killed by SIGILL; this CPU lacks" in last_words(log)


def test_a_log_that_is_empty_or_missing_is_no_error(log: Path) -> None:
    assert last_words(log) == "its log is empty"
    assert not port_was_taken(log)


def test_a_taken_port_is_recognised(log: Path) -> None:
    log.write_text(entry("E", "Failed to set up listener", error="Address already in use"))
    assert port_was_taken(log)
