"""Imported before anything else in a worker process: what is freed goes back to the system.

A backfill takes and frees large blocks in many threads, for hours. Left alone, glibc keeps a pool
for each thread, and Arrow keeps a pool of its own beside them. So there are two pools, blocks of
some megabytes are given back at once, and of what is free at the end of a pool at most so much is
kept. A page of bars must fit below these sizes: with a limit of 128 KiB every answer was mapped and
unmapped several times, and a year of minutes took 1.1 s of system time more for 7 MB less.

numpy's linear algebra, which no worker uses, starts no threads: they spin for a while.
"""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The options' numbers in glibc's malloc.h."""
_OPTIONS = {_ARENA_MAX: 2, _MMAP_THRESHOLD: 4 << 20, _TRIM_THRESHOLD: 16 << 20}

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if sys.platform == "linux":
    # Other C libraries have no such function, and no such habits.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in _OPTIONS.items():
            mallopt(option, value)
