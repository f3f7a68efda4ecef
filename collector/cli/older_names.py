"""Names of options that were used before: understood wherever the new one is, and not shown."""

from __future__ import annotations

_NEW = {"start": "since", "end": "until"}


def newer_name(name: str) -> str:
    """The name that an option has today; also given values, none of which is called so."""
    return _NEW.get(name, name)
