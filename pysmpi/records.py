"""Dataclasses that generate their methods when they are first used.

Most runs use few of the classes that they load, and generating the methods of a class takes longer
than the rest of its definition. A class decorated with `record` is a dataclass in all other
respects; `slots` is for ordinary dataclasses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    import dataclasses

    class _Fields:
        """The fields of a class, for `dataclasses.fields` and for classes derived from it."""

        def __init__(self, generate):
            self.generate = generate

        def __get__(self, instance, owner):
            self.generate()
            return owner.__dataclass_fields__

    def record(cls=None, /, **options):
        """Make a class a dataclass with some options, generated at its first use."""
        if cls is None:
            return lambda cls: record(cls, **options)
        names = {"__init__", "__repr__", "__eq__"}
        if options.get("frozen"):
            names.add("__hash__")
        names -= vars(cls).keys()

        def generate():
            if names:
                for name in names:
                    delattr(cls, name)
                names.clear()
                dataclasses.dataclass(cls, **options)

        def first(name):
            def method(self, *args, **kwargs):
                generate()
                return getattr(cls, name)(self, *args, **kwargs)

            return method

        for name in names:
            setattr(cls, name, first(name))
        if "__hash__" not in vars(cls):
            cls.__hash__ = None
        cls.__dataclass_fields__ = _Fields(generate)
        return cls
