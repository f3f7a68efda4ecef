"""Random damage to every kind of file: nothing is lost without saying so, and all comes back."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.support.damage_storm import KINDS, fill, make_small, storm

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(600)
def test_a_storm_of_damage_loses_nothing_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch)
    fill(tmp_path / "pristine")
    tally = storm(tmp_path / "pristine", tmp_path / "struck", 18, random.Random(1))
    assert set(tally.by_kind) == KINDS
    assert tally.refused
    assert tally.missing
    assert tally.harmless
