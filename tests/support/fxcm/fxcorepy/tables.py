"""The table of offers, kept up to date by the server, and those who listen to it."""

from datetime import datetime, timedelta

from . import truth
from .boost import made_in_cpp, wrong_arguments
from .enums import O2GTableManagerStatus, O2GTableStatus, O2GTableType, O2GTableUpdateType
from .listeners import AO2GTableListener, call

_EPOCH = datetime(1970, 1, 1)
_BURST_ROWS = 1000
FIELDS = (
    "offer_id",
    "instrument",
    "bid",
    "ask",
    "high",
    "low",
    "volume",
    "time",
    "digits",
    "point_size",
    "subscription_status",
    "trading_status",
)


class O2GRow:
    """One offer at one moment."""

    __slots__ = FIELDS

    def __init__(self, *values):
        for field, value in zip(FIELDS, values):
            setattr(self, field, value)

    def changed(self, **fields):
        return O2GRow(*(fields.get(field, getattr(self, field)) for field in FIELDS))


def whole_seconds(ms):
    """The SDK's times have no parts of a second."""
    return _EPOCH + timedelta(seconds=ms // 1000)


def first_row(name):
    instrument = truth.INSTRUMENTS[name]
    bid, ask = truth.price(name, 0), truth.ask(name, 0)
    return O2GRow(
        instrument.offer_id,
        name,
        bid,
        ask,
        bid,
        bid,
        0,
        whole_seconds(0),
        instrument.digits,
        instrument.point_size,
        "T",
        "O",
    )


class O2GTableManager:
    def __init__(self):
        self.status = O2GTableManagerStatus.TABLES_LOADING
        self.offers = O2GTable()

    def get_table(self, table_type):
        return self.offers if table_type == O2GTableType.OFFERS else None


class O2GTable:
    def __init__(self):
        self.status = O2GTableStatus.INITIAL
        self._rows = {name: first_row(name) for name in truth.INSTRUMENTS}
        self._listeners = {number: [] for number in O2GTableUpdateType.values}
        self._status_listeners = []
        self._deaf = []

    def __iter__(self):
        return iter(list(self._rows.values()))

    def __len__(self):
        return len(self._rows)

    def subscribe_update(self, kind, listener):
        if not made_in_cpp(listener, AO2GTableListener):
            raise wrong_arguments(
                "subscribe_update",
                (self, kind, listener),
                "subscribe_update(IO2GTable*, O2GTableUpdateType,"
                " boost::shared_ptr<fxcore2::python::O2GTableListenerImpl>)",
            )
        self._listeners[int(kind)].append(listener)

    def unsubscribe_update(self, kind, listener):
        self._listeners[int(kind)].remove(listener)

    def subscribe_status(self, listener):
        self._status_listeners.append(listener)

    def unsubscribe_status(self, listener):
        self._status_listeners.remove(listener)

    def set_status(self, name):
        self.status = O2GTableStatus.names[name]
        for listener in list(self._status_listeners):
            call(listener.on_status_changed, self.status)

    def disconnect(self):
        """The connection is lost: who listens now hears nothing any more."""
        self._deaf = [each for listeners in self._listeners.values() for each in listeners]

    def tick(self, message):
        """A price from the server."""
        row = self._rows[message["instrument"]]
        fields = {name: message[name] for name in ("bid", "ask", "high", "low", "volume")}
        self._put(row.changed(time=whole_seconds(message["time_ms"]), **fields))

    def burst(self, message):
        """Many prices in a row, each different from the one before."""
        names = message["instruments"]
        rows = []  # made beforehand, so that prices come as fast as they are taken
        for number in range(min(message["count"], _BURST_ROWS)):
            row = self._rows[names[number % len(names)]]
            at = whole_seconds(message["time_ms"] + number)
            rows.append(row.changed(bid=1.0 + number, ask=2.0 + number, volume=number, time=at))
        for number in range(message["count"]):
            self._put(rows[number % len(rows)])

    def _put(self, row):
        self._rows[row.instrument] = row
        for listener in list(self._listeners[int(O2GTableUpdateType.UPDATE)]):
            if listener not in self._deaf:
                call(listener.on_changed, row.offer_id, row)
