"""The shapes of requests and answers.

These files do without `from __future__ import annotations`: pydantic reads annotations at run time.
"""
