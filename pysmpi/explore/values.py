"""The values of a rank's variables as plain data: equal data means equal values.

Containers, functions, classes and instances are followed, each object once: two variables that
share an object differ from two with equal objects. `Opaque` is raised for a value that Python does
not show completely: an object of C code, a generator, a lock, an open file.
"""

from __future__ import annotations
import __future__

import array
import collections
import copyreg
import functools
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy

MOST = 50_000  # parts of the values of a rank

_ATOMS = frozenset((int, float, complex, str, bytes, bool, type(None)))
_FIXED = frozenset((tuple, frozenset))
_SEQUENCES = _FIXED | frozenset((list, collections.deque, set))
_FEATURE: type = type(__future__.annotations)
_BUILTIN = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
# Attributes of classes that no statement of a program changes.
_HIDDEN = frozenset(("__dict__", "__weakref__", "__doc__", "__module__", "_abc_impl"))
_NOTHING = (None, None, None)
# A class with one of these says itself what its instances are.
_CHOSEN = ("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")


class Opaque(Exception):
    """A value that cannot be described completely."""


class Values:
    """Describes the values of one rank in `parts`.

    `own` are the names of the modules that belong to the rank: their classes have changing
    attributes. `handle(value)` describes an object of MPI.
    """

    def __init__(self, own: Iterable[str], handle: Callable[[object], None]) -> None:
        self.own = frozenset(own)
        self.handle = handle
        self.parts: list[object] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[object] = []  # or another object would have the identity of one of these

    def met(self, value: object) -> bool:
        """Whether an object was described before; if so, refer to it, else remember it."""
        alive = self._alive
        count = len(alive)
        number = self._numbers.setdefault(id(value), count)
        if number != count:
            self.parts.append(("again", number))
            return True
        alive.append(value)
        if len(self.parts) > MOST:
            raise Opaque
        return False

    def value(self, value: Any) -> None:
        """Describe a value."""
        kind = type(value)
        if kind in _ATOMS:
            self.parts.append(value)
        elif kind in _SEQUENCES:
            if kind in _FIXED or not self.met(value):
                self.parts.append((kind.__name__, len(value)))
                for one in value:
                    self.value(one)
        elif kind is dict:
            if not self.met(value):
                self.mapping(value)
        elif kind is types.FunctionType:  # without subclasses
            if not self.met(value):
                self._function(value)
        elif kind is type or isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.ModuleType):
            self.parts.append(("module", value.__name__))
        elif isinstance(value, (numpy.ndarray, numpy.generic, numpy.dtype)):
            self._array(value)
        elif isinstance(value, _BUILTIN):
            self.parts.append(("builtin", value.__qualname__))
            owner = getattr(value, "__self__", None)
            if owner is not None and not isinstance(owner, types.ModuleType):
                self.value(owner)
        elif not self.met(value):
            self._other(value, kind)

    def mapping(self, value: dict[object, object]) -> None:
        """Describe the items of a dictionary."""
        self.parts.append(("dict", len(value)))
        for key, one in value.items():
            self.value(key)
            self.value(one)

    def _other(self, value: Any, kind: type) -> None:
        module = kind.__module__
        if module.partition(".")[0] in ("pysmpi", "mpi4py"):
            self.handle(value)
        elif kind is types.MethodType:
            self.parts.append(("method",))
            self.value(value.__func__)
            self.value(value.__self__)
        elif kind is types.CellType:
            self.parts.append(("cell",))
            try:
                content = value.cell_contents
            except ValueError:
                return
            self.value(content)
        elif kind is types.CodeType:
            self.parts.append(("code", value.co_filename, value.co_firstlineno, value.co_qualname))
        elif kind in (bytearray, array.array):
            self.parts.append((kind.__name__, getattr(value, "typecode", ""), bytes(value)))
        elif kind is types.MappingProxyType:
            self.mapping(value)
        elif kind in (types.GenericAlias, types.UnionType):
            self.parts.append((kind.__name__,))
            self.value(getattr(value, "__origin__", None))
            self.value(value.__args__)
        elif kind is functools.cached_property:
            self.parts.append((kind.__name__, value.attrname))
            self.value(value.func)
        elif kind in (staticmethod, classmethod):
            self.parts.append((kind.__name__,))
            self.value(value.__func__)
        elif kind is property:
            self.parts.append(("property",))
            for one in (value.fget, value.fset, value.fdel):
                self.value(one)
        elif module in self.own:
            self._instance(value, kind)
        else:
            self._reduced(value)

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        self.parts.append(("function", function.__module__, code.co_qualname, code.co_firstlineno))
        if (function.__module__ or "").partition(".")[0] in ("pysmpi", "mpi4py"):
            return
        inner = function.__defaults__, function.__kwdefaults__, function.__closure__
        if inner == _NOTHING:
            self.parts += _NOTHING
        else:
            for one in inner:
                self.value(one)
        if function.__dict__:
            self.value(function.__dict__)

    def _class(self, kind: type) -> None:
        name = ("class", kind.__module__, kind.__qualname__)
        if kind.__module__ not in self.own:
            self.parts.append(name)
        elif not self.met(kind):
            self.parts.append(name)
            for base in kind.__bases__:
                self._class(base)
            for key, one in vars(kind).items():
                if key not in _HIDDEN:
                    self.parts.append(key)
                    self.value(one)

    def _instance(self, value: object, kind: type) -> None:
        """An instance of a class of the program."""
        self._class(kind)
        plain = kind.__base__
        while plain is not object and plain is not None and plain.__module__ in self.own:
            plain = plain.__base__
        if plain is tuple:
            assert isinstance(value, tuple)
            self.parts.append(len(value))
            for one in tuple.__iter__(value):
                self.value(one)
        elif plain is not object:
            # The part of a class of C code or of a library.
            if any(getattr(kind, name, None) is not getattr(plain, name, None) for name in _CHOSEN):
                raise Opaque
            self._reduced(value)
            return
        content = getattr(value, "__dict__", None)
        if content is not None:
            self.mapping(content)
        for one in kind.__mro__:
            slots = vars(one).get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot not in ("__dict__", "__weakref__"):
                    self.parts.append(slot)
                    self.value(getattr(value, slot, NotImplemented))

    def _reduced(self, value: Any) -> None:
        """An object that says of what it is made."""
        kind: object = type(value)
        if kind is _FEATURE:  # programs often have one, and it never changes
            self.parts.append(("feature", value.compiler_flag, value.optional))
            return
        if value is NotImplemented or value is Ellipsis:
            self.parts.append((repr(value),))
            return
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            made = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception:  # of any kind: the object cannot be copied
            raise Opaque from None
        if isinstance(made, str):
            self.parts.append(("name", type(value).__module__, made))
            return
        self.parts.append(("made", len(made)))
        for i, part in enumerate(made):
            if i < 3 or part is None:
                self.value(part)
            else:
                items = list(part)
                self.value(items)

    def _array(self, value: Any) -> None:
        if isinstance(value, numpy.dtype):
            self.parts.append(("dtype", str(value.descr)))
            return
        if isinstance(value, numpy.generic):
            self.parts.append((type(value).__name__, value.tobytes()))
            return
        if self.met(value):
            return
        if type(value) is not numpy.ndarray:
            raise Opaque
        owner = value
        while isinstance(owner.base, numpy.ndarray):
            owner = owner.base
        address = value.__array_interface__["data"][0]
        self.parts.append(("array", str(value.dtype.descr), value.shape, value.strides,
                           address - owner.__array_interface__["data"][0]))  # fmt: skip
        if owner is not value:
            self._array(owner)
        elif value.base is not None and not isinstance(value.base, (bytes, bytearray)):
            raise Opaque
        else:
            if value.base is not None:
                self.value(value.base)
            if value.dtype.hasobject:
                for one in value.ravel().tolist():
                    self.value(one)
            else:
                self.parts.append(value.tobytes())
