"""The commit a checkout is at, read from git's own files: git itself may not be installed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def commit_of(repository: Path) -> str:
    """The whole hash; empty when this is no checkout, or one without a commit."""
    try:
        own, shared = _git_folders(repository / ".git")
        head = (own / "HEAD").read_text().strip()
    except OSError:
        return ""
    found = _commit_at(shared, head.removeprefix("ref: ")) if head.startswith("ref: ") else head
    return found if _COMMIT.fullmatch(found) else ""


def _git_folders(git: Path) -> tuple[Path, Path]:
    """Where HEAD is, and where branches are. In a further worktree `.git` is a file."""
    if git.is_dir():
        return git, git
    own = git.parent / git.read_text().strip().removeprefix("gitdir: ")
    common = own / "commondir"
    return own, own / common.read_text().strip() if common.exists() else own


def _commit_at(shared: Path, branch: str) -> str:
    """A branch has a file of its own until git packs them all into one."""
    try:
        return (shared / branch).read_text().strip()
    except OSError:
        pass
    try:
        lines = (shared / "packed-refs").read_text().splitlines()
    except OSError:
        return ""
    named = (line.split(" ", 1) for line in lines if " " in line)
    return next((commit for commit, name in named if name == branch), "")
