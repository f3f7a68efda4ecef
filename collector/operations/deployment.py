"""Where a collector lives: its settings, and the file that its processes read them from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.settings import Settings, load

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self


@dataclass(frozen=True, slots=True)
class Deployment:
    """The settings, and the file to name to a started process; None: it finds its own."""

    settings: Settings
    config: Path | None = None

    @classmethod
    def read(cls, config: Path | None = None) -> Self:
        """Raises ConfigError."""
        return cls(load(config), config)

    @property
    def arguments(self) -> list[str]:
        """Arguments that make a started process read the same file."""
        return [] if self.config is None else ["--config", str(self.config)]
