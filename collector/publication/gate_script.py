"""The gate's rule as a Redis script: it decides, publishes and moves the mark in one step.

Numbers are kept as the text they arrived in: Lua would write a large one with an exponent. The
mark is a hash with the fields `fence` and `until`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.publication.gate import GateVerdict, Mark, Ruling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.publication.message import Publication

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
if joined == '1' then
  if #new > 0 then
    redis.call('PUBLISH', channel, prefix .. table.concat(new, ',') .. suffix)
  end
else
  for i = 1, #new do redis.call('PUBLISH', channel, new[i]) end
end
return {'admitted', #new, fence, reached}
"""


def arguments(publication: Publication) -> list[str | bytes]:
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


def ruling(answer: Sequence[bytes | int]) -> Ruling:
    """What the script answered."""
    verdict, new, fence, until = answer
    name = verdict.decode() if isinstance(verdict, bytes) else str(verdict)
    return Ruling(GateVerdict(name), int(new), Mark(int(fence), int(until)))
