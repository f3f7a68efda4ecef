"""Imported before anything else in a worker process: Python looks for cyclic garbage seldom.

Not at all during the imports, which leave next to none of it: looking through everything alive
again and again took a fifth of a start. What they made is never looked through later either.
"""

from __future__ import annotations

import gc

gc.disable()


def look_seldom() -> None:
    """To be called when everything is imported.

    A page is thousands of short-lived numbers; looking through everything alive after every few
    hundred of them took a quarter of a backfill's time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
