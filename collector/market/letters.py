"""Whether a symbol has some letters in it, as a person types them. Pure.

Every word of the text has to be in the symbol, whatever its case. Separators do not count:
`btcusdt` fits BTC/USDT.
"""

from __future__ import annotations

import re

_SEPARATORS = "/:-"


def patterns(text: str) -> list[str]:
    """A regular expression for each word, for a search that ignores case."""
    words = [[letter for letter in word if letter not in _SEPARATORS] for word in text.split()]
    return [f"[{_SEPARATORS}]?".join(map(re.escape, word)) for word in words]


def fits(text: str, symbol: str) -> bool:
    """Whether every word of the text is in the symbol; any symbol fits no words."""
    return all(re.search(each, symbol, re.IGNORECASE) for each in patterns(text))
