"""Imported before anything else in a worker process: keeps out of it what no worker uses.

pyarrow looks for pandas when it is first given an array, and structlog looks for rich when it is
imported. Both are loaded if they are installed: 60 MB and more than half a second of every start.
pymongo looks for pyOpenSSL, which its asynchronous client cannot use, and loads half of
cryptography on the way. Here they find none of it, and work without; a traceback in a log is then
the plain one. pydantic looks for plugins in the metadata of every package that is installed, and is
told that there are none.

aiohttp reads the system's certificate authorities when it is imported, twice, 45 ms; the sessions
of a worker bring their own (exchanges/ccxt/session.py). So the default trusts none, and a session
without authorities of its own reaches no address with TLS.
"""

from __future__ import annotations

import os
import ssl
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_UNUSED = frozenset({"pandas", "rich", "pymongo.pyopenssl_context"})


class _NotThere(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name in _UNUSED:
            raise ModuleNotFoundError(f"workers do without {name}", name=name)


sys.meta_path.insert(0, _NotThere())
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")


_READ_AUTHORITIES = "set_default_verify_paths"


def _import_without_authorities(name: str) -> None:
    setattr(ssl.SSLContext, _READ_AUTHORITIES, lambda _: None)
    try:
        import_module(name)
    finally:
        delattr(ssl.SSLContext, _READ_AUTHORITIES)


_import_without_authorities("aiohttp.connector")
