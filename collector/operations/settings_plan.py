"""What has to change so that the database is as the settings file asks. Pure decisions.

Each field has three values: what the file names, what it named last time (`declared`), and what is
there. What the file names wins. What it named before and no longer does goes back to the default,
unless an operator changed it meanwhile. What it never named stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.connector import GLOBAL
from collector.exchanges.quirks.spacing import Spacing
from collector.jobs.declared import declared
from collector.jobs.earlier import begins_ms
from collector.jobs.job import Cursor
from collector.jobs.states import Status
from collector.operations.requested_history import is_extensible, shown_day

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.connectors.connector import Connector, Limits
    from collector.jobs.job import Job
    from collector.operations.wished_settings import WishedConnector, WishedJob

_OF_CIRCUIT = frozenset(each.name for each in fields(CircuitSettings))


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    EXTEND = "extend"
    RESUME = "resume"
    PAUSE = "pause"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """One thing to do. `details` are for users; `values` and `declared` are what is written."""

    action: Action
    exchange_id: str
    details: tuple[str, ...] = ()
    job: Job | None = None
    """The job that is there."""
    wished: WishedJob | WishedConnector | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a connector, or of a job."""

    @property
    def subject(self) -> str:
        """The connector or job in words."""
        type_, symbol, timeframe = self.about
        if type_ is None:
            whole = self.exchange_id == GLOBAL
            return "limit on all exchanges" if whole else f"connector {self.exchange_id}"
        return " ".join(filter(None, (self.exchange_id, symbol, timeframe, type_)))

    @property
    def about(self) -> tuple[str | None, str | None, str | None]:
        """Type, symbol and timeframe of the job; None three times for a connector."""
        spec = getattr(self.wished, "spec", None)
        each = self.job if spec is None else spec
        return (None, None, None) if each is None else (each.type, each.symbol, each.timeframe)


def connector_change(
    wished: WishedConnector, found: Connector | None, usual: Limits
) -> SettingsChange | None:
    """What the file asks of an exchange's connector. `usual` are the exchange's own limits."""
    if found is None:
        words = tuple(f"{name} {_words(value)}" for name, value in _plain(wished.named).items())
        return SettingsChange(Action.CREATE, wished.exchange_id, words, wished=wished)
    before = found.document.get("declared") or {}
    wanted = {
        name: value
        for name, value in wished.named.items()
        if _plain_value(value) != _live(found, name)
    }
    for name in before.keys() - wished.named.keys():
        default = _usual(usual, name)
        if _live(found, name) == before[name] != _plain_value(default):
            wanted[name] = default
    if not wanted:
        return None
    words = tuple(
        f"{name} {_words(_live(found, name))} -> {_words(_plain_value(value))}"
        for name, value in sorted(wanted.items())
    )
    values = {_path(name): value for name, value in wanted.items()}
    return SettingsChange(Action.CHANGE, wished.exchange_id, words, wished=wished, values=values)


def limits_of(named: Mapping[str, Any]) -> dict[str, Any]:
    """The named fields as fields of `Limits`, for a connector that is created."""
    own = {name: value for name, value in named.items() if name not in (*_OF_CIRCUIT, "notes")}
    circuit = {name: value for name, value in named.items() if name in _OF_CIRCUIT}
    return {**own, "circuit": CircuitSettings(**circuit)} if circuit else own


def connector_mark(wished: WishedConnector) -> dict[str, Any]:
    """What the connector's mark records: the named fields as documents hold them."""
    return _plain(wished.named)


