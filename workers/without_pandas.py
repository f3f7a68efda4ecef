"""Imported before anything else in a worker process: keeps pandas out of it.

pyarrow looks for pandas when it is first given an array, and loads it if it is installed: 50 MB and
half a second of every start, for something that no worker uses. Told that it is not there, pyarrow
goes on without.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("workers do without pandas", name=name)


sys.meta_path.insert(0, _NoPandas())
