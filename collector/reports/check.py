"""The outcome of one check: whether it held, how often it did not, and a few examples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLES = 5


@dataclass(slots=True)
class Check:
    """Grows while a series is read. `ok` until something was noted."""

    count: int = 0
    examples: list[Any] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.count == 0

    def note(self, count: int, examples: Iterable[Any] = ()) -> None:
        """`count` more cases; the first few of all examples are kept."""
        self.count += count
        for example in examples:
            if len(self.examples) >= EXAMPLES:
                return
            self.examples.append(example)

    def document(self) -> dict[str, Any]:
        return {"ok": self.ok, "count": self.count, "examples": self.examples}
