"""Attributes of communicators, datatypes and windows (MPI 4.1, section 7.7).

Keyvals and attributes are private to a rank. `with_attributes` declares the five methods of a class
with attributes. These classes call `copied` when they duplicate an object and `deleted` when they
free one. `PREDEFINED` holds the
values of the predefined keyvals of a family.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Self

from pysmpi.mpi.base.constants import (
    ANY_SOURCE,
    APPNUM,
    ERR_KEYVAL,
    ERR_OTHER,
    IO,
    KEYVAL_INVALID,
    LASTUSEDCODE,
    TAG_UB,
    UNIVERSE_SIZE,
    WTIME_IS_GLOBAL,
)
from pysmpi.mpi.base.errhandlers import FAILURES, show
from pysmpi.mpi.base.exceptions import Exception, cint, fail, no_integer, truth, user_errors
from pysmpi.mpi.base.families import C, having
from pysmpi.mpi.base.handles import Handle
from pysmpi.mpi.base.ranks import Rank, World, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import computing
from pysmpi.mpi.internal_errors import touches_program
from pysmpi.python.records import record

__all__ = ["_keyval_registry"]

# The largest tag: the largest C int.
TAG_MAX = 0x7FFFFFFF

# MPICH's numbers of keyvals: 0xa4000000, the family, a counter.
_FIRST = {"Comm": 0xA4400000, "Datatype": 0xA4800000, "Win": 0xA4C00000}


class Keyval:
    """An attribute key and its callbacks.

    With `nopython` the value is an integer, as wide as an address, and the callbacks get that.

    With `in_c` the callbacks are functions in C, whose error codes calls of MPI return. An
    attribute stays if its delete callback fails; mpi4py would have removed it before.
    """

    __slots__ = ("family", "copy_fn", "delete_fn", "nopython", "in_c", "references")

    def __init__(self, family: str, copy_fn: Any, delete_fn: Any, nopython: bool) -> None:
        self.family = family
        self.copy_fn = None if copy_fn is False else copy_fn
        self.delete_fn = None if isinstance(delete_fn, bool) else delete_fn
        self.nopython = nopython
        self.in_c = False
        self.references = 0  # attributes that have it

    def value(self, value: Any) -> Any:
        """Check a value that is to be stored."""
        if not self.nopython:
            return value
        try:
            number = index(value)
        except TypeError:
            raise no_integer(value) from None
        if not -(2**63) <= number < 2**64:
            raise OverflowError(f"attrval: {number} does not fit into an address")
        return number % 2**64


class AttributeTable:
    """The keyvals of a rank, and the attributes of its objects.

    A keyval that has been freed is valid as long as an object has its attribute.
    """

    __slots__ = ("keyvals", "freed", "next", "attributes")

    def __init__(self) -> None:
        self.keyvals: dict[str, dict[int, Keyval]] = {family: {} for family in _FIRST}
        self.freed: dict[int, Keyval] = {}
        self.next = dict(_FIRST)
        # object -> keyval -> (the key as it was when the value was set, value)
        self.attributes: dict[object, dict[int, tuple[Keyval, object]]] = {}


TABLE = StateSlot(Rank, AttributeTable)


@record
class Launch:
    """The launch of a world: the largest number of processes, if it is known."""

    universe_size: int | None = None


@record
class LaunchedProgram:
    """The number of the program of a launch that a rank runs."""

    appnum: int = 0


LAUNCH = StateSlot(World, Launch)
PROGRAM = StateSlot(Rank, LaunchedProgram)


def of_rank() -> AttributeTable:
    """The keyvals and attributes of the calling rank."""
    return TABLE.of(current())


class _Registry(dict[str, object]):
    """The keyvals of the calling rank by family, as mpi4py stores them."""

    def __getitem__(self, family: str) -> dict[int, Keyval]:
        return of_rank().keyvals[family]


_keyval_registry = _Registry.fromkeys(("Datatype", "Comm", "Win"))


def _universe_size(subject: Handle) -> int | None:
    return LAUNCH.of(current().world).universe_size


# family -> keyval -> its value; None if the attribute is not set
PREDEFINED: dict[str, dict[int, Callable[[Any], Any]]] = {
    "Comm": {
        TAG_UB: lambda subject: TAG_MAX,
        IO: lambda subject: ANY_SOURCE,
        WTIME_IS_GLOBAL: lambda subject: 1,
        UNIVERSE_SIZE: _universe_size,
        APPNUM: lambda subject: PROGRAM.of(current()).appnum,
        LASTUSEDCODE: lambda subject: user_errors().last,
    },
    "Datatype": {},
    "Win": {},
}


def create_keyval(
    family: type[Handle],
    copy_fn: Callable[..., object] | bool | None,
    delete_fn: Callable[..., object] | bool | None,
    nopython: bool,
) -> int:
    """The body of `Create_keyval`."""
    return add_keyval(Keyval(family._family.__name__, copy_fn, delete_fn, truth(nopython)))


def add_keyval(key: Keyval) -> int:
    """The number of a new key."""
    table = of_rank()
    number = table.next[key.family]
    table.next[key.family] += 1
    keyval = number - 0x100000000
    table.keyvals[key.family][keyval] = key
    return keyval


def free_keyval(family: type[Handle], keyval: int) -> int:
    """The body of `Free_keyval`: attributes that are set keep the key's callbacks."""
    name = family._family.__name__
    number = cint(keyval)
    table = of_rank()
    key = table.keyvals[name].pop(number, None)
    if key is None:
        if number not in table.freed:
            fail(ERR_KEYVAL, f"keyval {number} is no user-defined key of a {name}")
    elif key.references:
        table.freed[number] = key
    return KEYVAL_INVALID


