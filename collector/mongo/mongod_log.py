"""The cause of mongod's end from its log, in one line for users."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# A word in the log, and what the reader can do about it.
_REMEDIES = {
    "libcurl.so.4": "install libcurl4 (Debian, Ubuntu: apt install libcurl4)",
    "libssl.so.3": "install libssl3 (Debian, Ubuntu: apt install libssl3)",
    "libcrypto.so.3": "install libssl3 (Debian, Ubuntu: apt install libssl3)",
    "SIGILL": "this CPU lacks instructions (AVX) that mongod needs: set COLLECTOR_MONGO_URI",
    "Permission denied": "the files belong to another user",
    "No space left": "the disk is full",
}
_PORT_TAKEN = "Address already in use"


def last_words(log: Path) -> str:
    """The last line of `log` that explains a failure, with a remedy when one is known."""
    lines = _lines(log)
    errors = [words for line in lines if (words := _complaint(line))]
    plain = [line for line in lines if line and not line.startswith("{")]
    if not (errors or plain):
        return "its log is empty"
    words = (errors or plain)[-1]
    remedy = next((cure for sign, cure in _REMEDIES.items() if sign in words), None)
    return f"{words}; {remedy}" if remedy else words


def port_was_taken(log: Path) -> bool:
    """Whether mongod gave up because another process listens on its port."""
    return any(_PORT_TAKEN in line for line in _lines(log))


def _lines(log: Path) -> list[str]:
    try:
        return [line.strip() for line in log.read_text(errors="replace").splitlines()]
    except FileNotFoundError:
        return []


def _complaint(line: str) -> str | None:
    """The text of an error: mongod's own are JSON of severity E or F, the loader's are plain."""
    if "error while loading shared libraries" in line:
        return line
    try:
        entry: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or entry.get("s") not in ("E", "F"):
        return None
    facts = entry.get("attr") or {}
    detail = facts.get("error") or facts.get("message") or facts.get("reason")
    return f"{entry.get('msg')}: {detail}" if detail else str(entry.get("msg"))
