"""The table of job types, and everything that is made from it, held equal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from api.schemas.jobs import NewJob
from collector.cli.main import app
from collector.jobs import types
from collector.jobs.job import Job, JobSpec
from collector.jobs.params import Params
from collector.jobs.schedule import Cron, Every
from collector.jobs.stream import stream_jobs
from workers.all_handlers import all_handlers
from workers.handlers.registry import MadeLate

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "job-types.md").read_text("utf-8")
SOURCES = [
    path
    for folder in ("api", "collector", "workers", "migrations")
    for path in (ROOT / folder).rglob("*.py")
    # A migration speaks of the types as they were when it was written.
    if path != ROOT / "collector" / "jobs" / "types.py" and path.parent.name != "versions"
]
WHOLE = {"every 12 h": 12 * 60, "every 1 h": 60, "every 15 min": 15, "every 1 min": 1}


def runs(row: types.JobType) -> str:
    if row.at_bar_close:
        return "when a bar has closed"
    if isinstance(row.schedule, Cron):
        return f"cron `{row.schedule.expression}`"
    if isinstance(row.schedule, Every):
        minutes = row.schedule.interval_ms // 60_000
        return next(words for words, length in WHOLE.items() if length == minutes)
    return "until it is stopped" if row.runs_on else "until it is done"


def drawn(row: types.JobType) -> str:
    given = [f"**`{name}`**" if name in row.needs else f"`{name}`" for name in row.takes]
    about = f"{row.scope.value}, duty" if row.is_duty else row.scope.value
    cells = (f"`{row.name}`", about, row.priority, runs(row), ", ".join(given) or "-", row.does)
    return f"| {' | '.join(map(str, cells))} |"


def test_the_page_draws_exactly_the_table() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| `\w+` \| .* \| \d+ \| ", line)]
    assert rows == [drawn(row) for row in types.TABLE.values()]


def test_the_page_names_every_param() -> None:
    named = set(re.findall(r"^\| `?(\w+)`? \| `(\w+)` \| \w+ \|", PAGE, re.M))
    own = {
        (row.name, name)
        for row in types.TABLE.values()
        for name in row.params.__dataclass_fields__
        if name not in Params.__dataclass_fields__
    }
    assert named == own | {("any", name) for name in Params.__dataclass_fields__}


def test_every_type_has_a_handler_and_every_handler_a_type() -> None:
    handlers = all_handlers(cast("Any", None), cast("Any", None), cast("Any", FakeDatabase()))
    assert handlers.types == set(types.TABLE)
    for name in handlers.types:
        handler = handlers.find(name)
        assert isinstance(handler, MadeLate)
        assert callable(handler.made())
        assert handler.made() is handler.made(), "one handler for all jobs of a type"


class FakeDatabase:
    """Handlers keep their database for later; making them asks it nothing."""

    def __getattr__(self, name: str) -> Any:
        return self


def test_rest_offers_the_table() -> None:
    schema = NewJob.model_json_schema()["properties"]
    assert schema["type"]["enum"] == [row.name for row in types.for_exchanges()]
    assert "`any_age` of gap_scan" in schema["params"]["description"]


def test_help_names_every_type() -> None:
    told = CliRunner().invoke(app, ["job", "add", "--help"], env={"COLUMNS": "200"}).output
    for row in types.for_exchanges():
        assert row.name in told


def test_types_are_spelt_out_in_the_table_alone() -> None:
    spelt = re.compile(rf"""["']({"|".join(types.TABLE)})["']""")
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in SOURCES
        for name in spelt.findall(path.read_text("utf-8"))
    }
    examples = {("api/schemas/jobs.py", name) for name in ("ohlcv_incremental", "ohlcv_backfill")}
    # A section of the settings and of the heartbeat has the same name.
    sections = {
        ("collector/operations/wished_settings.py", "price_stream"),
        ("collector/publication/payloads.py", "price_stream"),
        ("collector/streams/heartbeat.py", "price_stream"),
        ("collector/tui/views/prices.py", "price_stream"),
    }
    assert found <= examples | sections


def test_the_most_urgent_stand_first() -> None:
    priorities = [row.priority for row in types.TABLE.values()]
    assert priorities == sorted(priorities)


@pytest.mark.parametrize("name", ["dex_swaps", ""])
def test_a_type_of_another_program_has_sound_defaults(name: str) -> None:
    spec = JobSpec("x", name)
    assert (spec.effective_priority, spec.effective_schedule.to_document()) == (
        types.DEFAULT_PRIORITY,
        {"mode": "once"},
    )
    assert types.find(name) is None


@pytest.mark.parametrize(
    ("name", "params", "has"),
    [
        (types.GAP_BACKFILL.name, {}, True),
        (types.GAP_BACKFILL.name, {"priority": False}, False),
        (types.OHLCV_BACKFILL.name, {}, False),
        (types.OHLCV_BACKFILL.name, {"priority": True}, True),
    ],
)
def test_a_jobs_parameter_decides_about_the_reserve_before_its_type(
    name: str, params: Any, has: bool
) -> None:
    document = {
        "_id": 1,
        "exchange_id": "binance",
        "type": name,
        "status": "active",
        "state": "idle",
        "priority": 1,
        "next_run_at": 0,
        "params": params,
    }
    assert Job.from_document(document).asks_with_priority is has


def test_new_bars_of_fxcm_are_polled_and_those_of_others_fetched_after_each_close() -> None:
    for exchange_id, mode in (
        ("fxcm", "poll"),
        ("binance", "bar_close"),
        ("simulated", "bar_close"),
    ):
        new_bars, history = stream_jobs(exchange_id, "XAU/USD", "5m", now_ms=1_800_000_000_000)
        assert new_bars.effective_schedule.to_document()["mode"] == mode
        assert history.effective_schedule.to_document() == {"mode": "once"}
