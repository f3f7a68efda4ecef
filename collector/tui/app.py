"""The viewer on a terminal: draws the view models, and nothing more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Protocol

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import App
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

from collector.text import printable
from collector.tui.banners import banners
from collector.tui.fleet_picture import FleetPicture, sampled
from collector.tui.modes import BY_KEY, MODES, figures
from collector.tui.sheet import Cell, Grid, Sheet, Tone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from textual.app import ComposeResult

    from collector.clock import Clock

STYLES = {
    Tone.PLAIN: "",
    Tone.GOOD: "green",
    Tone.WARNING: "yellow",
    Tone.BAD: "bold red",
    Tone.FAINT: "dim",
    Tone.STRONG: "bold",
}
_BANNERS = {Tone.BAD: "bold white on red", Tone.WARNING: "black on yellow"}


class WatchedFleet(Protocol):
    """Where the picture comes from."""

    url: str
    picture: FleetPicture

    async def follow(self) -> None:
        """Keeps the picture up to date until cancelled."""


class Viewer(App[None]):
    """Seven modes of one picture, redrawn every `every` seconds."""

    TITLE = "collector watch"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #banners { height: auto; }
    #title { height: 1; background: $primary; color: $text; }
    #content { padding: 0 1; }
    """
    BINDINGS: ClassVar = [
        *(Binding(mode.key, f"show('{mode.key}')", mode.name) for mode in MODES),
        Binding("space", "hold", "hold", key_display="spc"),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(
        self, fleet: WatchedFleet, clock: Clock, every: float = 1.0, mode: str = "1"
    ) -> None:
        super().__init__()
        self._fleet = fleet
        self._clock = clock
        self._every = every
        self._mode = BY_KEY[mode]
        self._held: FleetPicture | None = None
        self.failure: Exception | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        yield Static(id="banners")
        with VerticalScroll():
            yield Static(id="content")
        yield Footer(compact=True)  # so that every key has room in 80 columns

    def on_mount(self) -> None:
        self.run_worker(self._follow(), name="follow", exit_on_error=False)
        self.set_interval(self._every, self._sample)
        self._sample()

    def on_resize(self) -> None:
        self._draw()

    def action_show(self, key: str) -> None:
        """Another mode."""
        self._mode = BY_KEY[key]
        self._draw()

    def action_hold(self) -> None:
        """Stops the picture, to read or copy it; again lets it go on."""
        self._held = None if self._held is not None else self._fleet.picture
        self._draw()

    async def _follow(self) -> None:
        try:
            await self._fleet.follow()
        except Exception as error:  # noqa: BLE001 - the command line reports it when the screen is gone
            self.failure = error
            self.exit(return_code=1)

    def _sample(self) -> None:
        known = self._fleet.picture
        self._fleet.picture = sampled(known, self._clock.wall_ms(), figures(known))
        self._draw()

    def _draw(self) -> None:
        if not self.query("#content"):
            return  # A resize comes before the first widgets.
        picture = self._held or self._fleet.picture
        width = self.size.width
        self.query_one("#title", Static).update(self._title(picture))
        self.query_one("#banners", Static).update(_stripes(banners(picture)))
        sheet = self._mode.view(picture)
        self.query_one("#content", Static).update(rendered(sheet, width))

    def _title(self, picture: FleetPicture) -> Text:
        at = time.strftime("%H:%M:%S", time.gmtime(picture.at_ms / 1000))
        held = "  HELD" if self._held is not None else ""
        return _text(f" {self._mode.key} {self._mode.name}   {self._fleet.url}   {at} UTC{held}")


def rendered(sheet: Sheet, width: int) -> RenderableType:
    """A sheet for a terminal of so many columns."""
    parts: list[RenderableType] = [_text(sheet.title, "bold underline")]
    parts += [_line(each) for each in sheet.lines]
    for grid in sheet.grids:
        parts += [Text(""), _table(grid.at(width))]
    return Group(*parts)


def _line(cells: Iterable[Cell]) -> Text:
    return Text.assemble(*map(_cell, cells))


def _cell(cell: Cell) -> Text:
    return _text(cell.text, STYLES[cell.tone])


def _text(words: str, style: str = "") -> Text:
    """Nothing of it is markup, and nothing moves the cursor."""
    return Text(printable(words), style)


def _table(grid: Grid) -> Table:
    made = Table(
        title=_text(grid.title) if grid.title else None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    for column in grid.columns:
        made.add_column(column.name, justify="right" if column.right else "left", no_wrap=True)
    for cells in grid.rows:
        made.add_row(*map(_cell, cells))
    return made


def _stripes(found: list[Cell]) -> Text:
    lines = [_text(f" {each.text} ", _BANNERS.get(each.tone, "reverse")) for each in found]
    return Text("\n").join(lines)
