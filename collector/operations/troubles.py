"""What is wrong with a collector, in one vocabulary for every front end. Pure.

The facts are read once (trouble_facts.py); the rules here decide. A trouble names its cause, since
when it lasts, how many jobs it concerns and what helps. Where one trouble explains another, only
the cause is reported: an exchange that cannot be reached is not reported as stale as well.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from collector.connectors.circuit.state import CircuitState
from collector.durations import MINUTE_MS
from collector.errors import ExchangeUnavailable, KeyRefused
from collector.jobs.failing import IN_A_ROW
from collector.jobs.network import network_of, place_of
from collector.reports.clock_drift import Drift
from collector.store.port import Corrupt, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from collector.connectors.connector import Connector
    from collector.history.inbox import NetworkDamage
    from collector.jobs.failing import FailingJobs

OVERDUE_MS = 5 * MINUTE_MS
"""A job that has been due for this long is not taken by any worker."""
DRIFT_FORGOTTEN_MS = 15 * MINUTE_MS
LITTLE_SHARE = 0.05
LITTLE_BYTES = 5 * 2**30


class TroubleKind(StrEnum):
    """Every trouble there is, the most urgent first."""

    MONGODB = "mongodb"
    NO_WORKER = "no_worker"
    DISK = "disk"
    DAMAGED = "damaged"
    KEY_REFUSED = "key_refused"
    UNREACHABLE = "unreachable"
    BLOCKED = "blocked"
    CIRCUIT = "circuit"
    REDIS = "redis"
    FAILED = "failed"
    RETRYING = "retrying"
    OVERDUE = "overdue"
    STALE = "stale"
    CLOCK_DRIFT = "clock_drift"


EXPLAINING = frozenset({TroubleKind.UNREACHABLE, TroubleKind.BLOCKED, TroubleKind.CIRCUIT})
"""Troubles of an exchange that explain why its jobs fail and its series fall behind."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong now."""

    kind: TroubleKind
    reason: str
    help: str
    """The command, or the action, that helps."""
    exchange_id: str | None = None
    """None when it is not about one exchange."""
    since_ms: int | None = None
    """None when that is not known."""
    jobs: int = 0
    """How many jobs it concerns."""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind.value, self.exchange_id or ""


@dataclass(frozen=True, slots=True)
class LateJobs:
    """Jobs of an exchange that are late: due and not taken, or series that are behind."""

    exchange_id: str
    since_ms: int
    jobs: int
    timeframe: str = ""


@dataclass(frozen=True, slots=True)
class TroubleFacts:
    """Everything that the rules look at, at one moment."""

    at_ms: int
    connectors: Sequence[Connector] = ()
    active: Mapping[str, int] = field(default_factory=dict)
    """Active jobs per exchange."""
    workers: Sequence[Mapping[str, Any]] = ()
    """Live ones, as they describe themselves."""
    failing: Sequence[FailingJobs] = ()
    overdue: Sequence[LateJobs] = ()
    stale: Sequence[LateJobs] = ()
    next_due: Mapping[str, int] = field(default_factory=dict)
    """Per exchange, when its next job is or was due."""
    damaged: Sequence[NetworkDamage] = ()
    """Networks of trade history with a damaged file."""


def troubles(facts: TroubleFacts) -> list[Trouble]:
    """What is wrong, the most urgent first."""
    found = [*_no_worker(facts), *_disk(facts), *_redis(facts), *_damaged(facts)]
    for connector in facts.connectors:
        found += _of_exchange(connector, facts)
    explained = {each.exchange_id for each in found if each.kind in EXPLAINING}
    found += _failing(facts, explained)
    if facts.workers:
        found += _late(facts, explained | _stopped(facts))
    order = {kind: at for at, kind in enumerate(TroubleKind)}
    return sorted(found, key=lambda each: (order[each.kind], each.exchange_id or "", each.reason))


def no_database(reason: str, since_ms: int | None = None) -> Trouble:
    """The only trouble that can be reported without MongoDB."""
    return Trouble(
        TroubleKind.MONGODB,
        reason,
        "start MongoDB again (an embedded one restarts by itself; logs/mongod.log says why it"
        " ended); workers and API continue by themselves",
        since_ms=since_ms,
    )


