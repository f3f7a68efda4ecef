"""What is left of a verb of the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ended:
    """A verb that has run."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> Any:
        assert self.code == 0, self.err
        assert self.out.count("\n") == 1, "JSON stands alone on standard output"
        return json.loads(self.out)
