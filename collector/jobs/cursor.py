"""How far a job has come, by the shape that its type needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


class CursorShape(Protocol):
    """A frozen record that a job type uses as its cursor.

    `from_document` has to accept None and documents of older and newer programs: it ignores unknown
    fields and uses defaults for missing ones.
    """

    @property
    def done(self) -> bool: ...

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None) -> Self: ...

    def to_document(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in time. Everything before `since_ms` is durable in the store."""

    since_ms: int = 0
    until_ms: int | None = None
    page: int = 0
    last_ts: int = 0
    done: bool = False

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None) -> Self:
        known = {name: (document or {}).get(name) for name in Cursor.__slots__}
        return cls(**{name: value for name, value in known.items() if value is not None})

    def to_document(self) -> dict[str, Any]:
        return {
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
            "page": self.page,
            "last_ts": self.last_ts,
            "done": self.done,
        }


@dataclass(frozen=True, slots=True)
class SequenceCursor:
    """A place in an order of events. Every event up to `applied_through` is durable."""

    applied_through: int = 0
    done: bool = False

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None) -> Self:
        return cls(int((document or {}).get("applied_through") or 0))

    def to_document(self) -> dict[str, Any]:
        return {"applied_through": self.applied_through, "done": self.done}
