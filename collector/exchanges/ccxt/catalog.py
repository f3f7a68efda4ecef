"""Which exchanges ccxt supports, and the class of one.

Names are read from the installed files, and an exchange's module is imported when its class is
really needed, without the others (see package.py).
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from collector.errors import ConfigError
from collector.exchanges.ccxt.package import hold_back_exchanges

_OUR_CLASSES = {"simulated": "collector.simulated.ccxt_class"}


@lru_cache(maxsize=1)
def ccxt_ids() -> frozenset[str]:
    """Every exchange id of ccxt's own. Does not import ccxt."""
    return _modules_in("async_support")


def ccxt_class(exchange_id: str) -> Any:
    """The asynchronous ccxt class of an exchange. Raises ConfigError when there is none."""
    if exchange_id not in ccxt_ids() and exchange_id not in _OUR_CLASSES:
        raise ConfigError(f"there is no exchange called {exchange_id!r}")
    hold_back_exchanges()
    module = _OUR_CLASSES.get(exchange_id, f"ccxt.async_support.{exchange_id}")
    return getattr(importlib.import_module(module), exchange_id)


@lru_cache(maxsize=1)
def streaming_ids() -> frozenset[str]:
    """Every exchange of ccxt's that has websockets. Does not import ccxt."""
    return _modules_in("pro")


def streaming_class(exchange_id: str) -> Any:
    """ccxt's class of an exchange with websockets. Its REST class is imported first: the other
    takes it from the package."""
    ccxt_class(exchange_id)
    return getattr(importlib.import_module(f"ccxt.pro.{exchange_id}"), exchange_id)


def _modules_in(folder: str) -> frozenset[str]:
    spec = find_spec("ccxt")
    if spec is None or not spec.submodule_search_locations:
        return frozenset()
    folders = [str(Path(place, folder)) for place in spec.submodule_search_locations]
    found = (module.name for module in pkgutil.iter_modules(folders) if not module.ispkg)
    return frozenset(found)
