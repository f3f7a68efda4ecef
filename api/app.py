"""The application: routes, problems and the layers every request passes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware import Middleware

from api import problems
from api.dashboard.files import dashboard_files
from api.dashboard.pages import DashboardPages
from api.middleware.authentication import Authentication, WrongKeys
from api.middleware.body_limit import BodyLimit
from api.middleware.form_refusal import FormRefusal
from api.middleware.head import Head
from api.middleware.origin import Origin
from api.middleware.trace import Trace
from api.openapi import document
from api.roles import Guarded, guarded_routes
from api.routes import ROUTERS
from collector.keys import ApiKeys, Role
from collector.listening import LOOPBACK_NAMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi.routing import APIRoute

    from api.deps import Services


@dataclass(frozen=True, slots=True)
class Door:
    """Who may come in."""

    keys: ApiKeys = field(default_factory=ApiKeys)
    names: frozenset[str] | None = LOOPBACK_NAMES
    """Host names the server answers to; None for any."""
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)


def all_routes() -> tuple[Guarded, ...]:
    """Every method of every path with the role it requires."""
    return guarded_routes(ROUTERS)


def create_app(services: Services, door: Door) -> FastAPI:
    """The whole application. A route without a role does not start."""
    routes = all_routes()
    open_paths = frozenset(each.path for each in routes if each.role is Role.ANYONE)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with services.feed.running():
            yield
        await services.desk.close()

    app = FastAPI(
        title="Collector",
        openapi_url=None,  # Our own route serves it, behind a role like any other.
        docs_url=None,  # Its page loads scripts from other hosts.
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        lifespan=lifespan,
        middleware=[
            Middleware(Trace),
            Middleware(Origin, names=door.names),
            Middleware(FormRefusal),
            Middleware(DashboardPages, files=dashboard_files()),
            Middleware(
                Authentication,
                keys=door.keys,
                open_paths=open_paths,
                wrong_keys=door.wrong_keys,
            ),
            Middleware(BodyLimit),
            Middleware(Head),
        ],
    )
    app.state.services = services
    problems.install(app, _methods(routes))
    for router in ROUTERS:
        app.include_router(router)
    app.openapi = _Described(app, routes, with_keys=bool(door.keys))  # type: ignore[method-assign]
    return app


class _Described:
    """The OpenAPI document, made on first use."""

    def __init__(self, app: FastAPI, routes: tuple[Guarded, ...], *, with_keys: bool) -> None:
        self._app = app
        self._routes = routes
        self._with_keys = with_keys
        self._made: dict[str, Any] | None = None

    def __call__(self) -> dict[str, Any]:
        if self._made is None:
            self._made = document(self._app, self._routes, with_keys=self._with_keys)
        return self._made


def _methods(routes: tuple[Guarded, ...]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for route in routes:
        found.setdefault(route.path, set()).add(route.method)
        if route.method == "GET":
            found[route.path].add("HEAD")
    return found


def _operation_id(route: APIRoute) -> str:
    return route.name
