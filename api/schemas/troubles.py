"""Troubles as answers show them."""

from typing import Self

from api.schemas.fields import View
from collector.operations.shown.status import shown_trouble
from collector.operations.troubles import Trouble, TroubleKind


class TroubleView(View):
    """One thing that is wrong now."""

    kind: TroubleKind
    """What is wrong, for machines"""
    exchange_id: str | None
    """null when it is not about one exchange"""
    network: str | None
    """The network of trade history that it is about"""
    reason: str
    """What is wrong, in words"""
    since: int | None
    """Epoch ms since when; null when that is not known"""
    jobs: int
    """How many jobs it concerns"""
    help: str
    """The command, or the action, that helps"""

    @classmethod
    def of(cls, trouble: Trouble) -> Self:
        return cls.model_validate(shown_trouble(trouble))


class TroublePage(View):
    """All of them, the most urgent first: `next_cursor` is always null."""

    items: list[TroubleView]
    """What is wrong; empty when all is well"""
    next_cursor: None = None
    """Always null"""

    @classmethod
    def of(cls, found: list[Trouble]) -> Self:
        return cls(items=[TroubleView.of(each) for each in found])
