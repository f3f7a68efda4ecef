"""Taking due jobs: exchange by exchange, only what can start now, and not all of it.

**Slots.** Jobs of one exchange may hang for as long as its requests do. So every exchange has a few
slots of a worker that the others cannot take: an exchange may use whatever is free beyond those.

**Urgency.** Where all slots are taken, by this worker's jobs or under the exchange's ceiling, a run
of history that is less urgent than a due job ends after its page.

**Twins.** Where several workers wait for jobs, the first to wake up must not take all of a handful
and leave the others with none. When everything that is due would fit into one worker, it takes no
more than makes its load the average, and looks again a moment later whether the others came.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from collector import metrics
from collector.errors import LeaseLost
from collector.exchanges.registry import is_exclusive
from collector.jobs import settlement
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.overdue import first_due
from collector.jobs.types import is_history, running_on

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from collector.clock import Clock
    from collector.jobs.lease import Lease
    from collector.jobs.leasing import Leasing
    from collector.mongo.client import Database
    from workers.exchanges_open import JobPlace, OpenExchanges
    from workers.renewal import Renewal
    from workers.session_keeper import SessionKeeper

CLOCK_SLACK_MS = 20
"""How far our idea of the server's clock may be off within one round."""
NEVER = float("inf")
SOON_MS = 60_000
"""An exchange whose next job is due within this time wants slots of its own."""
LEAST_PAUSE = 0.02
"""A round that found nothing is never followed by another at once."""
SHARE_PAUSE = 0.1
"""How long the twins have to take what was left for them."""
TWINS_FRESH_SECONDS = 5.0
MOST_PASSES = 3
"""How often in a row a worker leaves everything to its twins: they may have other exchanges."""


