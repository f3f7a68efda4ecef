"""API keys: who may do what.

A key is stored here only as its SHA-256, as `role:sha256hex`, with `:name` after it when the log is
to show whose it is. Keys are long and random, so a plain
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
_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")


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


_GRANTABLE = {role.word: role for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN)}


@dataclass(frozen=True, slots=True, repr=False)
class KeyEntry:
    """One key: what it allows, its hash, and the name that the log shows."""

    role: Role
    digest: str
    name: str


@dataclass(frozen=True, slots=True, repr=False)
class ApiKeys:
    """The configured keys. Its repr shows none."""

    entries: tuple[KeyEntry, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> ApiKeys:
        """Reads `role:sha256hex[:name],...`.

        ConfigError names the entry by number, never its digest. A key without a name is called by
        the first digits of its hash.
        """
        entries = []
        for number, entry in enumerate((text or "").split(","), 1):
            if not entry.strip():
                continue
            word, _, rest = entry.strip().partition(":")
            role = _GRANTABLE.get(word.strip().lower())
            digest, named, name = (part.strip() for part in rest.partition(":"))
            digest = digest.lower()
            if role is None or _DIGEST.fullmatch(digest) is None:
                raise ConfigError(
                    f"api_keys: entry {number} is not `role:sha256hex` "
                    f"with a role of {', '.join(_GRANTABLE)}"
                )
            if named and _NAME.fullmatch(name) is None:
                raise ConfigError(
                    f"api_keys: the name of entry {number} has other characters than letters, "
                    "digits, dot, dash and underscore, or more than 40"
                )
            entries.append(KeyEntry(role, digest, name or digest[:8]))
        return cls(tuple(entries))

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __repr__(self) -> str:
        return f"ApiKeys({len(self.entries)} keys)"

    def role_of(self, key: str) -> Role | None:
        """The role of a key, None when it is none of ours."""
        found = self.find(key)
        return None if found is None else found.role

    def find(self, key: str) -> KeyEntry | None:
        """The entry of a key, that with the greatest role; None when it is none of ours.

        Every entry is compared, each in constant time, so that the time taken reveals nothing.
        """
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        found: KeyEntry | None = None
        for entry in self.entries:
            same = hmac.compare_digest(digest, entry.digest)
            if same and (found is None or entry.role > found.role):
                found = entry
        return found
