"""`threading.local` for the threads of ranks, which share one thread of the operating system.

The attributes of an object have the values of the last thread that used it; a dictionary holds the
values of the other threads until one of them uses the object.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary, ref

from pysmpi.isolation.threads.locks import reduce_as, running, state_without

_real = _thread._local()
_get, _set, _delete = object.__getattribute__, object.__setattr__, object.__delattr__


class _Values:
    """The values of the threads in one object. `last` refers to the last thread that used it."""

    __slots__ = ("last", "spaces", "arguments", "keywords")

    def __init__(self, arguments: tuple[object, ...], keywords: Mapping[str, object]) -> None:
        self.last: Callable[[], Any] = lambda: None
        self.spaces: WeakKeyDictionary[object, dict[str, object]] = WeakKeyDictionary()
        self.arguments = arguments
        self.keywords = keywords


def _turn_to(self: object, values: _Values, thread: object) -> None:
    """Set the attributes to those of a thread; initialize them for a new thread."""
    space = values.spaces.get(thread)
    new = space is None
    if space is None:
        space = values.spaces[thread] = {}
    _set(self, "__dict__", space)
    values.last = ref(thread)
    if new:
        type(self).__init__(self, *values.arguments, **values.keywords)


class local:  # noqa: N801
    """Thread-local data"""

    __slots__ = ("_values", "__dict__", "__weakref__")

    def __new__(cls, /, *args: object, **kw: object) -> Any:
        if (args or kw) and cls.__init__ is object.__init__:
            raise TypeError("Initialization arguments are not supported")
        self = object.__new__(cls)
        values = _Values(args, kw)
        _set(self, "_values", values)
        # Python calls `__init__` for the thread that makes the object.
        thread = running()
        values.spaces[thread] = _get(self, "__dict__")
        values.last = ref(thread)
        return self

    def __getattribute__(self, name: str) -> object:
        values = _get(self, "_values")
        thread = running()
        if values.last() is not thread:
            _turn_to(self, values, thread)
        return _get(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "__dict__":
            raise AttributeError(
                f"{type(self).__name__!r} object attribute '__dict__' is read-only"
            )
        values = _get(self, "_values")
        thread = running()
        if values.last() is not thread:
            _turn_to(self, values, thread)
        _set(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name == "__dict__":
            raise AttributeError(
                f"{type(self).__name__!r} object attribute '__dict__' is read-only"
            )
        values = _get(self, "_values")
        thread = running()
        if values.last() is not thread:
            _turn_to(self, values, thread)
        _delete(self, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduce_as(_real, self, local, protocol)

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(0)

    def __getstate__(self) -> Any:
        return state_without(self, local.__slots__)


local.__module__ = "_thread"
local.__qualname__ = local.__name__ = "_local"