class Claiming:
    """One worker's claims."""

    def __init__(
        self,
        database: Database,
        leasing: Leasing,
        renewal: Renewal,
        exchanges: OpenExchanges,
        clock: Clock,
        *,
        concurrency: int,
        sessions: SessionKeeper | None = None,
    ) -> None:
        """Without `sessions` nothing of an exchange is claimed whose account allows one login."""
        self._database = database
        self._leasing = leasing
        self._renewal = renewal
        self._open = exchanges
        self._clock = clock
        self._concurrency = concurrency
        self._sessions = sessions
        self._workers = LiveWorkers(database)
        self._twins = 1
        self._twins_read_at = float("-inf")
        self._passes = 0
        self.in_doubt = False
        """Whether a claim may have happened whose answer was lost."""

    async def round(
        self,
        start: Callable[[Lease], None],
        *,
        connectors_changed: bool,
        stopping: Callable[[], bool],
    ) -> float | None:
        """Claims once from every exchange and starts what it got, until it is stopped.

        Returns for how long nothing will be due: 0 to go on at once, None when it is unknown.
        """
        await self._database.now_ms()
        await self._count_twins()
        await self._open.refresh(now=connectors_changed)
        if self.in_doubt:
            await self._hand_back_forgotten()
        await self._let_sessions_go()
        turn = self._open.in_turn()
        ours, free_in = await self._ours(turn.running)
        due = await first_due(self._database)
        now_ms = self._database.server_clock.now_ms()
        soon = {exchange_id for exchange_id, ms in due.items() if ms <= now_ms + SOON_MS}
        soon &= {place.exchange_id for place in ours}
        claimed = left = 0
        for place in ours:
            if stopping():
                break
            if due.get(place.exchange_id, NEVER) > now_ms + CLOCK_SLACK_MS:
                continue
            held = self._renewal.by_exchange
            contenders = soon.union(held)
            room = slots(place.exchange_id, held, contenders, self._concurrency)
            leases, more = await self._claim(place, room)
            for lease in leases:
                start(lease)
            claimed += len(leases)
            left += more
        if left:
            return SHARE_PAUSE
        if claimed:
            return 0
        # What is due and was not claimed waits for a slot or for tokens, whose coming rings, or
        # is another worker's by now.
        ahead = [due.get(place.exchange_id, NEVER) - now_ms for place in ours]
        due_in = [max(LEAST_PAUSE, ms / 1000) for ms in ahead if -CLOCK_SLACK_MS < ms < NEVER]
        waits = (*due_in, turn.opens_in, free_in)
        return min((wait for wait in waits if wait is not None), default=None)

    async def nothing_left(self) -> bool:
        """Whether nothing is in hand, and nothing has to be done before its scheduled time."""
        ours = [each for each in self._open.exchange_ids if self._may_be_ours(each)]
        return not self._renewal and not await self._leasing.pending(ours)

    def _may_be_ours(self, exchange_id: str) -> bool:
        """Whether its jobs are left to us: a session that is not ours may never be."""
        if not is_exclusive(exchange_id):
            return True
        return self._sessions is not None and self._sessions.left(exchange_id) > 0

    async def _let_sessions_go(self) -> None:
        """Of exchanges that were paused or removed, once their jobs have been put down."""
        if self._sessions is None:
            return
        for exchange_id in self._sessions.held:
            if self._open.is_wanted(exchange_id):
                continue
            # A stream of prices buys no tokens and would go on through a pause.
            self._renewal.put_down(exchange_id)
            if exchange_id not in self._renewal.by_exchange:
                await self._sessions.let_go(exchange_id, "the connector is paused or removed")

    async def _ours(self, places: Sequence[JobPlace]) -> tuple[list[JobPlace], float | None]:
        """Those whose jobs this worker may run, and the seconds until the next may be its own."""
        ours: list[JobPlace] = []
        waits: list[float] = []
        for place in places:
            connector = place.connector
            if connector is None or not is_exclusive(place.exchange_id):
                ours.append(place)
            elif self._sessions is not None:
                if await self._sessions.may_run(connector):
                    ours.append(place)
                else:
                    waits.append(self._sessions.free_in(connector))
        return ours, min((wait for wait in waits if wait > 0), default=None)

    async def _claim(self, place: JobPlace, room: int) -> tuple[list[Lease], int]:
        """Claims under the exchange's ceiling: claim, look at all leases, give back the excess.

        The second value is how many due jobs were left to the other workers.
        """
        exchange_id, ceiling = place.exchange_id, place.most_jobs
        if ceiling is not None:
            room = min(room, ceiling - len(await self._leasing.live_leases(exchange_id, ceiling)))
        if room <= 0:
            await self._make_room(place)
            return [], 0
        if place.is_spent:
            due = await self._leasing.due_offline(exchange_id)
            leases, left = await self._leasing.take(exchange_id, due[:room]), 0
        else:
            leases, left = await self._share(exchange_id, room)
        if ceiling is None or not leases:
            return leases, left
        # Of workers that claim together, all see the same order: each gives back what is behind.
        first = frozenset(await self._leasing.live_leases(exchange_id, ceiling))
        kept = [
            lease for lease in leases if lease.job_id in first or lease.job.type in running_on()
        ]
        for lease in leases:
            if lease not in kept:
                await self._give_back(lease)
        return kept, left

    async def _make_room(self, place: JobPlace) -> None:
        """Lets runs of history end after their page when more urgent jobs of the exchange are due.

        A backfill may run for days, and without this a job that fetches a new bar would wait for
        its end. What it has stored is kept; it is due at once, behind the more urgent ones.
        """
        if place.is_spent:
            return  # More slots bring no tokens.
        runs = [run for run in self._renewal.runs if run.job.exchange_id == place.exchange_id]
        leaving = sum(run.draining for run in runs)
        history = [run for run in runs if not run.draining and is_history(run.job.type)]
        history.sort(key=lambda run: run.job.priority)
        if not history:
            return
        wanted = leaving + len(history)
        for priority in (await self._leasing.due_priorities(place.exchange_id, wanted))[leaving:]:
            run = history.pop()
            if run.job.priority <= priority:
                return
            run.drain()
            metrics.RUNS_INTERRUPTED.labels(place.exchange_id).inc()

    async def _share(self, exchange_id: str, wanted: int) -> tuple[list[Lease], int]:
        """Our part of what is due: all of it when there is more than fits here."""
        if wanted == 1:
            return await self._leasing.claim(exchange_id), 0
        due = await self._leasing.due(exchange_id, wanted)
        ours = due
        if due and len(due) < wanted and self._twins > 1 and self._passes < MOST_PASSES:
            running = await self._leasing.running()
            average = -(-(running + len(due)) // self._twins)
            ours = due[: max(0, average - len(self._renewal))]
        self._passes = self._passes + 1 if due and not ours else 0
        return await self._leasing.take(exchange_id, ours), len(due) - len(ours)

    async def _count_twins(self) -> None:
        moment = self._clock.monotonic()
        if moment - self._twins_read_at >= TWINS_FRESH_SECONDS:
            self._twins_read_at = moment
            self._twins = max(1, await self._workers.count())

    async def _hand_back_forgotten(self) -> None:
        """After an outage: claims that happened although their answers were lost."""
        for lease in await self._leasing.forgotten(self._renewal.job_ids):
            await self._give_back(lease)
        self.in_doubt = False

    async def _give_back(self, lease: Lease) -> None:
        with suppress(LeaseLost):  # Then another worker has it, which is fine.
            await self._leasing.settle(lease, settlement.give_back())


def slots(
    exchange_id: str, held: Mapping[str, int], contenders: Collection[str], concurrency: int
) -> int:
    """How many more jobs of an exchange a worker with these `held` jobs may take.

    Half of the slots are divided among the `contenders`, and what one of them does not use of its
    part stays free for it. The other half is first come, first served.
    """
    free = concurrency - sum(held.values())
    own = max(1, concurrency // (2 * max(1, len(contenders))))
    kept = sum(max(0, own - held.get(other, 0)) for other in contenders if other != exchange_id)
    kept = min(kept, concurrency // 2)
    return min(free, max(free - kept, own - held.get(exchange_id, 0)))
