"""Methods that several families of handles have, each with its own section and docstring.

A template is a mixin with plain methods. `having` gives a class its own copies of them, as if they
were written there: mpi4py's classes have their own signatures and docstrings, and each method is
a procedure of MPI with a section for its class.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from pysmpi.mpi.calls import mpi

C = TypeVar("C", bound=type[Any])


def having(
    template: type, section: str, noun: str, sections: dict[str, str] | None = None
) -> Callable[[C], C]:
    """Declare the methods of a template for a class, as local calls.

    `section` is that of MPI 4.1, `sections` has those of methods with another one. `noun` replaces
    "object" in the docstrings, with its article. Methods of the class itself are left alone.
    """

    def declare(cls: C) -> C:
        for name, member in vars(template).items():
            if name.startswith("_") or name in vars(cls):
                continue
            inner: Any = getattr(member, "__func__", member)
            copy = FunctionType(
                inner.__code__, inner.__globals__, name, inner.__defaults__, inner.__closure__
            )
            copy.__qualname__ = f"{cls.__qualname__}.{name}"
            copy.__module__ = cls.__module__
            copy.__doc__ = _named(inner.__doc__, noun)
            copy.__annotations__ = {
                parameter: note.replace("Self", cls.__name__)
                for parameter, note in inner.__annotations__.items()
            }
            method = mpi.local((sections or {}).get(name, section))(copy)
            setattr(cls, name, classmethod(method) if isinstance(member, classmethod) else method)
        return cls

    return declare


def _named(doc: str, noun: str) -> str:
    return doc.replace("an object", noun).replace("objects", f"{noun.partition(' ')[2]}s")
