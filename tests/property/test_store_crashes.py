"""Any order of pages, revisions, compactions, gatherings and deaths ends as last-wins says."""

from __future__ import annotations

import os
import secrets
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.store import compaction, derived, part, segment, snapshot
from collector.store.copies import Copies
from tests.support.examples import examples
from tests.support.fleet import LONG
from tests.support.lakes import Lake
from tests.support.store_stories import WINDOW, World, lived_through, stories

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="module")
def _small_and_fast() -> Iterator[None]:
    """Short windows. Deaths are injected, the machine stays on: syncing would only be slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _handle: None)
        for module in (segment, part, snapshot, compaction, derived):
            patch.setattr(module, "ROWS_PER_GROUP", WINDOW)
        yield


@settings(max_examples=500 if LONG else examples(60), deadline=None)
@given(stories)
def test_what_was_durable_is_there_once_and_the_last_one_wins(story: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as root:
        world = World(Lake(root), moments=list(range(1_000, 1_100)))
        lived_through(world, story, versions=True)


@settings(max_examples=examples(50), deadline=None)
@given(stories, st.permutations(range(1_000, 1_048)))
def test_answers_that_arrive_late_never_beat_newer_ones(
    story: list[Any], moments: list[int]
) -> None:
    """A writer that was frozen puts an old answer down after newer ones were merged."""
    with tempfile.TemporaryDirectory() as root:
        lived_through(World(Lake(root), list(moments)), story, versions=False)


@settings(max_examples=5, deadline=None)
@given(stories)
def test_an_object_store_tells_the_same(bucket: Lake, story: list[Any]) -> None:
    """tests/acceptance/test_object_store.py has more of these."""
    own = bucket.beside(secrets.token_hex(6))
    world = World(own, moments=list(range(1_000, 1_100)), copies=Copies())
    lived_through(world, story, versions=True)
