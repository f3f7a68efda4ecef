"""The dashboard's files, read once: each with its bytes, its type and its compressed form.

Files other than the page have the stamp of all of them in their address. They never change under
that address, so a browser keeps them for ever, and modules that import one another are always of
one version.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "static"
PAGE = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}
_STAMP_DIGITS = 12
_ADDRESS = "{{assets}}"
_MODULES = "{{modules}}"


@dataclass(frozen=True)
class File:
    """One file as it is sent."""

    data: bytes
    media_type: str

    @cached_property
    def packed(self) -> bytes | None:
        """Compressed with gzip; None when that would not help."""
        if self.media_type == TYPES[".woff2"]:
            return None
        return gzip.compress(self.data, 6, mtime=0)


@dataclass(frozen=True)
class DashboardFiles:
    """The page, and the other files by their path below the stamped address."""

    page: File
    stamp: str
    files: Mapping[str, File]

    @classmethod
    def read(cls, folder: Path = FOLDER) -> DashboardFiles:
        """All files of the folder. A file of an unknown type is a defect: KeyError."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = {
            path.relative_to(folder).as_posix(): File(path.read_bytes(), TYPES[path.suffix])
            for path in paths
        }
        digest = hashlib.sha256()
        for name, file in files.items():
            digest.update(f"{name}\0{len(file.data)}\0".encode())
            digest.update(file.data)
        stamp = digest.hexdigest()[:_STAMP_DIGITS]
        page = files.pop(PAGE)
        text = page.data.decode().replace(_MODULES, _preloads(files))
        text = text.replace(_ADDRESS, f"/assets/{stamp}")
        return cls(File(text.encode(), page.media_type), stamp, files)


@cache
def dashboard_files() -> DashboardFiles:
    """Those of this program, read once a process."""
    return DashboardFiles.read()


def _preloads(files: Mapping[str, File]) -> str:
    """Loads all modules at once instead of one level of imports after the other."""
    names = [name for name in files if name.startswith("js/") and name != "js/first_paint.js"]
    return "\n    ".join(
        f'<link rel="modulepreload" href="{_ADDRESS}/{name}" />' for name in sorted(names)
    )
