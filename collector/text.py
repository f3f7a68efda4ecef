"""Text from outside, before a person sees it.

Names of markets, an exchange's errors and the paths of requests are written by others. They reach
terminals and logs only through here: an escape sequence in them could rewrite the screen, a line
break forge a line of the log, and a long one fill the disk. A spreadsheet would calculate a name
that begins as a formula does.
"""

from __future__ import annotations

import re

FORMULA = r"^([=+\-@\t\r])"
"""How text begins that a spreadsheet takes for a formula."""


def printable(text: str) -> str:
    """The text in one line, with a space for every character that is not visible."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


def shortened(text: str, longest: int) -> str:
    """The text, or its first `longest` characters and how many there were."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"


def escaped(text: str) -> str:
    """The text with an apostrophe before it where a spreadsheet would take it for a formula."""
    return re.sub(FORMULA, r"'\1", text)
