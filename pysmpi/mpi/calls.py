"""The boundary of MPI calls: where the program's compute ends and where it goes on.

A call stops the clock of its rank's compute before it does anything else, so that what pysmpi
does for it is not taken for compute of the program, and starts it again when it returns, also by
an exception. The calls that a program makes most often do so themselves, in `pointtopoint` and
`requests`; `bound` gives the others their boundary.

A lower-case call leaves the clock running at first: pickling its arguments is work that mpi4py
does in the program's process, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from types import CodeType, FunctionType
from typing import Any

from pysmpi.mpi.base.docstrings import PUBLIC
from pysmpi.mpi.base.handles import Handle
from pysmpi.mpi.base.ranks import current

# The classes whose methods may take part in the simulation.
FAMILIES = ("Comm", "Request", "Message", "Win", "File", "Session")
# The functions that may.
FUNCTIONS = (
    "Init", "Init_thread", "Finalize", "Attach_buffer", "Detach_buffer", "Flush_buffer",
    "Iflush_buffer", "Open_port", "Close_port", "Publish_name", "Unpublish_name", "Lookup_name",
)  # fmt: skip

# Methods of these names look something up or set it in the calling rank alone.
_LOCAL = ("Get_", "Set_", "Is_", "Call_", "Create_errhandler", "Create_keyval", "Free_keyval",
          "Delete_attr", "Compare", "Cancel", "cancel", "py2f", "f2py", "fromhandle", "Shift",
          "Query_")  # fmt: skip
_NOT_LOCAL = ("Get_status", "Get_accumulate", "Get_position_shared", "Set_view", "Set_size",
              "Set_atomicity")  # fmt: skip

BOUNDARIES: set[CodeType] = set()  # code of the boundaries, which no report speaks of


def is_local(name: str) -> bool:
    """Whether a method of this name only looks something up or sets it in the calling rank."""
    return name.startswith(_LOCAL) and not name.startswith(_NOT_LOCAL)


def by_itself(function: Any) -> Any:
    """Mark a function that stops and starts the clock itself."""
    function._bounded = True
    return function


def bound(namespace: dict[str, Any]) -> None:
    """Give a boundary to the functions and methods of `mpi4py.MPI` that lack one."""
    for name in FUNCTIONS:
        namespace[name] = _bounded(namespace[name])
    for cls in classes(namespace):
        for name, member in list(vars(cls).items()):
            if name.startswith("_") or (is_local(name) and name != "Cancel"):
                continue
            if isinstance(member, classmethod) and isinstance(member.__func__, FunctionType):
                setattr(cls, name, classmethod(_bounded(member.__func__)))
            elif isinstance(member, FunctionType):
                setattr(cls, name, _bounded(member))


def classes(namespace: dict[str, Any]) -> Iterator[type]:
    """The classes of all families with their bases, each once, in a fixed order."""
    seen: set[type] = {object, Handle}
    pending: list[type] = [namespace[family] for family in FAMILIES if family in namespace]
    while pending:
        cls = pending.pop(0)
        if cls in seen:
            continue
        seen.add(cls)
        yield cls
        pending += cls.__bases__
        # Not those of the program, whose methods are its own.
        kinds: list[type] = cls.__subclasses__()
        pending += [kind for kind in kinds if kind.__module__ == PUBLIC]


def _bounded(function: Any) -> Callable[..., Any]:
    if getattr(function, "_bounded", False):
        done: Callable[..., Any] = function
        return done
    return _upper(function) if function.__name__[0].isupper() else _lower(function)


def _upper(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        rank = current()
        if rank.in_call:
            return function(*args, **kwargs)
        rank.enter()
        try:
            return function(*args, **kwargs)
        finally:
            rank.leave()

    BOUNDARIES.add(bounded.__code__)
    return by_itself(bounded)  # type: ignore[no-any-return]


def _lower(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        rank = current()
        if rank.in_call:
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            if rank.in_call:
                rank.leave()

    BOUNDARIES.add(bounded.__code__)
    return by_itself(bounded)  # type: ignore[no-any-return]
