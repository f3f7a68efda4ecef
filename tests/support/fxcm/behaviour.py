"""Prints how the SDK in this interpreter behaves without an account, as one JSON object.

Runs by path on any Python. The real SDK and the stand-in have to print the same.
"""

import json
import os
import re
import sys
import threading
from datetime import datetime, timedelta, timezone
from operator import attrgetter

NOBODY_LISTENS = "http://127.0.0.1:1/Hosts.jsp"
ENUMERATIONS = (
    *("AO2GSessionStatus.O2GSessionStatus", "O2GTableManagerStatus", "O2GTableStatus"),
    "O2GTableType",
    *("O2GTableUpdateType", "O2GTableManagerMode", "O2GCandleOpenPriceMode", "O2GTimeFrameUnit"),
    *("O2GResponseType", "O2GRequestParamsEnum"),
)
TIMEFRAMES = (
    *("t1", "m1", "m2", "m3", "m4", "m5", "m10", "m15", "m30"),
    *("H1", "H2", "H3", "H4", "H6", "H8", "H12", "D1", "D2", "W1", "M1"),
    *("m7", "H5", "1m", "m0", "x1", ""),
)
# What differs from run to run: addresses in memory, and the number of a request.
VARYING = re.compile(r"0x[0-9a-f]+|ID=\d+")


def error_of(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises
        return [type(error).__name__, VARYING.sub("*", str(error))]
    return None


def enumerations(core):
    found = {}
    for name in ENUMERATIONS:
        kind = attrgetter(name)(core)
        found[name] = {
            str(member): [int(member), repr(member), isinstance(member, int)]
            for member in kind.values.values()
        }
    return found


def constants(core):
    names = ("DISABLE", "TRADABLE", "VIEW_ONLY")
    return [core.Constants.Commands.SET_SUBSCRIPTION_STATUS] + [
        getattr(core.Constants.SubscriptionStatuses, name) for name in names
    ]


def listeners(core):
    """What happens when a listener's `__init__` was not called."""

    class Session(core.AO2GSessionStatus):
        def __init__(self):
            pass

    class Tables(core.AO2GTableManagerListener):
        def __init__(self):
            pass

    session = core.O2GTransport.create_session()
    return [
        error_of(session.subscribe_session_status, Session()),
        error_of(session.use_table_manager, core.O2GTableManagerMode.YES, Tables()),
    ]


def history(core):
    factory = core.PriceHistoryCommunicatorFactory
    session = core.O2GTransport.create_session()
    com = factory.create_communicator(session, "./History")
    frame = com.timeframe_factory.create("m5")
    east = timezone(timedelta(hours=9))
    begin = datetime(2024, 1, 17, 12, 0, 0, 999999, tzinfo=east)
    request = com.create_request("EUR/USD", frame, begin, None, -1)
    return {
        "is_ready": [callable(com.is_ready), com.is_ready()],
        "frame": [frame.id, frame.size, str(frame.unit), frame.query_depth],
        "dates": [str(request.from_date), str(request.to_date), request.quotes_Count],
        "mode": str(com.candle_open_price_mode),
        "no session": error_of(factory.create_communicator, None, "./History"),
        "no timeframe": error_of(com.timeframe_factory.create, "m7"),
        "no instrument": error_of(com.create_request, "", frame, begin, None, -1),
        "not ready": error_of(com.get_history, "EUR/USD", frame, begin, None, -1),
        "folder": os.path.isdir("./History"),
    }


def timeframes(core):
    """Which of these the SDK knows."""
    session = core.O2GTransport.create_session()
    com = core.PriceHistoryCommunicatorFactory.create_communicator(session, "./History")
    return {name: error_of(com.timeframe_factory.create, name) for name in TIMEFRAMES}


def refused_login(sdk):
    statuses = []

    def heard(_session, status):
        here = threading.current_thread() is threading.main_thread()
        statuses.append([str(status), int(status), "ours" if here else "native"])

    connect = sdk.ForexConnect()
    error = error_of(connect.login, "nobody", "nothing", NOBODY_LISTENS, "Demo", None, None, heard)
    return {"error": error, "statuses": statuses, "logout": error_of(connect.logout)}


def main():
    out = os.dup(1)
    os.dup2(2, 1)  # the SDK prints
    import forexconnect as sdk

    core = sdk.fxcorepy
    behaviour = {
        "enumerations": enumerations(core),
        "constants": constants(core),
        "listeners": listeners(core),
        "history": history(core),
        "timeframes": timeframes(core),
        "refused login": refused_login(sdk),
    }
    os.write(out, json.dumps(behaviour).encode())
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
