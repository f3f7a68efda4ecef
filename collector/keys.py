"""API keys: who may do what.

A key is known here only by its SHA-256, as `role:sha256hex`. Keys are long and random, so a plain
hash is enough: there is no dictionary of them to try.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import IntEnum

from collector.errors import ConfigError

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Role(IntEnum):
    """Each may do what those before it may."""

    ANYONE = 0
    """No key at all; for probes."""
    VIEWER = 1
    """Reads."""
    OPERATOR = 2
    """Also creates, changes, pauses, resumes and runs."""
    ADMIN = 3
    """Also deletes and changes limits."""

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, repr=False)
class ApiKeys:
    """The configured keys. Its repr tells nothing."""

    entries: tuple[tuple[Role, str], ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> ApiKeys:
        """Reads `role:sha256hex,...`. ConfigError names the entry by number, never its digest."""
        entries = []
        for number, entry in enumerate((text or "").split(","), 1):
            if not entry.strip():
                continue
            word, _, digest = entry.strip().partition(":")
            role = _GRANTABLE.get(word.strip().lower())
            digest = digest.strip().lower()
            if role is None or _DIGEST.fullmatch(digest) is None:
                raise ConfigError(
                    f"api_keys: entry {number} is not `role:sha256hex` "
                    f"with a role of {', '.join(_GRANTABLE)}"
                )
            entries.append((role, digest))
        return cls(tuple(entries))

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __repr__(self) -> str:
        return f"ApiKeys({len(self.entries)} keys)"

    def role_of(self, key: str) -> Role | None:
        """The role of a key, None when it is none of ours.

        Every entry is compared, each in constant time, so that the time taken tells nothing.
        """
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        found: Role | None = None
        for role, known in self.entries:
            if hmac.compare_digest(digest, known) and (found is None or role > found):
                found = role
        return found


_GRANTABLE = {role.word: role for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN)}
