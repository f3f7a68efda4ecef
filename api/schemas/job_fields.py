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

_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*")


def _plain_value(value: object) -> object:
    """A value that JSON and BSON both hold exactly."""
    fits = isinstance(value, bool | None) or (
        (isinstance(value, int | float) and -(2**63) <= value < 2**63)
        or (isinstance(value, str) and len(value) <= 1000 and _TEXT.fullmatch(value))
    )
    if not fits:
        raise ValueError("must be a flag, a number of 64 bits, a short line of text or null")
    return value


ParamValue = Annotated[
    Any,
    AfterValidator(_plain_value),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "boolean"},
                {"type": "number", "minimum": -(2**63), "exclusiveMaximum": 2**63},
                {"type": "string", "maxLength": 1000, "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"},
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
