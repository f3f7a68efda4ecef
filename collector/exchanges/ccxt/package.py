"""ccxt's packages without the exchanges that are not used.

`import ccxt` runs the modules of every exchange, twice: about a second and 60 MB in a process that
needs one or two of them. Each module works by itself, so the packages are put in place with their
own `__init__` not run yet. It runs when a missing name is looked up, so code that uses ccxt the
usual way finds everything.

Below the exchanges ccxt imports requests for its synchronous half, which nothing here uses: 50 ms
more. It is given stand-ins for the few names that it takes. One of them names the client in the
requests to exchanges for which ccxt itself has no name.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from collector.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    with _without_requests():
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


class _Session:
    """Only a synchronous exchange makes one."""

    def __init__(self) -> None:
        raise NotImplementedError("requests was left out of ccxt's synchronous half")


class _Error(Exception):
    """Only requests would raise it."""


_ERRORS = ("HTTPError", "Timeout", "TooManyRedirects", "RequestException", "ConnectionError")
_REQUESTS: dict[str, dict[str, object]] = {
    "requests": {"Session": _Session},
    "requests.utils": {"default_user_agent": lambda: f"collector/{__version__}"},
    "requests.exceptions": dict.fromkeys(_ERRORS, _Error),
}


@contextmanager
def _without_requests() -> Iterator[None]:
    """Stand-ins while a module is imported; whoever imports requests later gets requests."""
    before = {name: sys.modules.get(name) for name in _REQUESTS}
    for name, names in _REQUESTS.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(names)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
