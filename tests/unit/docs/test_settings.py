"""Every setting, against collector.example.yaml."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from typing import Any

import yaml
from pydantic import BaseModel

from collector.settings import Settings
from tests.unit.docs.pages import ROOT

TEXT = (ROOT / "collector.example.yaml").read_text("utf-8")


def shown() -> Any:
    """The whole file, with what is switched off switched on; explanations have two hashes."""
    return yaml.safe_load(re.sub(r"^(\s*)#(?!#)", r"\1", TEXT, flags=re.M))


def keys(given: Any, model: Any, at: str = "") -> set[str]:
    """The settings that are named, by their path; an entry of a map or a list is `*`."""
    found: set[str] = set()
    for name, kind in fields(model).items():
        if name in given:
            path = f"{at}{name}"
            found.add(path)
            found |= inside(given[name], kind, path)
    return found | {f"{at}{name}" for name in given if name not in fields(model)}


def inside(value: Any, kind: Any, path: str) -> set[str]:
    for section in sections(kind):
        if isinstance(value, list):
            return set().union(*(keys(each, section, f"{path}.*.") for each in value))
        if isinstance(value, dict) and typing.get_origin(plain(kind)) is dict:
            return set().union(*(keys(each, section, f"{path}.*.") for each in value.values()))
        if isinstance(value, dict):
            return keys(value, section, f"{path}.")
    return set()


def every(model: Any, at: str = "") -> set[str]:
    found: set[str] = set()
    for name, kind in fields(model).items():
        path = f"{at}{name}"
        found.add(path)
        many = typing.get_origin(plain(kind)) in (dict, list)
        for section in sections(kind):
            found |= every(section, f"{path}.*." if many else f"{path}.")
    return found


def fields(model: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(model):
        return typing.get_type_hints(model)
    return {name: field.annotation for name, field in model.model_fields.items()}


def plain(kind: Any) -> Any:
    """Without the None of an optional one; of a text or a list, the list, which comes last."""
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        *_, kind = [each for each in typing.get_args(kind) if each is not type(None)]
    return kind


def sections(kind: Any) -> list[Any]:
    kind = plain(kind)
    inner = typing.get_args(kind)[-1:] if typing.get_origin(kind) in (dict, list) else [kind]
    return [
        each
        for each in inner
        if isinstance(each, type)
        and (issubclass(each, BaseModel) or dataclasses.is_dataclass(each))
    ]


def test_every_setting_is_in_the_example_and_nothing_else() -> None:
    assert keys(shown(), Settings) == every(Settings)
