"""Everything that was ever written to the jobs of a database, from MongoDB's own log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pymongo.read_concern import ReadConcern

from collector.jobs.states import State, Status

if TYPE_CHECKING:
    from bson import ObjectId, Timestamp

    from collector.mongo.client import Database

RENEWED = {"lock.lock_until", "next_run_at"}
MOVED = {"next_run_at"}


@dataclass(frozen=True)
class Write:
    """One write to a job."""

    job: ObjectId
    fields: dict[str, Any]
    """What it set, by dotted names."""
    entry: dict[str, Any]
    """As it stands in the log."""


@dataclass(frozen=True)
class JobDiary:
    """The replica set's log from one moment on: whatever lasted a millisecond is still in it."""

    database: Database
    since: Timestamp

    @classmethod
    async def begin(cls, database: Database) -> JobDiary:
        answer = await database.raw.command("hello")
        return cls(database, answer["lastWrite"]["opTime"]["ts"])

    async def entries(self, after: Timestamp) -> list[dict[str, Any]]:
        """What was written to the jobs since then and stays written, in order."""
        log = self.database.raw.client["local"]["oplog.rs"]
        settled = log.with_options(read_concern=ReadConcern("majority"))
        ours = {"ts": {"$gt": after}, "ns": f"{self.database.raw.name}.jobs"}
        return [entry async for entry in settled.find({**ours, "op": {"$in": ["i", "u"]}})]

    async def writes(self) -> list[Write]:
        """All of them."""
        return [_write(entry) for entry in await self.entries(self.since)]

    async def values(self, name: str) -> list[Any]:
        """All that a field was ever set to."""
        return [write.fields[name] for write in await self.writes() if name in write.fields]

    async def check(self) -> None:
        """No job failed, was set aside or paused (one that is done pauses itself), and no cursor
        went back."""
        last: dict[ObjectId, int] = {}
        for write in await self.writes():
            fields = write.fields
            assert fields.get("state") != "failed", f"{write.job} failed: {fields}"
            paused = fields.get("status") == "paused" and fields.get("state") != "success"
            assert not paused, f"{write.job} was paused: {fields}"
            since_ms = _since_ms(fields)
            if since_ms is not None:
                went_back = f"the cursor of {write.job} went back: {fields}"
                assert since_ms >= last.get(write.job, 0), went_back
                last[write.job] = since_ms

    async def check_no_kill_was_counted(self) -> None:
        counted = [kills for kills in await self.values("kills") if kills]
        assert not counted, f"{len(counted)} deaths counted where nobody died"


@dataclass
class Tracked:
    """A job as the log has shown it so far."""

    fields: dict[str, Any]
    due_at: float
    """When it was or is due, or its lease ends, in seconds of this machine's date, whatever
    MongoDB's clock was when that was written."""
    orphaned: bool = False
    """Whether the worker that holds it was killed: a lease that is shortened is no renewal."""

    @property
    def is_held(self) -> bool:
        return bool(self.fields.get("state") == State.RUNNING)

    @property
    def is_active(self) -> bool:
        return bool(self.fields.get("status") == Status.ACTIVE)


