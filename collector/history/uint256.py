"""Unsigned 256-bit integers: one at a time as Python ints, whole columns as 64-bit limbs.

A column is an array of shape (4, n), the most significant limb first. Most values need one limb or
two, so work on many rows begins with `trimmed` columns, which lack the limbs that are zero
throughout.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from collector.history.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Wide = NDArray[np.uint64]
    Rows = NDArray[np.intp]

LIMIT = 1 << 256
SCALE = 10**18
"""What a price of one is."""
WIDE = pa.binary(32)

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FEW = 8
_NOTHING = np.zeros(0, dtype=np.uint64)
_MOST = np.uint64(0xFFFFFFFFFFFFFFFF)


def checked(value: Any, name: str) -> int:
    """A whole number below 2^256, from an int or its decimal digits. Raises Refused."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 78:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LIMIT:
        raise Refused(f"{name} is no unsigned 256-bit integer: {str(value)[:90]!r}")
    return value


def from_ints(values: Sequence[int]) -> Wide:
    data = b"".join([value.to_bytes(32, "big") for value in values])
    return _from_bytes(np.frombuffer(data, dtype=">u8"))


def to_ints(column: Wide) -> list[int]:
    if column.shape[1] <= _FEW:
        data, size = column.T.astype(">u8").tobytes(), 8 * len(column)
        return [int.from_bytes(data[at : at + size]) for at in range(0, len(data), size)]
    last = len(column) - 1
    used = [at for at in range(len(column)) if at == last or column[at].max()]
    values: list[int] = column[used[0]].tolist()
    for before, at in itertools.pairwise(used):
        shift = 64 * (at - before)
        low = column[at].tolist()
        values = [high << shift | rest for high, rest in zip(values, low, strict=True)]
    return values


def from_arrow(array: pa.Array | pa.ChunkedArray) -> Wide:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not len(array):
        return np.zeros((4, 0), dtype=np.uint64)
    buffer = array.buffers()[1]
    flat = np.frombuffer(buffer, dtype=">u8", count=4 * len(array), offset=32 * array.offset)
    return _from_bytes(flat)


def to_arrow(column: Wide) -> pa.Array:
    data = np.ascontiguousarray(column.T.astype(">u8")).tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(WIDE, column.shape[1], [None, pa.py_buffer(data)])


def trimmed(column: Wide) -> Wide:
    """The column without limbs at the top that are zero throughout; at least one is left."""
    first = 0
    while first < len(column) - 1 and not column[first].max(initial=0):
        first += 1
    return column[first:]


def take(column: Wide, rows: Rows) -> Wide:
    """These rows of a column, with all four limbs."""
    taken = np.zeros((4, len(rows)), dtype=np.uint64)
    taken[4 - len(column) :] = column[:, rows]
    return taken


def reordered(column: Wide, rows: Rows) -> Wide:
    """These rows of a trimmed column, trimmed as it is."""
    made = np.empty((len(column), len(rows)), dtype=np.uint64)
    for limb, into in zip(column, made, strict=True):
        np.take(limb, rows, out=into, mode="clip")
    return made


def add(one: Wide, other: Wide) -> tuple[Wide, NDArray[np.bool_]]:
    """The sums, and which of them passed 2^256-1."""
    total = np.empty_like(one)
    carry = np.zeros(one.shape[1], dtype=bool)
    for at in (3, 2, 1, 0):
        part = one[at] + other[at]
        over = part < one[at]
        total[at] = part + carry
        carry = over | (total[at] < part)
    return total, carry


def less(one: Wide, other: Wide) -> NDArray[np.bool_]:
    smaller: NDArray[np.bool_] = one[3] < other[3]
    for at in (2, 1, 0):
        smaller = (one[at] < other[at]) | ((one[at] == other[at]) & smaller)
    return smaller


def group_sums(column: Wide, starts: Rows) -> tuple[Wide, NDArray[np.bool_]]:
    """The sum of each group of rows, and which of them passed 2^256-1.

    Where the sum of a limb might pass 64 bits, its halves are added up, which cannot overflow for
    fewer than 2^32 rows.
    """
    total = np.zeros((4, len(starts)), dtype=np.uint64)
    carry = np.zeros(len(starts), dtype=np.uint64)
    small = (1 << 63) // max(1, column.shape[1])
    for at in (3, 2, 1, 0):
        limb = column[at - 4] if 4 - at <= len(column) else _NOTHING
        most = int(limb.max(initial=0))
        if most < small:
            total[at] = carry + np.add.reduceat(limb, starts) if most else carry
            carry = np.zeros_like(carry)
            continue
        low = carry + np.add.reduceat(limb & _LOW, starts)
        high = np.add.reduceat(limb >> _HALF, starts) + (low >> _HALF)
        total[at] = (low & _LOW) | (high << _HALF)
        carry = high >> _HALF
    return total, carry > 0


def group_most(column: Wide, starts: Rows) -> Wide:
    """The greatest value of each group of rows."""
    return _extreme(column, starts, np.maximum, np.uint64(0))


def group_least(column: Wide, starts: Rows) -> Wide:
    """The smallest value of each group of rows."""
    return _extreme(column, starts, np.minimum, _MOST)


def _extreme(column: Wide, starts: Rows, pick: np.ufunc, loser: np.uint64) -> Wide:
    """Limb by limb: only rows that are level so far compete in the next limb."""
    found = np.zeros((4, len(starts)), dtype=np.uint64)
    sizes = np.diff(starts, append=column.shape[1])
    level: NDArray[np.bool_] | None = None
    for at, limb in enumerate(column, start=4 - len(column)):
        running = limb if level is None else np.where(level, limb, loser)
        found[at] = pick.reduceat(running, starts)
        if at < 3:
            best = limb == np.repeat(found[at], sizes)
            level = best if level is None else level & best
    return found


def _from_bytes(flat: NDArray[Any]) -> Wide:
    return np.ascontiguousarray(flat.reshape(-1, 4).T, dtype=np.uint64)