def job_changes(wished: WishedJob, found: Job | None) -> list[SettingsChange]:
    """What the file asks of one job."""
    exchange_id = wished.spec.exchange_id
    if found is None:
        words = _new_words(wished)
        return [SettingsChange(Action.CREATE, exchange_id, words, wished=wished)]
    changes: list[SettingsChange] = []
    before = declared(found) or {}
    if before.get("left") and found.status is Status.PAUSED and not found.cursor.done:
        changes.append(SettingsChange(Action.RESUME, exchange_id, (), found, wished))
    priority = _wanted_priority(wished, found, before)
    if priority is not None and priority != found.priority:
        words = (f"priority {found.priority} -> {priority}",)
        values: dict[str, Any] = {"priority": priority}
        changes.append(SettingsChange(Action.CHANGE, exchange_id, words, found, wished, values))
    params = _wanted_params(wished, found, before)
    if params != found.params:
        words = tuple(
            f"{name} {_names(found.params.get(name))} -> {_names(params.get(name))}"
            for name in sorted(params.keys() | found.params.keys())
            if params.get(name) != found.params.get(name)
        )
        values = {"params": params}
        changes.append(SettingsChange(Action.CHANGE, exchange_id, words, found, wished, values))
    if _is_earlier(wished, found, before):
        assert isinstance(wished.spec.cursor, Cursor)
        begins = f"{shown_day(begins_ms(found))} -> {shown_day(wished.spec.cursor.since_ms)}"
        words = (f"history begins {begins}",)
        changes.append(SettingsChange(Action.EXTEND, exchange_id, words, found, wished))
    return changes


def later_note(wished: WishedJob, found: Job | None) -> str | None:
    """Why an edited `since` changes nothing; None when it was not edited, or is an earlier one."""
    if found is None or wished.since is None or not is_extensible(wished.spec.type):
        return None
    assert isinstance(wished.spec.cursor, Cursor)
    known, before = begins_ms(found), declared(found) or {}
    if wished.spec.cursor.since_ms <= known or before.get("since") == wished.since:
        return None
    series = f"{found.exchange_id} {found.symbol} {found.timeframe}"
    return (
        f"{series}: its history begins at {shown_day(known)} already; a later one changes nothing"
    )


def left_change(job: Job, *, prune: bool) -> SettingsChange | None:
    """What becomes of a declared job that the file no longer names."""
    if prune:
        return SettingsChange(Action.DELETE, job.exchange_id, ("not in the file",), job)
    if (declared(job) or {}).get("left") or job.status is not Status.ACTIVE:
        return None
    return SettingsChange(Action.PAUSE, job.exchange_id, ("not in the file",), job)


def _wanted_priority(wished: WishedJob, found: Job, before: Mapping[str, Any]) -> int | None:
    if wished.priority is not None:
        return wished.priority
    if before.get("priority") == found.priority:
        return wished.spec.effective_priority
    return None


def _wanted_params(wished: WishedJob, found: Job, before: Mapping[str, Any]) -> dict[str, Any]:
    """With what the file names; what it named before and no longer does is gone."""
    declared_before = before.get("params") or {}
    kept = {
        name: value
        for name, value in found.params.items()
        if name not in declared_before or declared_before[name] != value
    }
    return kept | dict(wished.spec.params)


def _is_earlier(wished: WishedJob, found: Job, before: Mapping[str, Any]) -> bool:
    """A `since` that was taken out of the file means: from the first bar."""
    if not is_extensible(wished.spec.type):
        return False
    if wished.since is None and before.get("since") is None:
        return False
    assert isinstance(wished.spec.cursor, Cursor)
    return wished.spec.cursor.since_ms < begins_ms(found)


def _new_words(wished: WishedJob) -> tuple[str, ...]:
    if not is_extensible(wished.spec.type):
        return ()
    assert isinstance(wished.spec.cursor, Cursor)
    return (f"history from {shown_day(wished.spec.cursor.since_ms)} on",)


def _live(found: Connector, name: str) -> Any:
    document: Any = found.document
    if name in _OF_CIRCUIT:
        return getattr(found.limits.circuit, name)
    if name == "windows":
        return [window.to_document() for window in found.limits.windows]
    return document.get(name)


def _usual(usual: Limits, name: str) -> Any:
    return getattr(usual.circuit if name in _OF_CIRCUIT else usual, name, None)


def _path(name: str) -> str:
    return f"circuit.settings.{name}" if name in _OF_CIRCUIT else name


def _plain(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in sorted(named.items())}


def _plain_value(value: Any) -> Any:
    """As the document holds it."""
    if isinstance(value, Spacing):
        return value.to_document()
    if isinstance(value, tuple):
        return [each.to_document() for each in value]
    return value


def _names(value: Any) -> str:
    return ", ".join(value) if value else "none"


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"{w['limit']} {w['unit']} / {w['period_ms']} ms" for w in value) or "none"
    return "none" if value is None else "changed" if isinstance(value, dict) else str(value)
