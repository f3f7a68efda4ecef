"""The gateway in front of many venues: it bans addresses with its own pages."""

from __future__ import annotations

from collector.exchanges.quirks.record import BanRule

# Its error 1006. It never reports a duration.
BANNED_BY_CLOUDFLARE = BanRule(status=403, phrase="banned your ip address", wait_ms=900_000)
