"""Which program wrote a file: its version, and the commit it was built from."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from collector import __version__
from collector.store.checkout import commit_of
from collector.store.signature import _bytes, build_signature

if TYPE_CHECKING:
    from collections.abc import Iterator


def git(folder: Path, *arguments: str) -> str:
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *author, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "--quiet", "--initial-branch", "main")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "first")
    return repository


@pytest.fixture
def fresh() -> Iterator[None]:
    build_signature.cache_clear()
    yield
    build_signature.cache_clear()


def test_a_branch_is_followed_to_its_commit(checkout: Path) -> None:
    assert commit_of(checkout) == git(checkout, "rev-parse", "HEAD")


def test_packed_branches_are_found(checkout: Path) -> None:
    git(checkout, "pack-refs", "--all")
    assert commit_of(checkout) == git(checkout, "rev-parse", "HEAD")


def test_a_detached_checkout_has_its_commit(checkout: Path) -> None:
    git(checkout, "checkout", "--quiet", "--detach")
    assert commit_of(checkout) == git(checkout, "rev-parse", "HEAD")


def test_a_further_worktree_has_its_own_commit(checkout: Path) -> None:
    other = checkout.parent / "other"
    git(checkout, "worktree", "add", "--quiet", "-b", "side", str(other))
    git(other, "commit", "--quiet", "--allow-empty", "--message", "second")
    assert commit_of(other) == git(other, "rev-parse", "HEAD") != commit_of(checkout)


def test_no_checkout_and_no_commit_is_no_commit(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == ""
    git(tmp_path, "init", "--quiet")
    assert commit_of(tmp_path) == ""


@pytest.mark.usefixtures("fresh")
def test_the_commit_an_image_was_built_with_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_COMMIT", "0123456789abcdef" * 2)
    assert build_signature() == f"collector/{__version__}+0123456789ab"


@pytest.mark.usefixtures("fresh")
def test_without_one_it_is_the_commit_of_this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLLECTOR_COMMIT", raising=False)
    commit = commit_of(Path(__file__).parents[2])[:12] or "unknown"
    assert build_signature() == f"collector/{__version__}+{commit}"


@pytest.mark.parametrize(
    "texts",
    [
        *([], ["x"], ["x"] * 5, [None] * 5, ["x", "y", "x"], ["x", None], [None, "x"], [""] * 3),
        *(["", None], ["é", "é"], ["a", "aa"]),
    ],
)
def test_texts_are_hashed_line_by_line_whether_they_are_all_the_same_or_not(
    texts: list[str | None],
) -> None:
    lines = "".join(f"{each or ''}\n" for each in texts).encode()
    column = pa.array(["before", *texts, "behind"], pa.string())
    assert _bytes(column.slice(1, len(texts))) == lines
