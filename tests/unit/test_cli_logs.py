"""`collector logs`: the last lines of several programs, filters, and following."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from collector.cli.main import run
from collector.operations.process_logs import (
    LogFilter,
    LogFollower,
    LogLine,
    last_lines,
    log_files,
)

if TYPE_CHECKING:
    from pathlib import Path


def line(second: int, event: str, level: str = "info", **fields: Any) -> str:
    at = f"2025-01-01T12:00:{second:02}.000000Z"
    return json.dumps({"event": event, "level": level, "timestamp": at, **fields})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An API, two workers and a mongod."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, lines in {
        "api": [line(1, "api_started"), line(5, "request", status=200)],
        "worker-1": [
            line(2, "worker_started"),
            line(4, "run_retries", exchange="binance", job="65f0c0ffee0000000000beef"),
            "Traceback (most recent call last):",
        ],
        "worker-2": [line(3, "job_failed", "warning", exchange="kraken", error="a\nb")],
    }.items():
        (logs / f"{name}.log").write_text("".join(f"{each}\n" for each in lines), "utf-8")
    mongod = {"t": {"$date": "2025-01-01T11:00:00.000+00:00"}, "s": "W", "msg": "slow", "attr": {}}
    (logs / "mongod.log").write_text(json.dumps(mongod) + "\n", "utf-8")
    return logs


def events(*options: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run(["logs", *options, "--json"]) == 0
    return [each["event"] for each in json.loads(capsys.readouterr().out)["items"]]


def test_lines_of_all_programs_come_in_the_order_of_time(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = [
        "api_started",
        "worker_started",
        "job_failed",
        "run_retries",
        "Traceback",
        "request",
    ]
    found = events(capsys=capsys)
    assert [each.split(" ")[0] for each in found] == everything
    assert events("--tail", "2", capsys=capsys)[-1] == "request"
    assert events("--tail", "0", capsys=capsys) == []


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--level", "warning", "worker-2"], ["job_failed"]),
        (["--exchange", "binance"], ["run_retries"]),
        (["--job", "65f0c0"], ["run_retries"]),
        (["--job", "beef"], []),
        (["api"], ["api_started", "request"]),
        (["mongod"], ["slow"]),
    ],
)
def test_lines_are_chosen_by_level_exchange_job_and_program(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], wanted: list[str]
) -> None:
    assert events(*options, capsys=capsys) == wanted


def test_a_line_is_shown_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logs", "worker-2"]) == 0
    assert capsys.readouterr().out == (
        "2025-01-01 12:00:03.000 warning worker-2 job_failed exchange=kraken error=a b\n"
    )


def test_where_they_are(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logs", "--where", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["files"]
    assert found["worker-1"] == str(folder / "worker-1.log")
    assert "mongod" not in found


def test_a_program_without_a_log_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["logs", "worker1"]) == 3
    assert "did you mean worker-1" in capsys.readouterr().err
    for path in folder.glob("*.log"):
        path.unlink()
    assert run(["logs"]) == 3
    assert "`collector up` writes them" in capsys.readouterr().err


def test_what_is_added_is_followed_also_into_a_new_file(folder: Path) -> None:
    follower = LogFollower(log_files(folder), LogFilter(level="info"))
    path = folder / "api.log"
    assert follower.new_lines() == []
    with path.open("a", encoding="utf-8") as file:
        file.write(line(6, "half"))
    assert follower.new_lines() == [], "a line that is not whole yet"
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + line(7, "quiet", "debug") + "\n")
    assert [each.fields["event"] for each in follower.new_lines()] == ["half"]
    path.replace(path.with_suffix(".log.old"))
    assert follower.new_lines() == []
    path.write_text(line(8, "anew") + "\n", "utf-8")
    assert [each.fields["event"] for each in follower.new_lines()] == ["anew"]


def test_a_long_log_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "api.log"
    with path.open("w", encoding="utf-8") as file:
        for number in range(20_000):
            file.write(line(number % 60, f"event-{number}", text="ü" * 10) + "\n")
    found = last_lines({"api": path}, LogFilter(), 3)
    assert sorted(each.fields["event"] for each in found) == [
        "event-19997",
        "event-19998",
        "event-19999",
    ]
    assert len(last_lines({"api": path}, LogFilter(), 100_000)) == 20_000


def test_text_that_is_no_json_is_kept() -> None:
    assert LogLine.read("api", "[1, 2]").fields == {"event": "[1, 2]"}
    assert LogFilter(level="error").takes(LogLine.read("api", "Traceback"))
