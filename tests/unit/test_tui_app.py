"""The viewer on a terminal, driven by keys; and the captures in the docs, which must be true."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from textual.widgets import Footer, Static

from collector.clock import ManualClock
from collector.errors import ConfigError
from collector.tui.app import Viewer, rendered
from collector.tui.fleet_picture import FleetPicture, with_event
from collector.tui.modes import BY_KEY, MODES
from tests.support.fleet_documents import NOW_MS, connector
from tests.support.until import until
from tests.support.watched_fleets import StillFleet, busy_fleet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.pilot import Pilot

DOCS = Path(__file__).parents[2] / "docs"
WIDTHS = (80, 140)


def viewer(fleet: StillFleet, mode: str = "1", every: float = 3_600.0) -> Viewer:
    """Drawn again when a key asks for it; by itself only after `every` seconds."""
    return Viewer(fleet, ManualClock(NOW_MS), every, mode)


def text_of(app: Viewer, name: str, width: int = 200) -> str:
    shown = app.query_one(f"#{name}", Static).content
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file:
        console.print(shown)
    return console.export_text()


@pytest.mark.parametrize("width", WIDTHS)
async def test_each_key_shows_its_mode(width: int) -> None:
    app = viewer(StillFleet(busy_fleet()))
    async with app.run_test(size=(width, 40)) as pilot:
        for mode in MODES:
            await pilot.press(mode.key)
            await pilot.pause()
            assert BY_KEY[mode.key].view(FleetPicture()).title in text_of(app, "content")
            assert f"{mode.key} {mode.name}" in text_of(app, "title")


async def test_the_keys_are_shown() -> None:
    app = viewer(StillFleet(busy_fleet()))
    async with app.run_test(size=(140, 40)):
        keys = {binding.key: binding.description for _, binding, *_ in _bindings(app)}
        assert app.query_one(Footer).is_attached
        assert {keys[mode.key] for mode in MODES} == {mode.name for mode in MODES}
        assert (keys["q"], keys["space"]) == ("quit", "hold")


async def test_every_key_has_room_in_a_terminal_of_80_columns() -> None:
    app = viewer(StillFleet(busy_fleet()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        shown = "".join(segment.text for segment in app.screen._compositor.render_strips()[-1])
        for name in (*(mode.name for mode in MODES), "hold", "quit"):
            assert name in shown, shown


def _bindings(app: Viewer) -> Iterable[tuple[object, ...]]:
    return app.screen.active_bindings.values()  # type: ignore[return-value]


async def test_banners_stand_above_every_mode() -> None:
    app = viewer(StillFleet(busy_fleet()), mode="7")
    async with app.run_test(size=(80, 40)) as pilot:
        for mode in MODES:
            await pilot.press(mode.key)
            assert "FXCM BACKOFF 45 s (NetworkError x3)" in text_of(app, "banners")


async def test_changes_are_drawn_by_themselves_and_not_while_it_is_held() -> None:
    fleet = StillFleet(busy_fleet())
    app = viewer(fleet, every=0.1)
    async with app.run_test(size=(140, 40)) as pilot:
        fleet.picture = with_event(fleet.picture, "connector", connector("kraken"))
        await until(lambda: "kraken" in text_of(app, "content"), "the new exchange is shown")
        await pilot.press("space")
        fleet.picture = with_event(fleet.picture, "connector", connector("okx"))
        await pilot.pause()
        assert "okx" not in text_of(app, "content")
        assert "HELD" in text_of(app, "title")
        await pilot.press("space")
        await until(lambda: "okx" in text_of(app, "content"), "it goes on")


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_a_key_leaves_it(key: str) -> None:
    app = viewer(StillFleet(busy_fleet()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
    assert app.failure is None


async def test_a_refused_key_ends_it_with_the_reason() -> None:
    app = viewer(StillFleet(FleetPicture(), failure=ConfigError("another key")))
    async with app.run_test(size=(80, 24)):
        await until(lambda: app.failure is not None, "it has ended")
    assert isinstance(app.failure, ConfigError)


def captured(width: int) -> str:
    """Every mode as text, as wide as a terminal."""
    picture = busy_fleet()
    parts = []
    for mode in MODES:
        with open(os.devnull, "w") as nowhere:
            console = Console(width=width, record=True, file=nowhere)
            console.print(rendered(mode.view(picture), width))
            parts.append(f"[{mode.key} {mode.name}]\n{console.export_text()}")
    return "\n".join("\n".join(map(str.rstrip, part.splitlines())) + "\n" for part in parts)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_captures_in_the_docs_are_what_the_viewer_shows(width: int) -> None:
    """With COLLECTOR_CAPTURES=write they are made anew."""
    file = DOCS / "captures" / f"watch-{width}.txt"
    if os.environ.get("COLLECTOR_CAPTURES") == "write":
        file.write_text(captured(width), "utf-8")
    assert file.read_text("utf-8") == captured(width)
    assert max(map(len, captured(width).splitlines())) <= width


def words_of(picture: str) -> list[str]:
    """The text of an SVG, without what differs from one drawing to the next."""
    return re.findall(r">([^<>]+)</text>", picture)


async def until_drawn(pilot: Pilot[None], file: Path) -> None:
    """A busy machine draws later: waits for what is expected, and gives up when it never comes."""
    expected = words_of(file.read_text("utf-8"))
    for _ in range(1_000):
        await pilot.pause(0.02)
        if words_of(pilot.app.export_screenshot(title="collector watch")) == expected:
            return


@pytest.mark.parametrize(("width", "mode", "rows"), [(80, "5", 30), (140, "1", 24)])
async def test_the_pictures_in_the_docs_are_what_the_viewer_draws(
    width: int, mode: str, rows: int
) -> None:
    file = DOCS / "captures" / f"watch-{width}.svg"
    app = Viewer(StillFleet(busy_fleet()), ManualClock(NOW_MS), 3_600.0, mode)
    async with app.run_test(size=(width, rows)) as pilot:
        await until_drawn(pilot, file)
        drawn = app.export_screenshot(title="collector watch")
    if os.environ.get("COLLECTOR_CAPTURES") == "write":
        # Without the font of a third party's host: the reader's own will do.
        file.write_text(re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL), "utf-8")
    saved = file.read_text("utf-8")
    assert words_of(saved) == words_of(drawn)
    assert "cdnjs" not in saved
