"""Which role a route requires, declared at the route and readable from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.requests import Request  # noqa: TC002 - FastAPI reads the annotation

from api.problems import Refusal
from collector.keys import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import APIRouter


@dataclass(frozen=True, slots=True)
class Requires:
    """A dependency that lets only this role and greater ones pass."""

    role: Role

    def __call__(self, request: Request) -> None:
        held: Role = request.scope.get("role", Role.ANYONE)
        if held < self.role:
            raise Refusal(
                403, "forbidden", f"this needs the role {self.role.word}, the key has {held.word}"
            )


ANYONE = Depends(Requires(Role.ANYONE))
VIEWER = Depends(Requires(Role.VIEWER))
OPERATOR = Depends(Requires(Role.OPERATOR))
ADMIN = Depends(Requires(Role.ADMIN))


@dataclass(frozen=True, slots=True, order=True)
class Guarded:
    """One method of one path, and the role it requires."""

    path: str
    method: str
    role: Role


def guarded_routes(routers: Iterable[APIRouter]) -> tuple[Guarded, ...]:
    """Every route with its role. A route that names none, or two, is a defect: RuntimeError."""
    found = []
    for router in routers:
        for route in router.routes:
            if not isinstance(route, APIRoute):
                raise RuntimeError(f"{route!r} is a route without a role")
            roles = [
                dependency.dependency.role
                for dependency in route.dependencies
                if isinstance(dependency.dependency, Requires)
            ]
            if len(roles) != 1:
                raise RuntimeError(f"{route.path} must name exactly one role")
            found += [Guarded(route.path, method, roles[0]) for method in route.methods or ()]
    return tuple(sorted(found))
