"""The classes that the SDK's Python derives from, to be called by native threads."""

import sys
import traceback

from .boost import NativeListener
from .enums import O2GSessionStatus


class AO2GSessionStatus(NativeListener):
    O2GSessionStatus = O2GSessionStatus


class AO2GTableManagerListener(NativeListener):
    pass


class AO2GTableListener(NativeListener):
    pass


class AO2GResponseListener(NativeListener):
    pass


class AO2GEachRowListener(NativeListener):
    pass


def call(method, *arguments):
    """As a native thread calls: an exception is printed and swallowed."""
    try:
        method(*arguments)
    except Exception:  # noqa: BLE001 - whatever it is
        print("Exception Traceback (most recent call last):", file=sys.stderr)
        traceback.print_exc(file=sys.stderr)
