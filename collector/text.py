"""Text from outside, before a person sees it.

Names of markets, an exchange's errors and the paths of requests are written by others. They reach
terminals and logs only through here: an escape sequence in them could rewrite the screen, a line
break forge a line of the log, and a long one fill the disk.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """The text in one line, with a space for every character that is not visible."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


def shortened(text: str, longest: int) -> str:
    """The text, or its first `longest` characters and how many there were."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"
