"""The rooms and their order, and every file that a page names, against what is there."""

from __future__ import annotations

import re
import tomllib

from tests.unit.docs.pages import DOCS, PROGRAMS, ROOT, page, rows, section, sources, words

PAGE = page("architecture.md")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
NAMED = re.compile(r"`([\w./-]+\.py)`")


def rooms() -> set[str]:
    found = {
        f"collector/{each.name}" + ("/" if each.is_dir() else "")
        for each in (ROOT / "collector").iterdir()
        if not each.name.startswith("_") and (each.is_dir() or each.suffix == ".py")
    }
    return found | {f"{name}/" for name in PROGRAMS if name != "collector"}


def test_every_room_is_in_the_table_and_every_row_is_a_room() -> None:
    table = rows(section(PAGE, "## The rooms"))
    assert {name for names, _ in table for name in words(names)} == rooms()


def test_the_order_is_the_one_that_is_checked() -> None:
    drawn = section(PAGE, "## The import rule").partition("```\n")[2].partition("```")[0]
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    [layers] = [each["layers"] for each in rules["contracts"] if each.get("containers")]
    # In parentheses are rooms to come.
    there = [
        " | ".join(name for name in layer.split(" | ") if not name.startswith("("))
        for layer in layers
    ]
    assert drawn.splitlines() == there


def test_every_file_that_a_page_names_is_there() -> None:
    there = {*sources(), *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("*.py"))}
    there |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    made_up = {"workers/handlers/name.py", "collector/exchanges/quirks/venue.py"}
    made_up |= {"tests/support/dialects/venue.py", "migrations/versions/mNNNN_name.py"}
    lost = {
        f"{path.name}: {name}"
        for path in PAGES
        for name in NAMED.findall(path.read_text("utf-8"))
        if name not in made_up and not any(f"/{each}".endswith(f"/{name}") for each in there)
    }
    assert lost == set()


def test_every_link_between_pages_leads_somewhere() -> None:
    broken = {
        f"{path.name}: {target}"
        for path in [*PAGES, ROOT / "CHANGELOG.md", *sorted((DOCS / "adr").glob("*.md"))]
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
        if not (path.parent / target).exists()
    }
    assert broken == set()
