"""Names and errors of exchanges on a terminal: text, never markup, and nothing moves the cursor."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from bson import ObjectId
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from api.middleware.trace import Trace
from collector import logs
from collector.cli import completion
from collector.cli import up as up_module
from collector.cli.board import board, one_line
from collector.cli.failures import report
from collector.cli.output import Output, show_lines
from collector.cli.trouble_lines import trouble_lines
from collector.cli.up import Up, UpOptions
from collector.cli.verb import Asked, given
from collector.errors import ExchangeUnavailable
from collector.jobs.job import Job
from collector.operations.shown.status import shown_trouble
from collector.operations.troubles import Trouble, TroubleKind
from collector.progress import console, progress_of_jobs
from collector.settings import Settings
from collector.text import printable, shortened
from collector.tui.fleet_picture import FleetPicture, with_event
from collector.tui.modes import MODES
from migrations.__main__ import LEFT, show
from tests.support import fleet_documents
from tests.support.watched_fleets import StillFleet
from tests.unit import test_cli_troubles, test_tui_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "[/api/v3/klines] [bold]x[/] :smile: \x1b]0;owned\x07\x1b[2J\x9b2J\u202e"
VISIBLE = "[/api/v3/klines] [bold]x[/] :smile:"
NOW_MS = fleet_documents.NOW_MS
TROUBLE = shown_trouble(Trouble(TroubleKind.UNREACHABLE, HOSTILE, HOSTILE, HOSTILE, NOW_MS, 1))


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def without_colours(text: str) -> str:
    """Also without what a live picture needs: the cursor shown and hidden, lines begun anew."""
    return re.sub(r"\r|\x1b\[(\d+(;\d+)*m|\?25[lh]|1A|2K)", "", text)


def use_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")


def test_printable_text_is_one_line_of_visible_characters() -> None:
    assert printable("a\x1b[2J\nb\ud800\u202e") == "a [2J b  "
    assert printable("BTC/USDT ₿") == "BTC/USDT ₿"
    assert shortened("x" * 10, 10) == "x" * 10
    assert shortened("x" * 11, 10) == "x" * 10 + "... (11 characters)"


@pytest.mark.parametrize(
    "shown",
    [
        HOSTILE,
        Text(HOSTILE),
        Group(HOSTILE, Text(HOSTILE)),
        Table(HOSTILE, title=HOSTILE, caption=HOSTILE),
        board(
            [test_cli_troubles.job(HOSTILE, exchange_id=HOSTILE, waiting_for=HOSTILE)],
            [fleet_documents.connector(HOSTILE, stop={"reason": HOSTILE, "until": None})],
            1.0,
            NOW_MS,
            troubles=[TROUBLE],
        ),
    ],
    ids=["str", "text", "group", "table", "board"],
)
def test_what_a_verb_shows_is_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shown: Any
) -> None:
    use_terminals(monkeypatch)
    given(Asked(), Output({}, shown))
    out = without_colours(capsys.readouterr().out)
    assert "[/api/v3/klines]" in out
    assert is_harmless(out)


def test_lines_and_live_pictures_are_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_terminals(monkeypatch)
    show_lines([HOSTILE])
    with Live(console=console(), auto_refresh=False) as live:
        live.update("\n".join(trouble_lines([TROUBLE], NOW_MS)), refresh=True)
        live.update(one_line([], [], 0.0, [TROUBLE]), refresh=True)
    out = without_colours(capsys.readouterr().out)
    assert out.count("[/api/v3/klines]") >= 3
    assert is_harmless(out)


def test_the_progress_of_jobs_is_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_terminals(monkeypatch)
    document = {"_id": ObjectId(), "exchange_id": HOSTILE, "type": HOSTILE, "symbol": HOSTILE}
    fields = {"timeframe": "1m", "status": "active", "state": "idle", "waiting_for": HOSTILE}
    fields |= {"priority": 1, "next_run_at": 1}
    with progress_of_jobs() as shown:
        shown([Job.from_document({**document, **fields})], 0)
    err = without_colours(capsys.readouterr().err)
    assert "[/api/v3/klines]" in err
    assert is_harmless(err)


@pytest.mark.parametrize("debug", ["", "1"])
def test_an_error_is_one_line_of_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, debug: str
) -> None:
    monkeypatch.setenv("COLLECTOR_DEBUG", debug)
    report(ExchangeUnavailable(HOSTILE))
    with pytest.raises(ExchangeUnavailable):
        given(Asked(), Output({}, "", [HOSTILE], [ExchangeUnavailable(HOSTILE)]))
    err = capsys.readouterr().err
    assert err.count(VISIBLE) >= 2
    assert is_harmless(err)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    try:
        yield io.StringIO()
    finally:
        logs.configure("CRITICAL", "json")


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_line_is_one_line_of_text_of_bounded_length(
    logged: io.StringIO, monkeypatch: pytest.MonkeyPatch, form: logs.Format
) -> None:
    monkeypatch.setattr(sys, "stderr", logged)
    logs.configure("INFO", form)
    log = logs.get("test.text")
    log.info("request", path=HOSTILE + "\nforged", error=HOSTILE * 1_000)
    logging.getLogger("test.of_others").info("%s\nforged", HOSTILE)
    lines = logged.getvalue().splitlines()
    assert len(lines) == 2
    assert all(VISIBLE in line and len(line) < 3_000 for line in lines)
    if form == "json":
        assert is_harmless("".join(json.loads(lines[0])["path"]))
    assert is_harmless(without_colours(logged.getvalue()))
    try:
        raise ExchangeUnavailable(HOSTILE)
    except ExchangeUnavailable:
        log.exception("crashed")
    assert "Traceback" in logged.getvalue()
    assert is_harmless(without_colours(logged.getvalue()))


async def test_the_path_of_a_request_is_logged_in_a_few_hundred_characters(
    logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", logged)
    logs.configure("INFO", "json")

    async def crash(*_: object) -> None:
        raise ValueError("a defect")

    async def ignore(_message: object) -> None:
        pass

    scope = {"type": "http", "method": "GET", "path": "/" + "x" * 30_000, "headers": []}
    await Trace(crash)(scope, ignore, ignore)  # type: ignore[arg-type]
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["request_crashed", "request"]
    assert {len(line["path"]) for line in lines} == {len("... (30,001 characters)") + 200}


async def test_every_mode_of_the_viewer_shows_hostile_names_as_text() -> None:
    picture = FleetPicture(at_ms=NOW_MS)
    stopped = fleet_documents.connector(HOSTILE, blocked_until=NOW_MS + 1, blocked_reason=HOSTILE)
    picture = with_event(picture, "connector", stopped)
    picture = with_event(picture, "job", {**fleet_documents.job(HOSTILE), "reason": HOSTILE})
    fleet = StillFleet(picture)
    fleet.url = HOSTILE
    app = test_tui_app.viewer(fleet)
    async with app.run_test(size=(240, 40)) as pilot:
        for mode in MODES:
            await pilot.press(mode.key)
            await pilot.pause()
            parts = [test_tui_app.text_of(app, name) for name in ("title", "banners", "content")]
            assert VISIBLE in parts[0]
            assert VISIBLE.upper() in parts[1].upper()
            assert all(map(is_harmless, parts))


def test_a_shell_is_offered_no_name_that_it_would_act_on(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        "BTC/USDT",
        "我/USDT:USDT",
        "$(x)/USDT",
        "`x`/USDT",
        "A B",
        "[X]/USDT",
        "a\x1b[2J",
        "a;b",
    ]
    source = SimpleNamespace(
        symbols=lambda *_: names, exchanges=lambda _: [], jobs=lambda _: [("ab" * 12, HOSTILE)]
    )
    monkeypatch.setattr(completion, "_source", lambda _: source)
    context: Any = SimpleNamespace(params={})
    assert completion.symbols_of_exchange(context, "") == names[:2]
    [(_, about)] = completion.jobs_by_id(context, "ab")
    assert is_harmless(about)


def test_a_migration_names_hostile_series_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    show({"series": 1, "connectors": [], "jobs": [], next(iter(LEFT)): [HOSTILE]})
    out = capsys.readouterr().out
    assert VISIBLE in out
    assert is_harmless(out)


# -- `collector up` ----------------------------------------------------------------------------


@pytest.fixture
def up(tmp_path: Path) -> Up:
    return Up(Settings(home=tmp_path), UpOptions())


def test_up_prints_text(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    up._print(HOSTILE)
    out = capsys.readouterr().out
    assert VISIBLE in out
    assert is_harmless(out)


def test_a_screen_that_is_gone_does_not_end_the_fleet(
    up: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with io.TextIOWrapper(io.FileIO(writer, "w"), write_through=True) as screen:
        monkeypatch.setattr(sys, "stdout", screen)
        up._print("words")
        up._print("words")


async def test_a_picture_that_fails_is_reported_and_drawn_again(
    up: Up, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = asyncio.Event()

    class Screen:
        pictures = 0

        def __init__(self, *_: object) -> None:
            pass

        async def keep_showing(self) -> None:
            Screen.pictures += 1
            if Screen.pictures == 1:
                raise ValueError(HOSTILE)
            drawn.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(up_module, "UpScreen", Screen)
    monkeypatch.setattr(up_module, "SCREEN_PAUSE_SECONDS", 0.0)
    showing = asyncio.create_task(up._keep_showing(None))  # type: ignore[arg-type]
    await asyncio.wait_for(drawn.wait(), 10)
    showing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await showing
    out = capsys.readouterr().out
    assert f"ValueError: {VISIBLE}" in out
    assert is_harmless(out)
