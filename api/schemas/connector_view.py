"""Connectors in answers."""

from datetime import datetime
from typing import Any, Literal, Self

from api.schemas.budgets import BudgetView
from api.schemas.circuit import CircuitView
from api.schemas.connectors import AlgorithmName
from api.schemas.fields import View
from api.schemas.history_budget import HistoryBudgetView, SpacingView
from collector.connectors.connector import Connector
from collector.exchanges.exclusive import SessionState
from collector.operations.shown.connector import shown_connector

ConnectorStatus = Literal["active", "paused", "deleted"]


class ReportedUsage(View):
    """What the exchange itself reported as counted."""

    unit: str
    """requests or weight"""
    period_ms: int
    """The window that it is about, in milliseconds"""
    used: int
    """What the exchange has counted"""
    at: int
    """When it reported that, in epoch ms"""


class WindowView(View):
    """One further limit."""

    unit: str
    """requests or weight"""
    limit: int
    """How many at most"""
    period_ms: int
    """In how many milliseconds"""
    priority_reserve: int
    """How many of them are kept for urgent requests"""


class UsedWindow(View):
    """How full one window is now."""

    unit: str
    """requests or weight"""
    limit: int
    """How many at most"""
    period_ms: int
    """In how many milliseconds"""
    used: int
    """How many were used"""


class StopView(View):
    """Why nothing is sent."""

    reason: Literal["paused", "blocked", "circuit", "deleted"]
    """Who stops it: an operator, the exchange, or the circuit gate"""
    until: int | None
    """When it ends by itself, in epoch ms; null when only an operator can end it"""


class SessionView(View):
    """The only session of an account. Moments are epoch ms."""

    state: SessionState
    """STREAM, IDLE, DISCONNECTED or RECOVERING"""
    since: int
    """When it came into this state; 0 before the first"""
    reason: str
    """Why it is in this state"""
    holder: str | None
    """The worker that holds it"""
    lease_until: int | None
    """Until when the holder may be logged in"""
    fence: int
    """How often it was taken"""
    diag: dict[str, Any] | None
    """`backoff`: for each of its pauses whether it is active, how long, and why"""


class CadenceView(View):
    """Seconds between two polls for new bars."""

    m1: float
    """For bars of one minute"""
    m5: float
    """For longer ones"""
    reason: str
    """Why so often"""


class ConnectorView(View):
    """One exchange's status, limits and what it has granted. Windows and pauses are epoch ms."""

    exchange_id: str
    """The exchange, by ccxt's id"""
    creation_date: datetime
    """When the connector was made"""
    status: ConnectorStatus
    """What operators have decided"""
    notes: str | None
    """A word for colleagues"""
    rate_limit: int
    """Requests a period"""
    rate_limit_period_ms: int
    """The period, in milliseconds"""
    algorithm: AlgorithmName
    """How the window counts"""
    windows: list[WindowView]
    """Further limits beside `rate_limit`"""
    max_concurrent_jobs: int | None
    """Jobs that may run at a time; null: as many as workers take"""
    priority_reserve: int
    """Requests of `rate_limit` that are kept for urgent ones"""
    reserve_threshold: float
    """The share of a window from which on the reserve is kept"""
    spacing: SpacingView | None
    """How far apart requests of one series are; null: they keep no distance"""
    history_budget: HistoryBudgetView | None
    """What is used of a budget with `spacing`; null without one"""
    rate_limit_usage: int
    """Tokens granted in the window that is open"""
    rate_limit_window_start: int
    """When that window began"""
    rate_limit_reset_at: int
    """When it ends"""
    usage: list[UsedWindow]
    """How full each window is now: that of `rate_limit` first, then `windows`"""
    budgets: list[BudgetView]
    """What is used now of every window, the fullest first"""
    reported_usage: ReportedUsage | None
    """What the exchange itself has counted, when it reports that"""
    paused_until: int | None
    """When a pause ends by itself; null when there is none, or no end"""
    blocked_until: int | None
    """When the exchange's block ends; null when there is none"""
    blocked_reason: str | None
    """The exchange's reason for it"""
    blocked: bool
    """The exchange refuses requests now; see `blocked_until`"""
    stopped: bool
    """No request is sent now: paused, blocked, deleted, or its circuit has tripped"""
    stop: StopView | None
    """Why no request may be sent now; null when requests may be sent"""
    circuit: CircuitView
    """The circuit gate that all workers share"""
    session: SessionView | None
    """Of an exchange whose account allows one login; null elsewhere"""
    cadence: CadenceView | None
    """How often new bars are polled for, where live prices decide that"""
    granted_total: int
    """Tokens granted since the connector was made"""
    denied_total: int
    """Requests for tokens that were denied"""
    charged_total: int
    """Late requests that were counted once more"""
    last_job_run_time: datetime | None
    """When a job of it last began a run"""
    jobs_count: int
    """Its jobs that are not deleted, as last counted"""
    active_jobs_count: int
    """Those of them that are active"""
    updated_at: datetime
    """When its settings or its status last changed"""

    @classmethod
    def of(cls, connector: Connector, now_ms: int) -> Self:
        """As it is at `now_ms`."""
        return cls.model_validate(shown_connector(connector, now_ms))


class RemovedConnector(ConnectorView):
    """The connector that was deleted."""

    jobs_removed: int
    """How many jobs went with it"""

    @classmethod
    def with_jobs(cls, connector: Connector, now_ms: int, jobs_removed: int) -> Self:
        shown = shown_connector(connector, now_ms)
        return cls.model_validate({**shown, "jobs_removed": jobs_removed})


class ConnectorPage(View):
    items: list[ConnectorView]
    """By `exchange_id`"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""
