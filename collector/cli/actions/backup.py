"""What `collector backup` and `collector restore` do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cli.database import keep_quiet
from collector.cli.moments import shown_moment
from collector.cli.output import Output
from collector.operations.backup import back_up
from collector.operations.restoring import restore

if TYPE_CHECKING:
    from collector.cli.verb import Asked
    from collector.operations.backup import BackupManifest


async def backed_up(asked: Asked, place: str) -> Output:
    where = asked.here("backup")
    keep_quiet(where.settings)
    return _answer(place, await back_up(where, place), "backed up to")


async def restored(asked: Asked, place: str) -> Output:
    where = asked.here("restore")
    keep_quiet(where.settings)
    return _answer(place, await restore(where, place), "restored from")


def _answer(place: str, manifest: BackupManifest, words: str) -> Output:
    facts = {"place": place, **manifest.summary}
    shown = (
        f"{facts['documents']:,} documents and {facts['files']:,} files {words} {place}, "
        f"as of {shown_moment(manifest.taken_ms)}"
    )
    return Output(facts, shown)