@dataclass
class LeaseLog:
    """What the log shows of leases, cursors and fences, piece by piece."""

    diary: JobDiary
    read_to: Timestamp
    jobs: dict[ObjectId, Tracked]
    offsets: list[float]
    """How far MongoDB's clock has been ahead of the machine's, in seconds; the last two values."""
    now: float = 0.0
    """The date of the newest entry on this machine's clock."""
    complaints: list[str] = field(default_factory=list)
    unowned: dict[ObjectId, float] = field(default_factory=dict)
    """The longest time for which each job was due and nobody had it."""
    moved: int = 0
    """How many schedules were moved."""
    sent: int = 0
    """Of how many claims and writes of cursors the process is known that sent them."""
    _workers: dict[bytes, str] = field(default_factory=dict)
    """Sessions of the driver, each with the worker under whose lease it wrote first."""

    @classmethod
    async def begin(cls, diary: JobDiary) -> LeaseLog:
        """Before any worker is at work."""
        documents = await diary.database.jobs.find({})
        jobs = {
            each["_id"]: Tracked(flatten(each), each["next_run_at"] / 1000) for each in documents
        }
        return cls(diary, diary.since, jobs, [0.0])

    def clock_stepped(self, seconds_ahead: float) -> None:
        self.offsets = [self.offsets[-1], seconds_ahead]

    def workers_died(self) -> None:
        """All workers were killed; what was held is an orphan."""
        for job in self.jobs.values():
            job.orphaned = job.is_held

    def begin_figures(self) -> None:
        """Figures are of what comes from now on."""
        self.unowned.clear()
        self.moved = self.sent = 0

    async def read(self) -> None:
        """What has been written since the last time."""
        for entry in await self.diary.entries(self.read_to):
            self.read_to = entry["ts"]
            date = entry["wall"].timestamp()
            dates = [date - offset for offset in self.offsets]
            self.now = min(dates, key=lambda seconds: abs(seconds - self.now))
            self._fold(_write(entry), date - self.now)

    def longest_unowned(self) -> float:
        """Also of jobs that nobody has had until now."""
        waiting = [
            self.now - job.due_at for job in self.jobs.values() if job.is_active and not job.is_held
        ]
        return max([*self.unowned.values(), *waiting, 0.0])

    def _fold(self, write: Write, offset: float) -> None:
        job, changed = self.jobs.get(write.job), write.fields
        due_ms = changed.get("next_run_at")
        due_at = None if due_ms is None else due_ms / 1000 - offset
        if job is None:
            self.jobs[write.job] = Tracked(dict(changed), due_at or 0.0)
            return
        if changed.get("fence", job.fields["fence"]) != job.fields["fence"]:
            self._claimed(write, job)
        elif changed.keys() & {"cursor", "cursor.since_ms"}:
            self._committed(write, job)
        moved = changed.keys() == MOVED
        self.moved += moved
        if due_at is not None:
            kept = moved or (job.orphaned and changed.keys() == RENEWED)
            job.due_at = min(job.due_at, due_at) if kept else max(self.now, due_at)
        job.fields |= changed

    def _claimed(self, write: Write, job: Tracked) -> None:
        old, new = job.fields, {**job.fields, **write.fields}
        job.orphaned = False
        if new["fence"] != old["fence"] + 1:
            self._complain(write, f"the fence {old['fence']} became {new['fence']}")
        if new["state"] != State.RUNNING:
            return  # Swept, or set aside.
        self._sent(write, new["lock.locked_by"])
        if job.is_held and old["lock.lock_until"] > new["stats.last_run_at"]:
            self._complain(write, "it was leased while another lease of it was valid")
        late = self.now - job.due_at
        self.unowned[write.job] = max(late, self.unowned.get(write.job, 0.0))

    def _committed(self, write: Write, job: Tracked) -> None:
        since_ms, before = _since_ms(write.fields), _since_ms(job.fields)
        if since_ms is not None and before is not None and since_ms < before:
            self._complain(write, f"its cursor went back from {before} to {since_ms}")
        if not job.is_held:
            self._complain(write, "its cursor was written without a lease")
        self._sent(write, job.fields["lock.locked_by"])

    def _sent(self, write: Write, holder: str) -> None:
        """Every session is of one process: it never writes under leases of two workers."""
        if "lsid" not in write.entry:
            return  # A statement for many jobs.
        self.sent += 1
        worker = self._workers.setdefault(bytes(write.entry["lsid"]["id"]), holder)
        if worker != holder:
            self._complain(write, f"{worker} wrote under an old fence while {holder} had the lease")

    def _complain(self, write: Write, what: str) -> None:
        self.complaints.append(f"job {write.job}: {what} ({write.fields})")


def _since_ms(fields: dict[str, Any]) -> int | None:
    since_ms: int | None = fields.get("cursor.since_ms", fields.get("cursor", {}).get("since_ms"))
    return since_ms


def _write(entry: dict[str, Any]) -> Write:
    if entry["op"] == "i":
        return Write(entry["o"]["_id"], flatten(entry["o"]), entry)
    return Write(entry["o2"]["_id"], _fields_set(entry["o"]), entry)


def flatten(document: dict[str, Any]) -> dict[str, Any]:
    """Also with the fields of subdocuments under dotted names, as the log names them."""
    inner = {
        f"{name}.{key}": value
        for name, part in document.items()
        if isinstance(part, dict)
        for key, value in part.items()
    }
    return document | inner


def _fields_set(change: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The log keeps the difference, nested, or the whole new document when that is shorter."""
    if not prefix and "diff" not in change:
        return flatten(change)
    diff = change.get("diff", change)
    fields = {
        f"{prefix}{name}": value
        for kind in ("i", "u")
        for name, value in diff.get(kind, {}).items()
    }
    for name, inner in diff.items():
        if name.startswith("s") and isinstance(inner, dict):
            fields |= _fields_set(inner, f"{prefix}{name[1:]}.")
    return flatten(fields) if not prefix else fields
