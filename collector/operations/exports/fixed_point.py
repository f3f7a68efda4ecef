"""Floats as Nautilus keeps numbers: whole numbers of 128 bits, scaled by 10^16. Pure.

Its builds for Linux and macOS use this width. A value's decimals are the fewest that give it back
to 15 significant digits, which is what a double holds: noise of sums behind that is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SCALE_DIGITS = 16
RAW = pa.binary(16)
_SCALE = 10**SCALE_DIGITS
_SAME = 4e-16
"""Half of a unit in the 15th digit, at most; a double is as near to a decimal of 15 digits."""
_LOW = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)


def decimals_of(values: Floats) -> int:
    """How many decimals the values have, at most 16."""
    for digits in range(SCALE_DIGITS):
        if is_exact(values, digits):
            return digits
    return SCALE_DIGITS


def is_exact(values: Floats, digits: int) -> bool:
    """Whether so many decimals give every value back."""
    rounded = np.rint(values * 10.0**digits) / 10.0**digits
    return bool((np.abs(rounded - values) <= _SAME * np.abs(values)).all())


def raw(values: Floats, digits: int) -> pa.Array:
    """The values, rounded to so many decimals. They are not negative and below 2^53."""
    whole = np.floor(values)
    behind = np.rint((values - whole) * 10.0**digits).astype(np.uint64)
    low, high = _times_scale(whole.astype(np.uint64))
    total = low + behind * np.uint64(10 ** (SCALE_DIGITS - digits))
    pairs = np.empty((len(values), 2), dtype="<u8")
    pairs[:, 0], pairs[:, 1] = total, high + (total < low)
    return pa.FixedSizeBinaryArray.from_buffers(
        RAW, len(values), [None, pa.py_buffer(pairs.tobytes())]
    )


def _times_scale(whole: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The product with 10^16, as its lower and upper 64 bits."""
    scale_low, scale_high = np.uint64(_SCALE & 0xFFFF_FFFF), np.uint64(_SCALE >> 32)
    low, high = whole & _LOW, whole >> _HALF
    first, cross, other = low * scale_low, low * scale_high, high * scale_low
    middle = (first >> _HALF) + (cross & _LOW) + (other & _LOW)
    upper = high * scale_high + (cross >> _HALF) + (other >> _HALF) + (middle >> _HALF)
    return (first & _LOW) | (middle << _HALF), upper
