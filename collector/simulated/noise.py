"""Deterministic noise: a value for any minute, worked out directly and the same everywhere.

Everything is integer arithmetic, so a minute's value does not depend on the machine, on the length
of the array it is computed in, or on the order of a sum.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S40 = (np.uint64(shift) for shift in (27, 30, 31, 40))

# Octave k has a lattice point every 8**k minutes, up to four years apart, and swings sqrt(8)**k as
# wide: the spread grows with the square root of time, as a market's does.
_SHIFTS = np.arange(0, 24, 3, dtype=np.int64)[:, None]
_SWINGS = np.array([1, 3, 8, 23, 64, 181, 512, 1448], dtype=np.int64)[:, None]
_TOP = int(_SHIFTS[-1, 0])
_WEIGHTS = _SWINGS << (_TOP - _SHIFTS)
_FINE = 2  # Octaves below a cell; the others are straight lines inside one.
_CELL_SHIFT = 6
_CELL = np.arange(1 << _CELL_SHIFT, dtype=np.int64)
_HALF = np.int64(1 << 23)

UNIT = 1 << (23 + _TOP)
"""What `levels` counts in: the finest octave swings between -UNIT and UNIT."""


def key(*parts: object) -> int:
    """A 64-bit key for a list of words and numbers."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def fraction(*parts: object) -> float:
    """A fixed number in [0, 1) for a list of words and numbers."""
    return key(*parts) / 2**64


def words(counters: Ints, stream: int) -> Words:
    """64 random-looking bits for every counter; other streams give other bits."""
    return _mix(counters.astype(np.uint64) * _GOLDEN + np.uint64(stream))


def below(counters: Ints, stream: int, share: float) -> Flags:
    """True for about `share` of all counters, always for the same ones."""
    if share >= 1.0:
        return np.ones(len(counters), dtype=np.bool_)
    return words(counters, stream) < np.uint64(int(share * 2**64))


def octave_keys(stream: int) -> Words:
    """The keys that `levels` takes."""
    return words(np.arange(len(_SHIFTS), dtype=np.int64), stream)[:, None]


def levels(first: int, count: int, keys: Words) -> Ints:
    """A wandering level for `count` minutes from `first`, in UNITs of the finest octave.

    Slow octaves are straight lines between cell borders, so they are worked out there only.
    """
    cell = first >> _CELL_SHIFT
    last = (first + count - 1) >> _CELL_SHIFT
    borders = np.arange(cell, last + 2, dtype=np.int64) << _CELL_SHIFT
    slow = _octaves(borders, keys, slice(_FINE, None))
    slope = (slow[1:] - slow[:-1]) >> _CELL_SHIFT
    lines = (slow[:-1, None] + slope[:, None] * _CELL).ravel()
    begin = first - (cell << _CELL_SHIFT)
    minutes = np.arange(first, first + count, dtype=np.int64)
    return lines[begin : begin + count] + _octaves(minutes, keys, slice(0, _FINE))


def levels_directly(minutes: Ints, keys: Words) -> Ints:
    """What `levels` gives, minute by minute and without its short cut."""
    return _octaves(minutes, keys, slice(None))


def _octaves(minutes: Ints, keys: Words, chosen: slice) -> Ints:
    shifts = _SHIFTS[chosen]
    lattice = minutes >> shifts
    position = minutes - (lattice << shifts)
    counters = lattice.astype(np.uint64) * _GOLDEN + keys[chosen]
    left = (_mix(counters) >> _S40).astype(np.int64) - _HALF
    right = (_mix(counters + _GOLDEN) >> _S40).astype(np.int64) - _HALF
    values = (left << shifts) + (right - left) * position
    total: Ints = (values * _WEIGHTS[chosen]).sum(axis=0)
    return total


def _mix(words_in: Words) -> Words:
    mixed = (words_in ^ (words_in >> _S30)) * _MIX_1
    mixed = (mixed ^ (mixed >> _S27)) * _MIX_2
    return mixed ^ (mixed >> _S31)
