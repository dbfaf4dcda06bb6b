"""The types of the arguments of `pysmpi.run`: wrong types are errors before the run begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import index
from os import PathLike
from reprlib import Repr
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.platform.model import Platform

MOST_RANKS = 2**31 - 1  # a rank is an int of C

_short = Repr()
_short.maxstring = _short.maxother = 60
_short.maxlong = 30


def shown(value: Any) -> str:
    """A value for messages: short, with its type if the type is not obvious."""
    try:
        text = _short.repr(value)
    except Exception:  # its own __repr__ fails, or it is a number too long for a decimal text
        text = "a value"
    if value is None or isinstance(value, (str, bool, int, float, list, tuple, dict)):
        return text
    return f"{text} of type {type(value).__name__}"


def _integer(value: Any) -> bool:
    return hasattr(type(value), "__index__") and not isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _path(value: Any) -> bool:
    return isinstance(value, (str, PathLike))


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _names(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(map(_text, value))


def _texts(value: Any) -> bool:
    return _text(value) or _names(value)


def _mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _optional(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or test(value)


_TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "nprocs": (_integer, "a whole number of ranks"),
    "platform": (
        _optional(lambda value: _path(value) or isinstance(value, Platform)),
        "the name of a machine, the path of its file, or a Platform",
    ),
    "hostfile": (_optional(_path), "the path of a file"),
    "map_by": (_optional(_text), "a string"),
    "model": (_optional(_text), "a string"),
    "memory_model": (_optional(_text), "a string"),
    "selector": (_optional(_path), "the name of a selector, or the path of a selection file"),
    "coll": (_mapping, "a dictionary such as {'bcast': 'binomial_tree'}"),
    "cfg": (_mapping, "a dictionary such as {'smpi/wtime': '10ns'}"),
    "compute": (
        lambda value: _path(value) or _number(value),
        "native, steady, none, seconds or the path of a recording",
    ),
    "record_compute": (_optional(_path), "the path of a file"),
    "host_speed": (lambda value: _text(value) or _number(value), "auto or a speed such as 10Gf"),
    "seed": (_integer, "a whole number"),
    "reduction_order": (_text, "rank or algorithm"),
    "on_deadlock": (_text, "report or raise"),
    "private": (_names, "a list of module names"),
    "shared": (_names, "a list of module names"),
    "trace": (_optional(_path), "the path of a file"),
    "sample": (_texts, "a string or a list of strings"),
    "once": (_texts, "a string or a list of strings"),
    "fold": (_texts, "a string or a list of strings"),
    "data": (_text, "all, none or a size such as 64KiB"),
}
_PATHS = ("hostfile", "selector", "compute", "record_compute")


def check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run by their names, with correct types.

    Raises UsageError with the option, the found value and the expected type.
    """
    checked = dict(options)
    for name, value in options.items():
        test, expected = _TYPES[name]
        if not test(value):
            raise _wrong(name, value, expected)
        if test is _mapping:
            for key, entry in value.items():
                if not _text(key):
                    raise _wrong(name, key, "a string as the name of an entry")
                if not _text(entry):
                    raise _wrong(f"{name}[{key!r}]", entry, "a string")
        elif test is _integer:
            checked[name] = index(value)
        elif name in _PATHS and isinstance(value, PathLike):
            checked[name] = str(value)
    if checked["nprocs"] > MOST_RANKS:
        raise _wrong("nprocs", options["nprocs"], f"at most {MOST_RANKS:,} ranks")
    return checked


def check_arguments(args: Any) -> None:
    """Refuse arguments of a program that are no sequence of arguments."""
    if isinstance(args, (str, bytes)) or not isinstance(args, Iterable):
        raise _wrong("args", args, "a list of arguments")


def _wrong(name: str, value: Any, expected: str) -> UsageError:
    return UsageError(f"pysmpi.run: {name}: found {shown(value)}, expected {expected}")
