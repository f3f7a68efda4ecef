"""Exchange keys by reference: `secret://bybit/prod/read_key` is all that settings ever hold.

A reference is looked up before every run of a job, so that a key can be replaced: in the
environment, under COLLECTOR_SECRET_ and its parts in capitals
(COLLECTOR_SECRET_BYBIT_PROD_READ_KEY), else in the file
`secrets/bybit/prod/read_key` of the home, which only its owner may read. In a container
COLLECTOR_SECRETS_DIR names the folder where such files are mounted instead. The content is
`key:secret`, or `key:secret:password` where the exchange needs one. It goes from here into the
adapter and nowhere else: no repr, message, log line or document shows it.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEME = "secret://"
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ENVIRONMENT = re.compile(r"\{\{\s*env\s*\}\}")
_READABLE_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Credentials:
    """An exchange's key. Its repr shows nothing of it."""

    key: str = field(repr=False)
    secret: str = field(repr=False)
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, reference: str, text: str) -> Credentials:
        """Reads `key:secret[:password]`. ConfigError names the reference, never the text."""
        parts = text.strip().split(":", 2)
        if len(parts) < 2 or not all(parts):
            raise ConfigError(f"{reference} must hold key:secret or key:secret:password")
        return cls(*parts)


@dataclass(frozen=True, slots=True)
class Keyring:
    """Which exchange has which reference, and where references are looked up."""

    references: Mapping[str, str] = field(default_factory=dict)
    home: Path = Path()

    def credentials(self, exchange_id: str) -> Credentials | None:
        """The exchange's key, None when it has none. ConfigError when its reference cannot be
        resolved.

        Reads the environment or a file, every time: a key may be replaced while we run.
        """
        reference = self.references.get(exchange_id)
        if reference is None:
            return None
        return Credentials.parse(reference, resolve(reference, self.home, os.environ))


def checked_reference(reference: str) -> str:
    """`reference` as it is. Raises ValueError when it is none, without repeating it."""
    parts = _ENVIRONMENT.sub("env", reference).removeprefix(SCHEME).split("/")
    if not reference.startswith(SCHEME) or not all(map(_PART.fullmatch, parts)):
        # It may be the key itself, put in the wrong place.
        raise ValueError("this must be a reference such as secret://bybit/prod/read_key")
    return reference


def resolve(reference: str, home: Path, environment: Mapping[str, str]) -> str:
    """The text that a reference stands for; `{{ env }}` in it is COLLECTOR_ENV."""
    parts = _parts(reference, environment)
    name = "COLLECTOR_SECRET_" + re.sub(r"\W", "_", "_".join(parts).replace("-", "_")).upper()
    if text := environment.get(name):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{reference}: {name} is not UTF-8") from None
        return text
    mounted = environment.get("COLLECTOR_SECRETS_DIR")
    path = (Path(mounted) if mounted else home / "secrets").joinpath(*parts)
    try:
        with path.open(encoding="utf-8") as file:
            # Docker and Kubernetes mount secrets readable by all, and a container has one user, so
            # the mode does not matter there.
            if not mounted and os.fstat(file.fileno()).st_mode & _READABLE_BY_OTHERS:
                raise ConfigError(f"{path} may be read by others: chmod 600 it")
            return file.read()
    except FileNotFoundError:
        raise ConfigError(f"{reference}: neither {name} nor {path} is there") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{reference}: {path} cannot be read: {type(error).__name__}") from None


def _parts(reference: str, environment: Mapping[str, str]) -> list[str]:
    try:
        checked_reference(reference)
        if _ENVIRONMENT.search(reference):
            chosen = environment.get("COLLECTOR_ENV", "")
            if not _PART.fullmatch(chosen):
                raise ConfigError(f"{reference}: COLLECTOR_ENV must name the env")
            reference = checked_reference(_ENVIRONMENT.sub(chosen, reference))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return reference.removeprefix(SCHEME).split("/")
