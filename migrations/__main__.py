"""`python -m migrations VERB`: brings the database to this schema, or back from the files."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvloop

from collector import logs
from collector.cli.failures import report as report_error
from collector.errors import CollectorError
from collector.mongo.client import Database
from collector.mongo.location import mongodb
from collector.mongo.schema import require_current
from collector.operations.rebuilt_cursors import rebuild_cursors
from collector.operations.recovery import recover
from collector.settings import Settings, load
from collector.store.store import Store
from collector.text import printable
from migrations import runner

LEFT = {
    "not_requested": "stored, but not requested any more, so it gets no jobs (`collector add`)",
    "damaged": "a file is damaged, so it goes on from its recorded cursor (`collector repair`)",
    "unknown": "this program knows no such exchange, so it is left out",
}


async def run(settings: Settings, verb: str) -> dict[str, Any]:
    """Runs the command, and prints what was done."""
    async with (
        mongodb(settings.mongo_address, settings.home, f"migrate {verb}") as uri,
        Database(uri, settings.mongo_db) as database,
    ):
        await database.reach(settings.mongo_patience_seconds)
        report: dict[str, Any] = {}
        if verb == "up":
            applied = await runner.up(database)
            report = {"applied": [migration.version for migration in applied]}
        if verb == "recover":
            await runner.up(database)
            return report | asdict(await recover(database, Store(settings.data_root)))
        if verb == "rebuild-cursors":
            await require_current(database)
            await database.read_server_clock()
            report |= asdict(await rebuild_cursors(database, Store(settings.data_root)))
            return report
        report["migrations"] = [
            {
                "version": entry.version,
                "name": entry.name,
                "finished_at": entry.finished_at.isoformat() if entry.finished_at else None,
            }
            for entry in await runner.status(database)
        ]
        return report


def show(report: dict[str, Any]) -> None:
    if "migrations" not in report:
        print(
            f"{report['series']} series in the files: "
            f"made {len(report['connectors'])} connectors and {len(report['jobs'])} jobs"
        )
        for name, words in LEFT.items():
            for each in report.get(name, ()):
                print(f"{printable(each)}: {words}")
        return
    for entry in report["migrations"]:
        state = entry["finished_at"] or "pending"
        print(f"{entry['version']:>4}  {entry['name']:<32}  {state}")
    if "applied" in report:
        print(f"applied {len(report['applied'])} migrations")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m migrations", description=__doc__)
    parser.add_argument("verb", choices=["up", "status", "rebuild-cursors", "recover"])
    parser.add_argument("--config", type=Path, help="settings file (default: collector.yaml)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    try:
        settings = load(arguments.config)
        logs.configure("WARNING", settings.logging.format)
        report = uvloop.run(run(settings, arguments.verb))
    except CollectorError as error:
        return report_error(error)
    print(json.dumps(report)) if arguments.json else show(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
