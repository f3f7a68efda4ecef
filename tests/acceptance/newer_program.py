"""`python -m tests.acceptance.newer_program MODULE ...`: a program of the next schema version."""

from __future__ import annotations

import runpy
import sys

from collector.mongo import schema

if __name__ == "__main__":
    schema.VERSION += 1
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
