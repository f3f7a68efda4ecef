"""The committed figures of an earlier run, so that a regression shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.harness import Figure

PATH = Path(__file__).with_name("baseline.json")


def load(form: str) -> dict[str, float]:
    """The figures by name of the `full` or the `quick` form."""
    if not PATH.exists():
        return {}
    figures: dict[str, float] = json.loads(PATH.read_text()).get(form, {})
    return figures


def save(form: str, figures: Sequence[Figure]) -> None:
    """Rewrites those that were measured and keeps the others."""
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    measured = {figure.name: float(f"{figure.value:.3g}") for figure in figures}
    known[form] = dict(sorted({**known.get(form, {}), **measured}.items()))
    PATH.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def change(figure: Figure, known: dict[str, float]) -> str:
    """How far the figure has moved, as a signed share of the baseline."""
    before = known.get(figure.name)
    return f"{figure.value / before - 1:+.0%}" if before else "new"
