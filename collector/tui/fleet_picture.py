"""The viewer's state at one moment, and how events change it. Pure.

Documents are kept as the API sends them: the viewer of one version watches fleets of others, so
every field that it reads may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Document = Mapping[str, Any]

KINDS = {"price": "prices", "heartbeat": "heartbeats", "market_status": "markets"}
SAMPLES = 60


@dataclass(frozen=True, slots=True)
class FleetPicture:
    """`at_ms` is the viewer's own clock. Empty before the first lists have arrived."""

    at_ms: int = 0
    connectors: Mapping[str, Document] = field(default_factory=dict)
    jobs: Mapping[str, Document] = field(default_factory=dict)
    more_jobs: bool = False
    """There are more jobs than the viewer reads."""
    workers: tuple[Document, ...] | None = None
    """None before they are known: that is no alarm."""
    prices: Mapping[tuple[str, str], Document] = field(default_factory=dict)
    heartbeats: Mapping[str, Document] = field(default_factory=dict)
    markets: Mapping[str, Document] = field(default_factory=dict)
    trails: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The last samples of some figures, for sparklines."""
    trouble: str | None = None
    """Why there are no events now."""

    def trail(self, name: str) -> tuple[float, ...]:
        return self.trails.get(name, ())


def with_lists(
    picture: FleetPicture,
    *,
    connectors: Iterable[Document],
    jobs: Sequence[Document],
    more_jobs: bool,
    workers: Iterable[Document],
    live: Iterable[Document],
) -> FleetPicture:
    """A new beginning: what was known before is replaced, but for the samples."""
    fresh = FleetPicture(
        at_ms=picture.at_ms,
        connectors={each["exchange_id"]: each for each in connectors},
        jobs={each["id"]: each for each in jobs},
        more_jobs=more_jobs,
        workers=tuple(workers),
        trails=picture.trails,
    )
    for each in live:
        fresh = with_event(fresh, str(each.get("kind")), each)
    return fresh


def with_figures(
    picture: FleetPicture, connectors: Iterable[Document], workers: Iterable[Document]
) -> FleetPicture:
    """What changes without an event: budgets and signs of life."""
    named = {each["exchange_id"]: each for each in connectors}
    return replace(picture, connectors=named, workers=tuple(workers))


def with_event(picture: FleetPicture, name: str, data: Document) -> FleetPicture:
    """After one event. Events that the viewer does not know change nothing."""
    if name == "job":
        return replace(picture, jobs=_with_job(picture.jobs, data))
    if name == "connector":
        gone = data.get("status") == "deleted"
        return replace(
            picture, connectors=_with(picture.connectors, data["exchange_id"], data, gone=gone)
        )
    if name == "price":
        key = data["exchange_id"], data["symbol"]
        return replace(picture, prices=_with(picture.prices, key, data))
    if name == "heartbeat":
        beats = _with(picture.heartbeats, data["exchange_id"], data)
        return replace(picture, heartbeats=beats)
    if name == "market_status":
        return replace(picture, markets=_with(picture.markets, data["exchange_id"], data))
    return picture


def sampled(picture: FleetPicture, at_ms: int, figures: Mapping[str, float]) -> FleetPicture:
    """At `at_ms`, with one more sample of each figure."""
    trails = {name: (*picture.trail(name), value)[-SAMPLES:] for name, value in figures.items()}
    return replace(picture, at_ms=at_ms, trails=trails)


def _with_job(jobs: Mapping[str, Document], job: Document) -> Mapping[str, Document]:
    return _with(jobs, job["id"], job, gone=job.get("status") == "deleted")


def _with(
    known: Mapping[Any, Document], key: Any, data: Document, *, gone: bool = False
) -> Mapping[Any, Document]:
    changed = {**known, key: data}
    if gone:
        del changed[key]
    return changed
