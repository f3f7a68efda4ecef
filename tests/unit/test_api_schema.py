"""The OpenAPI document explains everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastapi import FastAPI

from api.app import all_routes
from api.openapi import document
from api.routes import ROUTERS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    app = FastAPI()
    for router in ROUTERS:
        app.include_router(router)
    return document(app, all_routes(), with_keys=True)


def undescribed(node: Any, at: str) -> Iterator[str]:
    """Every property below a node that has no description, by its path."""
    if isinstance(node, list):
        for number, each in enumerate(node):
            yield from undescribed(each, f"{at}/{number}")
    if not isinstance(node, dict):
        return
    properties = node.get("properties")
    if isinstance(properties, dict) and "example" not in at:
        for name, value in properties.items():
            if not value.get("description"):
                yield f"{at}.{name}"
    for name, value in node.items():
        yield from undescribed(value, f"{at}/{name}")


def test_every_property_has_a_description(schema: dict[str, Any]) -> None:
    assert list(undescribed(schema["components"]["schemas"], "")) == []
    assert list(undescribed(schema["paths"], "")) == []


def test_the_walk_finds_a_property_without_one() -> None:
    bad = {"A": {"properties": {"x": {"description": "told"}, "y": {"type": "string"}}}}
    assert list(undescribed(bad, "")) == ["/A.y"]


def test_every_parameter_has_a_description(schema: dict[str, Any]) -> None:
    untold = [
        f"{method} {path} {parameter['name']}"
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        for parameter in operation.get("parameters", ())
        if not (parameter.get("description") or parameter["schema"].get("description"))
    ]
    assert untold == []


def test_every_operation_has_a_summary_and_a_tag_that_is_explained(schema: dict[str, Any]) -> None:
    explained = {tag["name"] for tag in schema["tags"]}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], f"{method} {path}"
            assert set(operation["tags"]) <= explained, f"{method} {path}"
