"""Long answers of rows go compressed to whoever accepts zstd or gzip.

Only candles and trades: they are large and repeat themselves. Parquet is compressed already. It is
done where the rows are encoded, in a thread, so that it does not hold up other requests.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Annotated, Literal

import pyarrow as pa
from fastapi import Depends
from starlette.requests import Request  # noqa: TC002 - FastAPI reads the annotation

from api.row_formats import Drain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api.row_formats import Format

CodingName = Literal["zstd", "gzip"]
OFFERED: tuple[CodingName, ...] = ("zstd", "gzip")
"""The better one first."""
GZIP_LEVEL = 5
_GZIP_WINDOW = 31
"""zlib's window of 15 bits, with the header of gzip."""


def accepted_coding(request: Request) -> CodingName | None:
    """What the client accepts; the better of two that it likes as much."""
    weights = dict(_weighed(request.headers.get("accept-encoding", "")))
    liked = {name: weights.get(name, weights.get("*", 0.0)) for name in OFFERED}
    best = max(OFFERED, key=lambda name: liked[name])
    return best if liked[best] > 0 else None


AcceptedCoding = Annotated["CodingName | None", Depends(accepted_coding)]


def coding_for(form: Format, accepted: CodingName | None) -> CodingName | None:
    return None if form == "parquet" else accepted


def compressed(pieces: Iterator[bytes], coding: CodingName | None) -> Iterator[bytes]:
    """The same answer in this coding, a piece for a piece: nothing waits in a buffer."""
    if coding is None:
        return pieces
    return _gzip(pieces) if coding == "gzip" else _zstd(pieces)


def _gzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in pieces:
        yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


def _zstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """One frame, by the library that packs our files."""
    drain = Drain()
    packer = pa.CompressedOutputStream(pa.PythonFile(drain, mode="w"), "zstd")
    for piece in pieces:
        packer.write(piece)
        packer.flush()
        yield drain.emptied()
    packer.close()
    yield drain.emptied()


def _weighed(header: str) -> Iterator[tuple[str, float]]:
    for part in header.split(","):
        name, _, rest = part.partition(";")
        weight = rest.strip().removeprefix("q=") if rest else "1"
        try:
            yield name.strip().lower(), float(weight)
        except ValueError:
            continue
