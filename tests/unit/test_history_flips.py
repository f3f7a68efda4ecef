"""A flipped bit in a file of the trade history never makes a wrong answer.

Some bits of each file; `make acceptance` turns over all of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.history_flips import KINDS, file_of, flips, make

if TYPE_CHECKING:
    from pathlib import Path

SOME = 40


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lakes")
    make(root)
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_gives_the_right_answer_or_a_named_error(
    lakes: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    bits = 8 * file_of(lakes, kind).stat().st_size
    found = flips(lakes, kind, range(bits % 7, bits, bits // SOME))
    assert found.total() >= 3 * SOME
