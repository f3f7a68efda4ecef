"""Where files lie, against the picture in docs/store-format.md."""

from __future__ import annotations

import re

from collector.market.interval import Interval
from collector.market.series import Series
from collector.store import layout
from tests.unit.docs.pages import page

SERIES = Series.of("binance", "BTC/USDT", "1m")


def drawn() -> set[str]:
    """Every path of the picture, each name that is made up as `*`."""
    picture = page("store-format.md").partition("```\n")[2].partition("```")[0]
    folders: list[str] = []
    found = set()
    for line in picture.splitlines()[1:]:
        indent = (len(line) - len(line.lstrip())) // 2 - 1
        names = re.split(r"\s{2,}", line.strip())[0]
        if names.endswith("/"):
            folders = [*folders[:indent], names]
            continue
        for name in names.split(", "):
            found.add("".join(folders[:indent]) + generic(name))
    return found


def generic(path: str) -> str:
    path = re.sub(r"<[a-z_]+>(-<[a-z_]+>)*", "*", path)
    return re.sub(r"\d{4}-\d\d-\d\d", "*", path)


def written() -> set[str]:
    """What the layout's functions give; parts and digests as `*`."""
    hull = Interval(0, 60_000)
    folders = (
        layout.pages_folder(SERIES),
        layout.groups_folder("binance"),
        layout.trade_parts_folder("binance", "BTC/USDT"),
    )
    parts = [layout.part_path(folder, hull, 1, "w1", b"") for folder in folders]
    longer = [Series.of("binance", "BTC/USDT", name) for name in ("5m", "15m", "1h", "1M")]
    return {
        layout.sealed_path(SERIES),
        layout.checksum_path(SERIES),
        layout.tail_path(SERIES),
        layout.versions_path(SERIES),
        f"{layout.quarantine_folder(SERIES)}/1m-*.parquet",
        generic(layout.trades_path("binance", "BTC/USDT", "2026-01-31")),
        *(layout.sealed_path(each) for each in longer),
        layout.whole_path(longer[0]),
        *(re.sub(r"/[^/]*\.parquet$", "/*.parquet", path) for path in parts),
    }


def test_the_picture_shows_every_kind_of_file() -> None:
    assert drawn() == written()


def test_the_layout_has_no_path_that_the_picture_lacks() -> None:
    """A new function that names a place belongs into this test and into the picture."""
    places = {name for name in vars(layout) if re.search(r"_(path|folder)$", name)}
    assert places == {
        *("sealed_path", "checksum_path", "tail_path", "versions_path", "trades_path", "part_path"),
        *("symbol_folder", "pages_folder", "groups_folder", "quarantine_folder"),
        *("trades_folder", "trade_parts_folder", "whole_path"),
    }
