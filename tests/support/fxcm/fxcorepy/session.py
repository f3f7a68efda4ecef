"""A session with the server: its statuses, and what the server makes it do."""

import ctypes
import os
import subprocess
import threading
import time

from .boost import made_in_cpp, wrong_arguments
from .enums import O2GSessionStatus, O2GTableManagerMode, O2GTableManagerStatus
from .line import Line
from .listeners import AO2GResponseListener, AO2GSessionStatus, AO2GTableManagerListener, call
from .orders import O2GRequestFactory, O2GResponseReaderFactory
from .tables import O2GTableManager

_REFUSED = (
    "ORA-499: Unable to obtain station descriptor. HTTP request failed"
    " object='/Hosts.jsp?ID={}&PN={}&SN=ForexConnect&MV=5&LN={}&AT=PLAIN' errorCode=7"
)


class O2GTransport:
    @staticmethod
    def create_session():
        return O2GSession()

    @staticmethod
    def set_transport_modules_path(path):
        pass

    @staticmethod
    def finalize_wrapper():
        pass


class O2GSession:
    def __init__(self):
        self.session_status = O2GSessionStatus.DISCONNECTED
        self.table_manager = None
        self.request_factory = None
        self.response_reader_factory = None
        self.login_rules = None
        self.line = Line(self._heard)
        self.ready_after = 0
        self._status_listener = None
        self._tables_listener = None
        self._response_listener = None
        self._leaving = False

    def subscribe_session_status(self, listener):
        if not made_in_cpp(listener, AO2GSessionStatus):
            raise wrong_arguments(
                "subscribe_session_status",
                (self, listener),
                "subscribe_session_status(IO2GSession*,"
                " boost::shared_ptr<fxcore2::python::O2GSessionStatusImpl>)",
            )
        self._status_listener = listener

    def unsubscribe_session_status(self, listener):
        self._status_listener = None

    def use_table_manager(self, mode, listener):
        if not made_in_cpp(listener, AO2GTableManagerListener):
            raise wrong_arguments(
                "use_table_manager",
                (self, mode, listener),
                "use_table_manager(IO2GSession*, O2GTableManagerMode,"
                " boost::shared_ptr<fxcore2::python::O2GTableManagerListenerImpl>)",
            )
        if mode == O2GTableManagerMode.YES:
            self._tables_listener = listener

    def subscribe_response(self, listener):
        assert made_in_cpp(listener, AO2GResponseListener)
        self._response_listener = listener

    def unsubscribe_response(self, listener):
        self._response_listener = None

    def login(self, user, password, url, connection):
        for each in (user, password, url, connection):
            assert isinstance(each, str)
        # The first status comes on the thread that logs in, all others on a native one.
        self._set_status(O2GSessionStatus.CONNECTING)
        arguments = (user, password, url, connection)
        threading.Thread(target=self._connect, args=arguments, daemon=True).start()
        return True

    def logout(self):
        self._leaving = True
        self._set_status(O2GSessionStatus.DISCONNECTING)
        self.line.tell(op="logout")

    def _connect(self, user, password, url, connection):
        try:
            self.line.connect(url)
        except OSError:
            self._fail(_REFUSED.format(int(time.time() * 1000), connection, user))
            return
        self.line.tell(
            op="login", user=user, password=password, connection=connection, pid=os.getpid()
        )
        self.line.read()

    def _fail(self, text):
        if self._status_listener is not None:
            call(self._status_listener.on_login_failed, text)
        self._set_status(O2GSessionStatus.DISCONNECTED)

    def _set_status(self, status):
        self.session_status = status
        if self._status_listener is not None:
            call(self._status_listener.on_session_status_changed, status)

    def _heard(self, message):
        if message is None:
            if not self._leaving and self.session_status != O2GSessionStatus.DISCONNECTED:
                self._set_status(O2GSessionStatus.SESSION_LOST)
            return
        getattr(self, "_on_" + message["say"])(message)

    def _on_refused(self, message):
        self._leaving = True
        self._fail(message["text"])

    def _on_status(self, message):
        status = O2GSessionStatus.names[message["status"]]
        if status == O2GSessionStatus.RECONNECTING:
            self.table_manager.offers.disconnect()
        if status == O2GSessionStatus.CONNECTED and self.table_manager is None:
            self.ready_after = message["ready_after"]
            self.request_factory = O2GRequestFactory()
            self.response_reader_factory = O2GResponseReaderFactory()
            self.table_manager = O2GTableManager()
        self._set_status(status)

    def _on_tables(self, message):
        status = O2GTableManagerStatus.names[message["status"]]
        self.table_manager.status = status
        if self._tables_listener is not None:
            call(self._tables_listener.on_status_changed, status, self.table_manager)

    def _on_deafen(self, message):
        self.table_manager.offers.disconnect()
        self.line.tell(op="deafened")

    def _on_bye(self, message):
        self._set_status(O2GSessionStatus.DISCONNECTED)

    def _on_tick(self, message):
        self.table_manager.offers.tick(message)

    def _on_burst(self, message):
        # Prices come on a thread of their own, so that answers are not held up by them.
        threading.Thread(target=self._burst, args=(message,), daemon=True).start()

    def _burst(self, message):
        self.table_manager.offers.burst(message)
        self.line.tell(op="burst_done")

    def _on_spawn(self, message):
        child = subprocess.Popen(["sleep", "3600"])
        self.line.tell(op="spawned", child=child.pid)

    def _on_table_status(self, message):
        self.table_manager.offers.set_status(message["status"])

    def _on_print(self, message):
        os.write(1, message["text"].encode())

    def _on_abort(self, message):
        os.abort()

    def _on_freeze(self, message):
        # Native code that hangs with the interpreter's lock held: no Python code runs any more.
        ctypes.PyDLL(None).sleep(3600)
