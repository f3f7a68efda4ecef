"""Kinds of values that requests for jobs have: their type, params and priority."""

import re
from dataclasses import fields
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.schemas.fields import WHOLE
from collector.jobs import types
from collector.jobs.params import Params as JobParams


def _known_type(name: str) -> str:
    known = [each.name for each in types.for_exchanges()]
    if name not in known:
        raise PydanticCustomError(
            "unknown_type", "must be one of {known}", {"known": ", ".join(known)}
        )
    return name


JobTypeName = Annotated[
    str,
    AfterValidator(_known_type),
    WithJsonSchema(
        {
            "type": "string",
            "enum": [each.name for each in types.for_exchanges()],
            "description": "\n".join(
                f"- `{each.name}` {each.does}" for each in types.for_exchanges()
            ),
        }
    ),
]

ParamName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]

MOST_LISTED = 1000
LONGEST_NAME = 100

_LINE = r"^[^\x00-\x1f\x7f-\x9f]*$"
_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*")


def _plain_value(value: object) -> object:
    """A value that JSON and BSON both hold exactly."""
    fits = isinstance(value, bool | None) or (
        (isinstance(value, int | float) and -(2**63) <= value < 2**63)
        or _is_line(value, 1000)
        or (isinstance(value, list) and len(value) <= MOST_LISTED and all(map(_is_name, value)))
    )
    if not fits:
        raise ValueError(
            "must be a flag, a number of 64 bits, a short line of text, a list of names or null"
        )
    return value


def _is_line(value: object, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and bool(_TEXT.fullmatch(value))


def _is_name(value: object) -> bool:
    return _is_line(value, LONGEST_NAME)


ParamValue = Annotated[
    Any,
    AfterValidator(_plain_value),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "boolean"},
                {"type": "number", "minimum": -(2**63), "exclusiveMaximum": 2**63},
                {"type": "string", "maxLength": 1000, "pattern": _LINE},
                {
                    "type": "array",
                    "maxItems": MOST_LISTED,
                    "items": {"type": "string", "maxLength": LONGEST_NAME, "pattern": _LINE},
                    "description": "For parameters that are lists",
                },
                {"type": "null"},
            ]
        }
    ),
]
Params = Annotated[
    dict[ParamName, ParamValue],
    Field(
        max_length=50,
        description="What the type understands, and short notes of your own",
        json_schema_extra={"additionalProperties": False},
    ),
]
Priority = Annotated[int, Field(ge=0, le=1000, description="Lower goes first"), WHOLE]


def param_words() -> str:
    """The parameters of each type, from the table of types."""
    lines = ["What the type understands, and short notes of your own."]
    for row in types.for_exchanges():
        own = [each for each in fields(row.params) if each.name != "priority"]
        lines += [f"- `{each.name}` of {row.name}: {each.metadata['description']}" for each in own]
    [common] = fields(JobParams)
    return "\n".join([*lines, f"- `{common.name}` of any: {common.metadata['description']}"])