def _no_worker(facts: TroubleFacts) -> Iterator[Trouble]:
    jobs = sum(facts.active.values())
    if facts.workers or not jobs:
        return
    yield Trouble(
        TroubleKind.NO_WORKER,
        "no worker is running",
        "collector up, or collector worker",
        since_ms=min((each.since_ms for each in facts.overdue), default=None),
        jobs=jobs,
    )


def _disk(facts: TroubleFacts) -> Iterator[Trouble]:
    refused = [each for each in facts.failing if each.code == Unavailable.code]
    little = [each for each in facts.workers if _has_little(each.get("disk"))]
    if not refused and not little:
        return
    hosts = ", ".join(sorted({f"{each['host']} has {_free(each)} left" for each in little}))
    words = [each.reason for each in refused[:1]] + ([hosts] if hosts else [])
    yield Trouble(
        TroubleKind.DISK,
        "; ".join(words),
        "make room where the data is; jobs continue by themselves",
        since_ms=_first(refused),
        jobs=sum(each.jobs for each in refused),
    )


def _redis(facts: TroubleFacts) -> Iterator[Trouble]:
    away = [each for each in facts.workers if each.get("redis")]
    if not away:
        return
    hosts = ", ".join(sorted({f"{each['host']} ({each['redis']['error']})" for each in away}))
    yield Trouble(
        TroubleKind.REDIS,
        f"nothing can be published from {hosts}",
        "start Redis again, or correct redis_url; bars are published when it is back",
        since_ms=min(each["redis"]["since"] for each in away),
    )


def _has_little(disk: Mapping[str, int] | None) -> bool:
    return disk is not None and is_little(disk["free_bytes"], disk["total_bytes"])


def is_little(free_bytes: int, total_bytes: int) -> bool:
    """Whether a disk is nearly full: both in bytes, and as a share of it."""
    return free_bytes < LITTLE_BYTES and free_bytes < LITTLE_SHARE * total_bytes


def _free(worker: Mapping[str, Any]) -> str:
    return f"{worker['disk']['free_bytes'] / 2**20:,.0f} MiB"


def _damaged(facts: TroubleFacts) -> Iterator[Trouble]:
    for each in facts.damaged:
        yield Trouble(
            TroubleKind.DAMAGED,
            f"{each.path} is damaged: {each.why}",
            "collector repair",
            place_of(each.network),
            each.since_ms,
        )


def _of_exchange(connector: Connector, facts: TroubleFacts) -> Iterator[Trouble]:
    """Troubles of the connector of an exchange that has work to do and is not paused."""
    exchange_id, jobs = connector.exchange_id, facts.active.get(connector.exchange_id, 0)
    stopped = connector.stopped(facts.at_ms)
    if not jobs or (stopped is not None and stopped.reason in ("paused", "deleted")):
        return
    show = f"collector connector show {exchange_id}"
    document, gate = connector.document, connector.circuit(facts.at_ms)
    failing = (document.get("circuit") or {}).get("failing") or {}
    if stopped is not None and stopped.reason == "blocked":
        yield Trouble(
            TroubleKind.BLOCKED,
            f"the exchange has blocked us: {document.get('blocked_reason') or 'no reason given'}",
            f"it ends by itself; collector connector unblock {exchange_id} ends it now",
            exchange_id,
            document.get("blocked_at"),
            jobs,
        )
    elif failing.get("count", 0) >= IN_A_ROW:
        reason = failing.get("reason") or "no answer"
        words = f"the last {failing['count']:,} requests failed: {reason}"
        yield Trouble(TroubleKind.UNREACHABLE, words, show, exchange_id, failing["since"], jobs)
    elif gate.state is not CircuitState.OPEN:
        moved = ((document.get("circuit") or {}).get("transition") or {}).get("at")
        rate = gate.snapshot()["err_rate"]
        yield Trouble(
            TroubleKind.CIRCUIT,
            f"the circuit gate is {gate.state.name}: {rate:.0%} of the requests failed",
            show,
            exchange_id,
            moved,
            jobs,
        )
    yield from _drift(connector, jobs, facts.at_ms)


