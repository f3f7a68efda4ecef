"""The processes of `collector up`: their logs stay small while they run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from collector.cli import children
from collector.cli.children import Child
from collector.operations.process_logs import LogFilter, LogFollower
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

WRITTEN = 20_000
WRITER = f"""
import signal, sys
for number in range({WRITTEN}):
    sys.stderr.write(f"line {{number}} {"x" * 200}\\n")
    sys.stderr.flush()
signal.pause()
"""


async def test_a_log_is_cut_while_its_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "LARGEST_LOG", 10_000)
    monkeypatch.setattr(children, "LOG_CHECK_SECONDS", 0.01)
    (tmp_path / "writer.py").write_text(WRITER)
    log, before, said = tmp_path / "api.log", tmp_path / "api.log.old", list[str]()
    environment = {"PYTHONPATH": str(tmp_path)}
    child = Child("api", "writer", [], environment=environment, log=log, report=said.append)
    running = asyncio.create_task(child.keep_running())
    try:
        await until(lambda: before.exists() and log.stat().st_size < 10_000)
        assert before.read_text().startswith("line ")
        assert before.stat().st_size > 10_000
        assert {each.name for each in tmp_path.glob("api*")} == {log.name, before.name}
    finally:
        child.stop()
        await running
    assert (child.restarts, said) == (0, [])


def test_a_log_that_was_cut_is_followed_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "api.log"
    log.write_text("old one\nold two\n")
    follower = LogFollower({"api": log}, LogFilter())
    with log.open("a") as file:
        file.write("new one\n")
        file.flush()
        children.cut_log(log, longest=1)
        file.write("new two\n")
        file.flush()
        assert [line.fields["event"] for line in follower.new_lines()] == ["new two"]
    assert (tmp_path / "api.log.old").read_text() == "old one\nold two\nnew one\n"
