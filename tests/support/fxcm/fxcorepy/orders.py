"""Requests other than history, as far as a subscription needs them."""

import itertools

_NUMBERS = itertools.count(1)


class ValueMap:
    def __init__(self):
        self.fields = {}

    def set_string(self, name, value):
        self.fields[str(name)] = value


class O2GRequest:
    def __init__(self, fields):
        self.fields = fields
        self.request_id = f"request-{next(_NUMBERS)}"

    def __len__(self):
        return 0  # no children


class O2GRequestFactory:
    last_error = ""

    def create_value_map(self):
        return ValueMap()

    def create_order_request(self, value_map):
        return O2GRequest(value_map.fields)


class O2GResponse:
    def __init__(self, request_id):
        self.request_id = request_id


class O2GResponseReaderFactory:
    def create_reader(self, response):
        return True
