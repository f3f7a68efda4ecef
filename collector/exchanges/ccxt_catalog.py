"""Which exchanges ccxt knows, and the class of one.

Names are read from the installed files, and an exchange's module is imported when its class is
really needed, without the others (see ccxt_package.py).
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from collector.errors import ConfigError
from collector.exchanges.ccxt_package import hold_back_exchanges

_OUR_CLASSES = {"simulated": "collector.exchanges.simulated.ccxt_class"}


@lru_cache(maxsize=1)
def ccxt_ids() -> frozenset[str]:
    """Every exchange id there is a class for. Does not import ccxt."""
    spec = find_spec("ccxt")
    if spec is None or not spec.submodule_search_locations:
        return frozenset(_OUR_CLASSES)
    folders = [str(Path(place, "async_support")) for place in spec.submodule_search_locations]
    found = (module.name for module in pkgutil.iter_modules(folders) if not module.ispkg)
    return frozenset(found) | frozenset(_OUR_CLASSES)


def ccxt_class(exchange_id: str) -> Any:
    """The asynchronous ccxt class of an exchange. Raises ConfigError when there is none."""
    if exchange_id not in ccxt_ids():
        near = difflib.get_close_matches(exchange_id.strip().lower(), ccxt_ids(), n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise ConfigError(f"there is no exchange called {exchange_id!r}{hint}")
    hold_back_exchanges()
    module = _OUR_CLASSES.get(exchange_id, f"ccxt.async_support.{exchange_id}")
    return getattr(importlib.import_module(module), exchange_id)
