"""ccxt's packages without the exchanges that are not used.

`import ccxt` runs the modules of every exchange, twice: about a second and 60 MB in a process that
needs one or two of them. Each module works by itself, so the packages are put in place with their
own `__init__` not run yet. It runs when a missing name is looked up, so code that uses ccxt the
usual way finds everything.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_PACKAGES = ("ccxt", "ccxt.async_support", "ccxt.pro")


class _Package(ModuleType):
    def __getattr__(self, name: str) -> Any:
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__class__ = ModuleType  # type: ignore[assignment]
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # As in ccxt's own package, `ccxt.binance` is the class, not the module.
        inside = vars(value).get(name) if isinstance(value, ModuleType) else None
        super().__setattr__(name, inside or value)


def hold_back_exchanges() -> None:
    """From now on an exchange's module is run when it is imported. Does nothing the second time."""
    if _PACKAGES[0] in sys.modules:
        return
    package, *_ = [_put_in_place(name) for name in _PACKAGES]
    # What ccxt's own files, below the exchanges, take from the package.
    errors = import_module("ccxt.base.errors")
    vars(package).update({name: vars(errors)[name] for name in errors.__all__})
    vars(package)["Exchange"] = import_module("ccxt.base.exchange").Exchange


def _put_in_place(name: str) -> ModuleType:
    spec = find_spec(name)
    assert spec is not None
    package = module_from_spec(spec)
    package.__class__ = _Package
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)
    return package
