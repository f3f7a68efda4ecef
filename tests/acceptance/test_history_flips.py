"""Every bit of every kind of history file, turned over one at a time: never a wrong answer.

A large file has too many of them: every bit of its footer in steps, and of its pages in longer
ones. Each kind in a process of its own, because damaged bytes may end the process of a library
that believes them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.file_damage import footer_span
from tests.support.fleet import LONG
from tests.support.history_flips import KINDS, file_of, make

if TYPE_CHECKING:
    from pathlib import Path

PAGE_STEP, FOOTER_STEP = (101, 3) if LONG else (1_009, 31)


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lakes")
    make(root)
    return root


async def flipped(lakes: Path, kind: str, bits: range) -> Counter[str]:
    command = (sys.executable, "-m", "tests.support.history_flips", str(lakes), kind)
    places = (str(bits.start), str(bits.stop), str(bits.step))
    process = await asyncio.create_subprocess_exec(
        *command, *places, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, f"{kind}: a wrong answer, or the process was aborted"
    return Counter(json.loads(said))


@pytest.mark.parametrize("kind", KINDS)
async def test_no_flipped_bit_makes_a_wrong_answer(lakes: Path, kind: str) -> None:
    data = file_of(lakes, kind).read_bytes()
    if kind == "large segment":
        footer = footer_span(data)
        pages = range(0, 8 * footer.start, PAGE_STEP)
        found = await flipped(lakes, kind, pages)
        found += await flipped(lakes, kind, range(8 * footer.start, 8 * footer.stop, FOOTER_STEP))
    else:
        found = await flipped(lakes, kind, range(8 * len(data)))
        assert found["buckets: right"] + found["buckets: Corrupt"] == 8 * len(data)
    print(f"{kind}, {8 * len(data):,} bits: {dict(found)}")
    assert all(name.endswith((": right", ": Corrupt")) for name in found)
    assert (found["buckets: Corrupt"] == 0) == ("segment" not in kind), "buckets are made again"
