"""What `collector config check` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from collector.cli.output import Output, table
from collector.errors import ConfigError
from collector.operations.settings_check import check_settings

if TYPE_CHECKING:
    from collector.cli.verb import Asked


def checked(asked: Asked) -> Output:
    """The mistakes first, then every value that is not the default, then the others."""
    found = check_settings(asked.config)
    facts = {
        "file": None if found.file is None else str(found.file),
        "mistakes": list(found.mistakes),
        "settings": [
            {"name": each.name, "value": each.value, "from": each.source} for each in found.values
        ],
    }
    file = "no settings file: ./collector.yaml and the home have none"
    if found.file is not None:
        file = f"settings file: {found.file}"
    count = len(found.mistakes)
    words = f"{count} mistake{'s' if count != 1 else ''}"
    lines = [f"{words}:", *(f"  ! {each}" for each in found.mistakes), ""] if count else []
    ordered = sorted(found.values, key=lambda each: each.source == "default")
    rows = [(each.name, each.value, each.source) for each in ordered]
    values = table(("setting", "value", "from"), rows) if rows else "no value can be shown"
    failures = [ConfigError(f"the settings have {words}")] if count else []
    return Output(facts, Group(*lines, file, "", values), found.notes, failures)
