"""What Boost.Python makes of C++ enumerations, classes and arguments of the wrong kind."""

MODULE = "forexconnect.lib.fxcorepy"


class BoostEnum(int):
    """An int that prints its bare name, and may be derived from."""

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"{MODULE}.{self.enum_name}.{self.name}"


def enumeration(enum_name, **members):
    made = type(enum_name, (BoostEnum,), {"enum_name": enum_name, "__module__": MODULE})
    made.names, made.values = {}, {}
    for name, number in members.items():
        member = made(number)
        member.name = name
        setattr(made, name, member)
        made.names[name] = member
        made.values[number] = member
    return made


ArgumentError = type("ArgumentError", (TypeError,), {"__module__": "Boost.Python"})


def wrong_arguments(method, given, signature):
    """Boost's complaint: what it was given, and what it takes."""
    return ArgumentError(
        "Python argument types in\n    None.{}({})\ndid not match C++ signature:\n    {}".format(
            method, ", ".join(type(each).__name__ for each in given), signature
        )
    )


class NativeListener:
    """A class that C++ calls. Without its `__init__` there is no C++ object to call."""

    def __init__(self):
        self._made_in_cpp = True


def made_in_cpp(listener, kind):
    return isinstance(listener, kind) and getattr(listener, "_made_in_cpp", False)
