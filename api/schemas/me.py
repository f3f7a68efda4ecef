"""The caller as an answer shows it."""

from typing import Literal, Self

from pydantic import BaseModel, Field

from collector.keys import Role


class MeView(BaseModel):
    """What the key of this request allows."""

    role: Literal["viewer", "operator", "admin"] = Field(description="What the key allows")
    key: str | None = Field(description="The key's name; null when no keys are configured")
    version: str = Field(description="Of the program that answers")

    @classmethod
    def of(cls, role: Role, key: str | None, version: str) -> Self:
        return cls.model_validate({"role": role.word, "key": key, "version": version})
