"""The gateway that many venues stand behind: it bans addresses in its own words."""

from __future__ import annotations

from collector.exchanges.quirks.record import BanRule

# Its error 1006. It never says for how long.
BANNED_BY_CLOUDFLARE = BanRule(status=403, phrase="banned your ip address", wait_ms=900_000)
