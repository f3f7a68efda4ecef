"""The connection to the stand-in server: one socket, JSON lines, and the native thread that reads.

Requests are sent from any thread, which waits without the interpreter's lock as native code does.
"""

import itertools
import json
import socket
import threading
from urllib.parse import urlsplit


class Line:
    """`heard` is called on the native thread, once for every message, and with None at the end."""

    def __init__(self, heard):
        self._heard = heard
        self._socket = None
        self._sending = threading.Lock()
        self._numbers = itertools.count(1)
        self._answers = {}
        self._asked = {}

    def connect(self, url):
        """Raises OSError where no process listens."""
        address = urlsplit(url if "//" in url else "//" + url)
        self._socket = socket.create_connection((address.hostname, address.port or 80))

    def read(self):
        """The native thread's life, from the connection to its end."""
        with self._socket, self._socket.makefile("r", encoding="utf-8") as lines:
            try:
                for text in lines:
                    self._take(json.loads(text))
            except (OSError, ValueError):
                pass
        self._heard(None)
        for asked in list(self._asked.values()):
            asked.set()

    def tell(self, **message):
        try:
            with self._sending:
                self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass

    def ask(self, **message):
        """The server's answer; None when the connection ends first. May wait for ever."""
        number = next(self._numbers)
        asked = self._asked[number] = threading.Event()
        self.tell(number=number, **message)
        asked.wait()
        del self._asked[number]
        return self._answers.pop(number, None)

    def _take(self, message):
        if message["say"] != "answer":
            self._heard(message)
        elif message["number"] in self._asked:
            self._answers[message["number"]] = message
            self._asked[message["number"]].set()
