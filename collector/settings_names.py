"""Names that no setting has: a key of the file, or a name in the environment; with near matches."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from collector.market.near import did_you_mean, near

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX = "COLLECTOR_"
NOT_SETTINGS = (
    "CAPTURES",
    "CHAOS",
    "COMMIT",
    "DEBUG",
    "ENV",
    "FXCM_PYTHON",
    "MONGOD",
    "SECRETS_DIR",
)
"""Names after the prefix that other parts read: secrets, the build's commit, suites of tests."""
_SECRET = "SECRET_"
_SERVICE_LINK = re.compile(r".+_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_.+)?)")
"""What Kubernetes adds for every service; one called `collector-api` begins like a setting."""


def unknown_key(settings: type[BaseModel], place: Sequence[str | int]) -> str:
    """The complaint about a key that its section does not have."""
    *section, key = place
    hint = did_you_mean(str(key), _keys(settings, section))
    return f"{'.'.join(map(str, place))}: there is no such setting{hint}"


def unknown_variables(settings: type[BaseModel], environment: Mapping[str, str]) -> list[str]:
    """Complaints about names in the environment that look like settings and are none."""
    known = {each.upper() for each in settings.model_fields}
    on_kubernetes = "KUBERNETES_SERVICE_HOST" in environment
    found: list[str] = []
    for name in sorted(environment):
        own = name.upper().removeprefix(PREFIX)
        if own == name.upper() or own in NOT_SETTINGS or own.startswith(_SECRET):
            continue
        if on_kubernetes and _SERVICE_LINK.fullmatch(own):
            continue
        section, _, rest = own.partition("__")
        if section not in known:
            end = f"__{rest}" if rest else ""
            like = [f"{PREFIX}{each}{end}" for each in near(section, (*known, *NOT_SETTINGS))]
            hint = f"; did you mean {' or '.join(like)}?" if like else ""
            found.append(f"{name}: there is no such setting{hint}")
    return found


def _keys(settings: type[BaseModel], section: Sequence[str | int]) -> list[str]:
    """The keys that a section may have; none when it cannot be found."""
    found: Any = settings
    for part in section:
        if isinstance(part, int) or found is None:
            continue
        annotation = _annotations(found).get(part)
        # A part that is no field is the name of an exchange: the section is the one below.
        found = found if annotation is None else next(_sections(annotation), None)
    return [] if found is None else list(_annotations(found))


def _annotations(section: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(section):
        return {each.name: each.type for each in dataclasses.fields(section)}
    return {name: each.annotation for name, each in section.model_fields.items()}


def _sections(annotation: Any) -> Iterator[Any]:
    """The sections inside `X | None`, `list[X]` and `dict[str, X]`."""
    if dataclasses.is_dataclass(annotation) or (
        isinstance(annotation, type) and issubclass(annotation, BaseModel)
    ):
        yield annotation
    for each in get_args(annotation):
        yield from _sections(each)
