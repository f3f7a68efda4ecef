"""`/api/v1/troubles`: what is wrong now."""

from fastapi import APIRouter

from api.deps import Parts
from api.roles import VIEWER
from api.schemas.troubles import TroublePage
from collector.operations.trouble_facts import troubles_now

router = APIRouter(prefix="/api/v1/troubles", tags=["troubles"])


@router.get("", summary="List what is wrong now", dependencies=[VIEWER])
async def list_troubles(parts: Parts) -> TroublePage:
    """The most urgent first; empty when all is well. Answers without MongoDB as well: then that is
    the trouble.
    """
    return TroublePage.of(await troubles_now(parts.database))
