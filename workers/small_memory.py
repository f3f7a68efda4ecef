"""Imported before anything else in a worker process: what is freed goes back to the system.

A backfill takes and frees large blocks in many threads, for hours. Left alone, glibc keeps a pool
for each thread and raises the size from which a block is returned, and Arrow keeps a pool of its
own beside it: after a year of minutes a third of a worker's 300 MB was in nobody's use. With few
pools and a fixed size the same year peaks below 200 MB.
"""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The options' numbers in glibc's malloc.h."""
_OPTIONS = {_ARENA_MAX: 2, _MMAP_THRESHOLD: 131_072, _TRIM_THRESHOLD: 1_048_576}

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
if sys.platform == "linux":
    # Other C libraries have no such function, and no such habits.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in _OPTIONS.items():
            mallopt(option, value)
