"""Whose session it is: the user, where the password lies, and which server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import ConfigError
from collector.exchanges.fxcm.client import FxcmLogin
from collector.exchanges.fxcm.settings import FxcmSettings

if TYPE_CHECKING:
    from collector.exchanges.provider import Access


def settings_of(access: Access) -> FxcmSettings:
    """The section `fxcm`; its defaults where there is none."""
    return access.section if isinstance(access.section, FxcmSettings) else FxcmSettings()


def account_of(access: Access) -> FxcmLogin:
    """ConfigError names what is not set. Reads the password every time, as it may change."""
    settings = settings_of(access)
    if not settings.user:
        raise ConfigError("fxcm: no user is set (fxcm.user or COLLECTOR_FXCM__USER)")
    url = access.urls.get("fxcm") or settings.url
    return FxcmLogin(settings.user, settings.password(access.home), url, settings.connection)
