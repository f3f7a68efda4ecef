"""Under four workers no venue counts too much, and none is left idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.venue_budgets import budgets_used

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


async def test_no_venue_counts_too_much_and_none_is_left_idle(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    for use in await budgets_used(database, mongo_uri, tmp_path):
        assert use.violations == 0, use
        # What share of the budget is used is for `python -m tests.bench venues`, which demands 0.95
        # on a quiet machine. Here it must only be seen that no venue waits for another one.
        assert use.share >= 0.5, use