def _drop(table: AttributeTable, keyval: int, key: Keyval) -> None:
    """Count an attribute less; a freed key ends with the last one."""
    key.references -= 1
    if not key.references:
        table.freed.pop(keyval, None)


def _key(table: AttributeTable, subject: Handle, keyval: int) -> Keyval:
    """The key of a keyval, for objects of this family."""
    family = subject._family.__name__
    bearer = _bearer(subject)
    key = table.keyvals[family].get(keyval)
    if key is None:
        key = table.freed.get(keyval)
        if key is not None and key.family == family:
            return key
        if keyval in PREDEFINED[family]:
            fail(ERR_KEYVAL, f"keyval {keyval} is predefined, its value cannot be changed", bearer)
        fail(ERR_KEYVAL, f"keyval {keyval} is no key of a {family}", bearer)
    return key


def _bearer(subject: Handle) -> Handle | None:
    """The handle whose error handler gets an error: datatypes have none."""
    return None if subject._family.__name__ == "Datatype" else subject


def get(subject: Handle, keyval: int) -> object:
    """The body of `Get_attr`: None if the attribute is not set."""
    impl = subject._live()
    number = cint(keyval)
    table = of_rank()
    entry = table.attributes.get(impl, {}).get(number)
    if entry is not None:
        return entry[1]
    predefined = PREDEFINED[subject._family.__name__].get(number)
    if predefined is not None:
        return predefined(subject)
    _key(table, subject, number)
    return None


def set(subject: Handle, keyval: int, attrval: object) -> None:
    """The body of `Set_attr`; a value that is replaced is deleted first."""
    impl = subject._live()
    table = of_rank()
    number = cint(keyval)
    key = _key(table, subject, number)
    value = key.value(attrval)
    attributes = table.attributes.setdefault(impl, {})
    old = attributes.get(number)
    if old is not None:
        if key.in_c:
            code = _notify(subject, number, old)
            if code:
                fail(code, "the delete callback of the replaced attribute failed", _bearer(subject))
        attributes.pop(number, None)
    attributes[number] = (key, value)
    if old is None:
        key.references += 1
    elif not key.in_c:
        _notify(subject, number, old)


def delete(subject: Handle, keyval: int) -> None:
    """The body of `Delete_attr`: removes the attribute, also if its callback in Python fails."""
    impl = subject._live()
    table = of_rank()
    number = cint(keyval)
    attributes = table.attributes.get(impl)
    entry = None if attributes is None else attributes.pop(number, None)
    if attributes is None or entry is None:
        _key(table, subject, number)
        return
    code = _notify(subject, number, entry)
    if code and entry[0].in_c:
        attributes[number] = entry
    else:
        _drop(table, number, entry[0])
    if code:
        fail(code, "the delete callback of the attribute failed", _bearer(subject))


