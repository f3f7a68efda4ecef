"""A file that appears whole, or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """What was written."""

    path: Path
    rows: int


@dataclass(slots=True)
class FileDraft:
    """A file being written; `out` may be given another name until the block ends."""

    out: Path
    sink: BinaryIO


@contextmanager
def drafting(out: Path) -> Iterator[FileDraft]:
    """A file that gets its name when the block ends well, and is removed otherwise."""
    draft = out.with_name(f".{out.name}.{os.getpid()}.new")
    try:
        with draft.open("wb") as sink:
            made = FileDraft(out, sink)
            yield made
        draft.replace(made.out)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def replacing(out: Path) -> Iterator[BinaryIO]:
    """The same for a file whose name is known."""
    with drafting(out) as draft:
        yield draft.sink
