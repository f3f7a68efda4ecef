"""`{tf}.parquet.sha256`, which is beside every sealed file: for `sha256sum -c`, and for us.

    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  5m.parquet
    # derived from 1m

The second line, which sha256sum ignores, exists for files of longer bars only. It records that such
a file can be made again, even when the file itself is no longer readable.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collector.store import layout
from collector.store.port import Corrupt, Vanished

if TYPE_CHECKING:
    from collector.market.series import Series
    from collector.store.port import Storage

_LINE = re.compile(rb"([0-9a-f]{64})  ([^\n/]+)(\n|$)")
_COPY = re.compile(rb"^# derived from [0-9]+[smhdw]\n", re.MULTILINE)


def checksum(series: Series, sha256: str, derived_from: str = "") -> tuple[str, bytes]:
    """The path and the content of the file beside the sealed file of a series."""
    made = f"# derived from {derived_from}\n" if derived_from else ""
    name = layout.sealed_path(series).rpartition("/")[2]
    return layout.checksum_path(series), f"{sha256}  {name}\n{made}".encode()


def expected_sha256(storage: Storage, series: Series) -> str | None:
    """The digest that the sealed file should have; None when there is no readable one."""
    return _expected(storage, layout.sealed_path(series))


def check_bytes(storage: Storage, path: str) -> None:
    """Raises Corrupt when there is a checksum beside the file that does not match it."""
    expected = _expected(storage, path)
    if expected is not None and storage.sha256(path) != expected:
        raise Corrupt(path, "its bytes do not have their checksum")


def sha256_of(checksum: bytes) -> str | None:
    """The digest in the content of such a file; None when it is not readable."""
    line = _LINE.match(checksum)
    return None if line is None else line[1].decode()


def is_of_a_copy(storage: Storage, series: Series) -> bool:
    """Whether the file in the sealed one's place was made of a shorter timeframe."""
    return _COPY.search(_read(storage, layout.sealed_path(series))) is not None


def _expected(storage: Storage, path: str) -> str | None:
    line = _LINE.match(_read(storage, path))
    if line is None or line[2].decode(errors="replace") != path.rpartition("/")[2]:
        return None
    return line[1].decode()


def _read(storage: Storage, path: str) -> bytes:
    try:
        return storage.read(f"{path}.sha256")
    except Vanished:
        return b""
