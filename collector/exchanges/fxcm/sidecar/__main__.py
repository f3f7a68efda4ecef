"""Starts the sidecar: `python3.7 .../sidecar/__main__.py`, by path, with any interpreter.

Collector is not installed for that interpreter, so the folder is loaded as a package under a name
of its own. Its path is taken off `sys.path`: a file here must never be found by the SDK's imports.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

_NAME = "collector_fxcm_sidecar"


def _load_package() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.util.spec_from_file_location(
        _NAME, os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    _load_package()
    importlib.import_module(_NAME + ".program").main()
