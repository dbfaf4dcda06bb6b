"""Signatures and docstrings in mpi4py's form."""

from __future__ import annotations

import inspect

import pytest

from pysmpi.mpi.base import docstrings
from pysmpi.mpi.base.docstrings import publish, signature
from pysmpi.mpi.base.info import INFO_NULL


def plain() -> None: ...


def typical(self, buf: list[int], source: int = -2, tag: int = -1, root=0) -> int: ...


def positional(self, arg: int, /, *more: str, key: bool = False, **rest: str) -> None: ...


def handle(info=INFO_NULL, *, only): ...


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (plain, "() -> None"),
        (
            typical,
            "(self, buf: list[int], source: int = ANY_SOURCE, tag: int = ANY_TAG, root=0) -> int",
        ),
        (
            positional,
            "(self, arg: int, /, *more: str, key: bool = False, **rest: str) -> None",
        ),
        (handle, "(info=INFO_NULL, *, only)"),
    ],
)
def test_signatures(function, text) -> None:
    assert signature(function) == text


def test_flags_are_those_of_inspect() -> None:
    assert docstrings.VARARGS == inspect.CO_VARARGS
    assert docstrings.VARKEYWORDS == inspect.CO_VARKEYWORDS


def test_publishing() -> None:
    class Thing:
        """Some thing."""

        def call(self, n: int) -> int:
            """Call it.

            .. note:: Twice
               at most.
            """

        again = call

        @classmethod
        def make(cls) -> Thing:
            """Make one."""

        @property
        def size(self) -> int:
            """Its size."""

    for _ in range(2):
        publish("Thing", Thing)
        assert Thing.__module__ == "mpi4py.MPI"
        assert Thing.call.__doc__ == (
            "call(self, n: int) -> int\n\nCall it.\n\n.. note:: Twice\n   at most."
        )
        assert Thing.make.__doc__ == "make(cls) -> Thing\n\nMake one."
        assert Thing.size.__doc__ == "size: int\n\nIts size."
        assert Thing.call.__module__ == Thing.make.__module__ == "mpi4py.MPI"
