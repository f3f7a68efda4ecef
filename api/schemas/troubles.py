"""Troubles as answers show them."""

from typing import Self

from pydantic import BaseModel, Field

from collector.jobs.network import network_of
from collector.operations.troubles import Trouble, TroubleKind


class TroubleView(BaseModel):
    """One thing that is wrong now."""

    kind: TroubleKind = Field(description="What is wrong, for machines")
    exchange_id: str | None = Field(description="null when it is not about one exchange")
    network: str | None = Field(description="The network of trade history that it is about")
    reason: str = Field(description="What is wrong, in words")
    since: int | None = Field(description="Epoch ms since when; null when that is not known")
    jobs: int = Field(description="How many jobs it concerns")
    help: str = Field(description="The command, or the action, that helps")

    @classmethod
    def of(cls, trouble: Trouble) -> Self:
        network = None if trouble.exchange_id is None else network_of(trouble.exchange_id)
        return cls(
            kind=trouble.kind,
            exchange_id=trouble.exchange_id if network is None else None,
            network=network,
            reason=trouble.reason,
            since=trouble.since_ms,
            jobs=trouble.jobs,
            help=trouble.help,
        )


class TroublePage(BaseModel):
    """All of them, the most urgent first: `next_cursor` is always null."""

    items: list[TroubleView]
    next_cursor: None = None

    @classmethod
    def of(cls, found: list[Trouble]) -> Self:
        return cls(items=[TroubleView.of(each) for each in found])
