"""PublishDataGate: nothing is published twice, nothing out of order, nothing left out.

Each channel of a stream (for bars: each series) has a mark: up to which moment everything was
published, and the fence of its publisher. The mark lives in Redis. A script there decides what of
an offer is new, moves the mark and publishes, in one step, so that no crash, retry or slow twin can
come between the two. Redis does not undo what a script has done before an error. So the script
itself restores the mark when PUBLISH is refused.

Times are epoch milliseconds. A stretch is `[start, until)`. The script keeps numbers as the text
they arrived in: Lua would write a large one with an exponent. The mark is a hash with the fields
`fence` and `until`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import SecretStr

    from collector.publication.message import Publication

TIMEOUT_SECONDS = 5.0
"""A Redis that takes longer for a message counts as away."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Everything before `until` was published, the last of it by the owner of `fence`."""

    fence: int
    until: int


@dataclass(frozen=True, slots=True)
class GateOffer:
    """Items of the stretch `[start, until)`, complete, with their times in ascending order.

    `proven` is the moment before which everything is known to be published, from a source other
    than the mark: it counts when the mark is missing or behind.
    """

    fence: int
    proven: int
    start: int
    until: int
    times: tuple[int, ...]

    def __post_init__(self) -> None:
        inside = all(self.start <= each < self.until for each in self.times)
        if not inside or list(self.times) != sorted(self.times):
            raise ValueError("times have to ascend and lie in the stretch of the offer")


class GateVerdict(StrEnum):
    ADMITTED = "admitted"
    """What is new was published, which may be nothing, and the mark is at the offer's end."""
    STALE_FENCE = "stale_fence"
    """A later owner has published: the offer counts for nothing."""
    GAP = "gap"
    """Something between the mark and the offer's start was never published: begin at the mark."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """`new` items, the last ones of the offer, were admitted; `mark` is where it stands now."""

    verdict: GateVerdict
    new: int
    mark: Mark


class PublishDataGate:
    """The gate on a Redis server. The `redis` package is imported here and only here."""

    def __init__(self, url: SecretStr) -> None:
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        # The client's own retries would run the script again without a look at the back-off.
        self._client = Redis.from_url(
            url.get_secret_value(),
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._script = self._client.register_script(SCRIPT)

    async def admit(self, publication: Publication) -> Ruling:
        """Publishes what is new of an offer, and moves the mark when it was admitted."""
        return _ruling(await self._script(keys=[publication.key], args=_arguments(publication)))

    async def close(self) -> None:
        await self._client.aclose()


SCRIPT = """
local channel, fence, proven = ARGV[1], ARGV[2], ARGV[3]
local start, ending, joined = ARGV[4], ARGV[5], ARGV[6]
local prefix, suffix = ARGV[7], ARGV[8]

local mark = redis.call('HMGET', KEYS[1], 'fence', 'until')
if mark[1] and tonumber(fence) < tonumber(mark[1]) then
  return {'stale_fence', 0, mark[1], mark[2]}
end

local base = proven
if mark[2] and tonumber(mark[2]) > tonumber(proven) then base = mark[2] end
if tonumber(start) > tonumber(base) then
  return {'gap', 0, fence, base}
end

local new = {}
for i = 9, #ARGV, 2 do
  if tonumber(ARGV[i]) >= tonumber(base) then new[#new + 1] = ARGV[i + 1] end
end
local reached = base
if tonumber(ending) > tonumber(base) then reached = ending end
redis.call('HSET', KEYS[1], 'fence', fence, 'until', reached)
local messages = new
if joined == '1' and #new > 0 then messages = {prefix .. table.concat(new, ',') .. suffix} end
for i = 1, #messages do
  local answer = redis.pcall('PUBLISH', channel, messages[i])
  if type(answer) == 'table' and answer.err then
    if mark[1] then
      redis.call('HSET', KEYS[1], 'fence', mark[1], 'until', mark[2])
    else
      redis.call('DEL', KEYS[1])
    end
    return redis.error_reply(answer.err .. ' (PUBLISH ' .. channel .. ')')
  end
end
return {'admitted', #new, fence, reached}
"""


def _arguments(publication: Publication) -> list[str | bytes]:
    """ARGV of the script."""
    offer, envelope = publication.offer, publication.envelope
    fixed: list[str | bytes] = [
        publication.channel,
        str(offer.fence),
        str(offer.proven),
        str(offer.start),
        str(offer.until),
        "0" if envelope is None else "1",
        *(envelope or ("", "")),
    ]
    for time, text in zip(offer.times, publication.texts, strict=True):
        fixed += [str(time), text]
    return fixed


def _ruling(answer: Sequence[bytes | int]) -> Ruling:
    """What the script answered."""
    verdict, new, fence, until = answer
    name = verdict.decode() if isinstance(verdict, bytes) else str(verdict)
    return Ruling(GateVerdict(name), int(new), Mark(int(fence), int(until)))
