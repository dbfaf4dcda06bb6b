"""The module names of public classes and functions, and docstrings in mpi4py's form.

mpi4py's docstrings begin with the signature and describe the call in one sentence: `Get_size(self)
-> int`, an empty line, "Return the number of processes in a communicator.". The source has the
sentence; the signature is added when `mpi4py.MPI` is assembled.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

PUBLIC = "mpi4py.MPI"

# Flags of code objects; importing them from `inspect` takes longer than the rest of this module.
VARARGS, VARKEYWORDS = 0x04, 0x08

# Defaults in mpi4py's signatures, by parameter; handles have their own names.
_DEFAULTS = {
    ("source", -2): "ANY_SOURCE",
    ("tag", -1): "ANY_TAG",
    ("recvtag", -1): "ANY_TAG",
    ("order", 56): "ORDER_C",
    ("amode", 2): "MODE_RDONLY",
    ("whence", 600): "SEEK_SET",
    ("lock_type", 234): "LOCK_EXCLUSIVE",
    ("required", 3): "THREAD_MULTIPLE",
    ("ierr", 0): "SUCCESS",
}


_described: set[type] = set()


def publish(name: str, obj: object) -> None:
    """Make an object of a chapter a member of mpi4py.MPI under this name."""
    if isinstance(obj, type):
        for cls in obj.__mro__:
            if cls not in _described and (cls is obj or cls.__module__.startswith("pysmpi.")):
                _described.add(cls)
                _describe_class(cls)
        obj.__module__ = PUBLIC
    elif isinstance(obj, FunctionType):
        _describe(name, obj)


def _describe_class(cls: type) -> None:
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, (classmethod, staticmethod)):
            _describe(name, member.__func__)
        elif isinstance(member, FunctionType):
            _describe(name, member)
        elif isinstance(member, property) and member.__doc__:
            kind = member.fget.__annotations__.get("return") if member.fget else None
            head = f"{name}: {_text(kind)}" if kind is not None else name
            if not member.__doc__.startswith(head):
                member.__doc__ = f"{head}\n\n{_cleaned(member.__doc__)}"


def _describe(name: str, function: Any) -> None:
    """Name the module, and add the signature to the docstring.

    The signature is added once: an alias keeps that of its function.
    """
    function.__module__ = PUBLIC
    doc = function.__doc__
    if doc and not doc.startswith(f"{function.__name__}("):
        function.__doc__ = f"{name}{signature(function)}\n\n{_cleaned(doc)}"


def _cleaned(doc: str) -> str:
    """A docstring without the indentation of its source."""
    first, newline, rest = doc.partition("\n")
    if not newline:
        return doc
    lines = rest.split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join([first.strip(), *(line[margin:].rstrip() for line in lines)]).rstrip()


def signature(function: Any) -> str:
    """The parameters and the result of a function, as they are written in its source."""
    code = function.__code__
    notes = function.__annotations__
    positional = code.co_argcount
    names = code.co_varnames
    defaults = function.__defaults__ or ()
    first_default = positional - len(defaults)
    parts = []
    for i in range(positional):
        name = names[i]
        note = f"{name}: {_text(notes[name])}" if name in notes else name
        if i >= first_default:
            equals = " = " if name in notes else "="
            note += equals + _value(name, defaults[i - first_default])
        parts.append(note)
        if i + 1 == code.co_posonlyargcount:
            parts.append("/")
    position = positional + code.co_kwonlyargcount
    if code.co_flags & VARARGS:
        parts.append(_starred("*", names[position], notes))
        position += 1
    elif code.co_kwonlyargcount:
        parts.append("*")
    keyword_defaults = function.__kwdefaults__ or {}
    for name in names[positional : positional + code.co_kwonlyargcount]:
        note = f"{name}: {_text(notes[name])}" if name in notes else name
        if name in keyword_defaults:
            note += " = " + _value(name, keyword_defaults[name])
        parts.append(note)
    if code.co_flags & VARKEYWORDS:
        parts.append(_starred("**", names[position], notes))
    result = f" -> {_text(notes['return'])}" if "return" in notes else ""
    return f"({', '.join(parts)}){result}"


def _starred(stars: str, name: str, notes: Mapping[str, object]) -> str:
    return f"{stars}{name}: {_text(notes[name])}" if name in notes else stars + name


def _text(note: object) -> str:
    if note is None:
        return "None"
    return note if isinstance(note, str) else getattr(note, "__name__", str(note))


def _value(parameter: str, value: Any) -> str:
    if type(value) is int:
        return _DEFAULTS.get((parameter, value)) or repr(value)
    named = getattr(value, "_named", None)
    if named is not None:
        result = named.get(id(value._impl))
        if result is not None:
            return str(result[1])
    return repr(value)
