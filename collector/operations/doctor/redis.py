"""Redis, where one is configured: whether it answers and runs the publication's script."""

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
        helps = "start it, or correct redis_url; bars are published when it is back"
        return [problem(AREA, f"cannot be used: {why}", helps)]
    took_ms = (time.monotonic() - began) * 1000
    return [ok(AREA, f"answers and takes the script, in {took_ms:,.0f} ms with connecting")]
