"""How many examples a property is tried on: a third in `make test`, all in `make acceptance`."""

from __future__ import annotations

import os

ALL = os.environ.get("PROPERTY_EXAMPLES") == "all"


def examples(count: int) -> int:
    return count if ALL else count // 3
