"""`/api/v1/me`: who is asking, and what they may do."""

from fastapi import APIRouter
from starlette.requests import Request

from api.roles import VIEWER
from api.schemas.me import MeView
from collector.version import __version__

router = APIRouter(prefix="/api/v1/me", tags=["process"])


@router.get("", summary="Show the role of this key", dependencies=[VIEWER])
async def show_me(request: Request) -> MeView:
    """Without configured keys everyone is an admin, and `key` is null."""
    return MeView.of(request.scope["role"], request.scope.get("key_name"), __version__)