def copied(old: Handle, new: Handle) -> None:
    """Give a duplicate the attributes that are to be copied.

    A callback that fails ends the duplication with its error; the new object has then no
    attributes.
    """
    table = of_rank()
    attributes = table.attributes.get(old._impl)
    if not attributes:
        return
    copies: dict[int, tuple[Keyval, object]] = {}
    for keyval, (key, value) in list(attributes.items()):
        copy_fn = key.copy_fn
        if copy_fn is None:
            continue
        if copy_fn is not True:
            try:
                value = _called(copy_fn, old, keyval, value)
                if value is NotImplemented:
                    continue
                value = key.value(value)
            except FAILURES as error:
                code = code_of(error) if key.in_c else reported(error)
                fail(code, "the copy callback of an attribute failed", _bearer(old))
        copies[keyval] = (key, value)
    if copies:
        for key, _ in copies.values():
            key.references += 1
        table.attributes[new._impl] = copies


def deleted(subject: Handle) -> None:
    """Delete the attributes of an object that is about to be freed, the latest first.

    An error of a callback in C is one of the call: the object is not freed then.
    """
    table = of_rank()
    attributes = table.attributes
    impl = subject._impl
    failed = 0
    while impl in attributes:
        entries = attributes[impl]
        if not entries:
            del attributes[impl]
            break
        keyval, entry = entries.popitem()
        code = _notify(subject, keyval, entry)
        _drop(table, keyval, entry[0])
        if entry[0].in_c:
            failed = failed or code
    if failed:
        fail(failed, "the delete callback of an attribute failed", _bearer(subject))


def _notify(subject: Handle, keyval: int, entry: tuple[Keyval, Any]) -> int:
    """Call the callback for a deleted attribute; return the error code."""
    key, value = entry
    if key.delete_fn is not None:
        try:
            _called(key.delete_fn, subject, keyval, value)
        except FAILURES as error:
            return code_of(error) if key.in_c else reported(error)
    return 0


@touches_program
def _called(function: Callable[..., object], subject: Handle, keyval: int, value: Any) -> Any:
    """Call a callback with a separate handle, which becomes null afterwards."""
    handle = subject._wrap(subject._impl)
    try:
        with computing():
            return function(handle, keyval, value)
    finally:
        handle._set(None)


def reported(error: BaseException) -> int:
    """Print an exception out of a callback; return its error code."""
    show(error)
    return code_of(error)


def code_of(error: BaseException) -> int:
    """The error code of an exception out of a callback."""
    return int(error) if isinstance(error, Exception) else ERR_OTHER


class WithAttributes:
    """The methods of handles whose objects have attributes: see `families.having`."""

    __slots__ = ()

    def Get_attr(self, keyval: int) -> int | Any | None:
        """Retrieve attribute value by key."""
        return get(self, keyval)  # type: ignore[arg-type]

    def Set_attr(self, keyval: int, attrval: Any) -> None:
        """Store attribute value associated with a key."""
        set(self, keyval, attrval)  # type: ignore[arg-type]

    def Delete_attr(self, keyval: int) -> None:
        """Delete attribute value associated with a key."""
        delete(self, keyval)  # type: ignore[arg-type]

    @classmethod
    def Create_keyval(
        cls,
        copy_fn: Callable[[Self, int, Any], Any] | None = None,
        delete_fn: Callable[[Self, int, Any], None] | None = None,
        nopython: bool = False,
    ) -> int:
        """Create a new attribute key for objects."""
        return create_keyval(cls, copy_fn, delete_fn, nopython)  # type: ignore[arg-type]

    @classmethod
    def Free_keyval(cls, keyval: int) -> int:
        """Free an attribute key for objects."""
        return free_keyval(cls, keyval)  # type: ignore[arg-type]


def with_attributes(section: str, noun: str) -> Callable[[C], C]:
    """Declare the methods of `WithAttributes` for a class; `noun` is "a" and its objects' name."""
    return having(WithAttributes, section, noun)
