"""Dataclasses that generate no method before its first use.

Most runs use few of the classes that they load, and Python compiles the methods of a dataclass one
by one, which takes longer than the rest of its definition. A class decorated with `record` gets its
`__init__` when the first object is made. Comparisons, hashes and representations, which are rare,
look at the fields. In all other respects it is a dataclass; `slots` is for ordinary dataclasses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    import dataclasses
    from reprlib import recursive_repr

    class _Fields:
        """The fields of a class, for `dataclasses.fields` and for classes derived from it."""

        def __init__(self, generate):
            self.generate = generate

        def __get__(self, instance, owner):
            self.generate()
            return owner.__dataclass_fields__

    @recursive_repr()
    def _repr(self):
        parts = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr]
        return f"{type(self).__qualname__}({', '.join(parts)})"

    def _eq(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        compared = [f.name for f in dataclasses.fields(self) if f.compare]
        return _values(self, compared) == _values(other, compared)

    def _hash(self):
        fields = dataclasses.fields(self)
        hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
        return hash(_values(self, hashed))

    def _values(one, names):
        return tuple([getattr(one, name) for name in names])

    def record(cls=None, /, *, repr=True, frozen=False):
        """Make a class a dataclass, with an `__init__` that is generated at its first use."""
        if cls is None:
            return lambda cls: record(cls, repr=repr, frozen=frozen)
        waiting = True

        def generate():
            nonlocal waiting
            if waiting:
                waiting = False
                del cls.__init__
                dataclasses.dataclass(cls, repr=False, eq=False, frozen=frozen)

        def first(self, *args, **kwargs):
            generate()
            return cls.__init__(self, *args, **kwargs)

        cls.__init__ = first
        own = vars(cls)
        if repr and "__repr__" not in own:
            cls.__repr__ = _repr
        if "__eq__" not in own:
            cls.__eq__ = _eq
            if "__hash__" not in own:
                cls.__hash__ = _hash if frozen else None
        cls.__dataclass_fields__ = _Fields(generate)
        return cls