def _drift(connector: Connector, jobs: int, now_ms: int) -> Iterator[Trouble]:
    clock = connector.document.get("clock")
    if not clock or clock.get("since") is None:
        return
    if now_ms - clock["measured_at"] > DRIFT_FORGOTTEN_MS:
        return
    drift = Drift(clock["drift_ms"], clock["doubt_ms"])
    direction = "ahead of" if drift.drift_ms > 0 else "behind"
    yield Trouble(
        TroubleKind.CLOCK_DRIFT,
        f"its clock is {abs(drift.drift_ms) / 1000:,.1f} s {direction} MongoDB's",
        "timedatectl, on MongoDB's machine: when several exchanges drift alike, it is ours",
        connector.exchange_id,
        clock["since"],
        jobs,
    )


def _failing(facts: TroubleFacts, explained: set[str | None]) -> Iterator[Trouble]:
    damaged = {place_of(each.network) for each in facts.damaged}
    for each in facts.failing:
        if each.code == Corrupt.code and each.exchange_id in damaged:
            continue
        unreachable = each.code == ExchangeUnavailable.code and each.exchange_id in explained
        if each.code == Unavailable.code or (unreachable and not each.gave_up):
            continue
        kind = TroubleKind.FAILED if each.gave_up else TroubleKind.RETRYING
        if each.code == KeyRefused.code:
            kind = TroubleKind.KEY_REFUSED
        yield Trouble(
            kind, each.reason, _failing_help(each), each.exchange_id, each.since_ms, each.jobs
        )


def _failing_help(failing: FailingJobs) -> str:
    if failing.jobs > 1:
        state = " --state failed" if failing.gave_up else ""
        return f"collector job list --exchange {failing.exchange_id}{state}"
    if failing.gave_up:
        return f"mend the cause, then collector job run {failing.example}"
    return f"collector job show {failing.example}"


def _late(facts: TroubleFacts, explained: set[str | None]) -> Iterator[Trouble]:
    """Jobs that no worker takes, and series that fall behind without another trouble."""
    waiting = [each for each in facts.overdue if each.exchange_id not in explained]
    connected = {each.exchange_id for each in facts.connectors}
    for each in waiting:
        lacks = "" if each.exchange_id in connected or _is_network(each) else " (no connector)"
        yield Trouble(
            TroubleKind.OVERDUE,
            f"due jobs are not taken by any worker{lacks}",
            "collector worker: more of them, or one for this exchange",
            each.exchange_id,
            each.since_ms,
            each.jobs,
        )
    behind: dict[str, list[LateJobs]] = {}
    for each in facts.stale:
        if each.exchange_id not in explained:
            behind.setdefault(each.exchange_id, []).append(each)
    for exchange_id, series in behind.items():
        names = ", ".join(sorted({each.timeframe for each in series}))
        yield Trouble(
            TroubleKind.STALE,
            f"new bars of {names} are missing",
            f"collector job list --exchange {exchange_id} --type ohlcv_incremental",
            exchange_id,
            min(each.since_ms for each in series),
            sum(each.jobs for each in series),
        )


def _is_network(late: LateJobs) -> bool:
    return network_of(late.exchange_id) is not None


def _stopped(facts: TroubleFacts) -> set[str | None]:
    """Exchanges that an operator has paused."""
    return {
        connector.exchange_id
        for connector in facts.connectors
        if connector.stopped(facts.at_ms) is not None
    }


def _first(failing: Iterable[FailingJobs]) -> int | None:
    return min((each.since_ms for each in failing if each.since_ms is not None), default=None)


def by_kind(found: Iterable[Trouble]) -> Counter[tuple[TroubleKind, str]]:
    """How many jobs each kind concerns on each exchange, at least 1 for what is there."""
    counted: Counter[tuple[TroubleKind, str]] = Counter()
    for each in found:
        counted[each.kind, each.exchange_id or ""] += max(1, each.jobs)
    return counted
