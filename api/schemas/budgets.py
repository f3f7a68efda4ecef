"""What is used of an exchange's windows, as answers show it."""

from typing import Literal

from api.schemas.fields import View


class BudgetView(View):
    """One window: at most `limit` of `unit` in any `period_ms`."""

    unit: Literal["requests", "weight"]
    """What is counted"""
    limit: int
    """The most of it"""
    period_ms: int
    """In this time"""
    used: int
    """How much of it is used now"""
    resets_at: int | None
    """Epoch ms at which all of what is used is free again; null when nothing is"""
