"""Dataclasses that generate no method before they are used often.

Most runs make few objects of the classes that they load, and Python compiles the methods of a
dataclass one by one, which takes longer than the rest of its definition. A class decorated with
`record` has an `__init__` that looks at the fields for its first objects, and gets the compiled one
when there are more. Comparisons, hashes and representations, which are rare, look at the fields. In
all other respects it is a dataclass; `slots` is for ordinary dataclasses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    import dataclasses
    from reprlib import recursive_repr

    _FEW = 8  # objects that cost less than a compiled `__init__`

    class _Fields:
        """The fields of a class, for `dataclasses.fields` and for classes derived from it."""

        def __init__(self, describe):
            self.describe = describe

        def __get__(self, instance, owner):
            self.describe()
            return owner.__dataclass_fields__

    def _values_of(fields, args, kwargs):
        """The attributes of a new object, or None if these are no arguments for the fields."""
        names = [field.name for field in fields if field.init]
        values = dict(zip(names, args))
        if len(args) > len(names) or not values.keys().isdisjoint(kwargs):
            return None
        values.update(kwargs)
        for field in fields:
            if field.name not in values:
                if field.default_factory is not dataclasses.MISSING:
                    values[field.name] = field.default_factory()
                elif field.default is not dataclasses.MISSING:
                    values[field.name] = field.default
                elif field.init:
                    return None
        return values if kwargs.keys() <= set(names) else None

    def _freeze(cls):
        """Refuse changes of the fields of `cls`, and of all attributes of its own objects."""

        def check(self, name, action):
            if type(self) is cls or name in cls.__dataclass_fields__:
                raise dataclasses.FrozenInstanceError(f"cannot {action} field {name!r}")

        def set_attribute(self, name, value):
            check(self, name, "assign to")
            super(cls, self).__setattr__(name, value)

        def delete_attribute(self, name):
            check(self, name, "delete")
            super(cls, self).__delattr__(name)

        cls.__setattr__, cls.__delattr__ = set_attribute, delete_attribute

    @recursive_repr()
    def _repr(self):
        parts = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr]
        return f"{type(self).__qualname__}({', '.join(parts)})"

    def _eq(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        compared = [f.name for f in dataclasses.fields(self) if f.compare]
        return _selected(self, compared) == _selected(other, compared)

    def _hash(self):
        fields = dataclasses.fields(self)
        hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
        return hash(_selected(self, hashed))

    def _selected(one, names):
        return tuple([getattr(one, name) for name in names])

    def record(cls=None, /, *, repr=True, frozen=False):
        """Make a class a dataclass with an `__init__` that is compiled for many objects."""
        if cls is None:
            return lambda cls: record(cls, repr=repr, frozen=frozen)
        described = False
        made = 0

        def describe():
            nonlocal described
            if not described:
                described = True
                del cls.__dataclass_fields__
                dataclasses.dataclass(cls, init=False, repr=False, eq=False)
                cls.__dataclass_params__.frozen = frozen

        def compile_methods():
            if vars(cls)["__init__"] is not first:
                return
            del cls.__init__
            if frozen:
                del cls.__setattr__, cls.__delattr__
            for field in dataclasses.fields(cls):
                if field.name in cls.__annotations__:
                    setattr(cls, field.name, field)
            dataclasses.dataclass(cls, repr=False, eq=False, frozen=frozen)

        def first(self, *args, **kwargs):
            nonlocal made
            made += 1
            describe()
            values = _values_of(dataclasses.fields(cls), args, kwargs) if made <= _FEW else None
            if values is None:
                compile_methods()
                cls.__init__(self, *args, **kwargs)
                return
            vars(self).update(values)
            if hasattr(self, "__post_init__"):
                self.__post_init__()

        cls.__init__ = first
        if frozen:
            _freeze(cls)
        own = vars(cls)
        if repr and "__repr__" not in own:
            cls.__repr__ = _repr
        if "__eq__" not in own:
            cls.__eq__ = _eq
            if "__hash__" not in own:
                cls.__hash__ = _hash if frozen else None
        cls.__dataclass_fields__ = _Fields(describe)
        return cls
