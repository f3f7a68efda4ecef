"""Pages of past bars that were written down before, ready to be sent again.

For measuring a client: making up a page and writing it down takes the exchange longer than most
clients take to ask for it, and on few cores the client would wait for that.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from collector.simulated.view import ClientView


class ReadyPages:
    """The pages used last, `most` of them, as long as the history looks the same."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._view: ClientView | None = None
        self._bodies: OrderedDict[Hashable, tuple[bytes, int]] = OrderedDict()

    def get(self, view: ClientView, asked: Hashable) -> tuple[bytes, int] | None:
        """The body, and how many bars are in it; None when it is not here."""
        found = self._bodies.get(asked) if view == self._view else None
        if found is not None:
            self._bodies.move_to_end(asked)
        return found

    def put(self, view: ClientView, asked: Hashable, body: bytes, bars: int) -> None:
        """A page whose bars have all ended: later it is the same."""
        if view != self._view:
            self._view = view
            self._bodies.clear()
        self._bodies[asked] = body, bars
        while len(self._bodies) > self._most:
            self._bodies.popitem(last=False)
