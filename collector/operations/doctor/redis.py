"""Redis, where one is configured: whether it answers and takes messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from collector.operations.doctor.finding import Finding, ok, problem
from collector.publication.redis_link import refusal

if TYPE_CHECKING:
    from collector.settings import Settings

AREA = "redis"


async def redis(settings: Settings) -> list[Finding]:
    if settings.redis_url is None:
        return [ok(AREA, "not used")]
    began = time.monotonic()
    why = await refusal(settings.redis_url)
    if why is not None:
        helps = (
            "start it, correct redis_url, or give its user the right that is named;"
            " bars are published when it takes them"
        )
        return [problem(AREA, f"cannot be used: {why}", helps)]
    took_ms = (time.monotonic() - began) * 1000
    return [ok(AREA, f"answers and takes messages, in {took_ms:,.0f} ms with connecting")]
