"""How the module that programs see is put together from its chapters.

A chapter lists in `__all__` what it gives to `mpi4py.MPI`, its private helpers that mpi4py's own
Python code uses included.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .calls import bound
from .docstrings import publish

CHAPTERS = (
    "constants",
    "exceptions",
    "errhandlers",
    "info",
    "groups",
    "buffers",
    "datatypes",
    "ops",
    "pickling",
    "status",
    "attributes",
    "requests",
    "grequests",
    "matched",
    "buffered",
    "sessions",
    "comm",
    "intracomm",
    "intercomm",
    "topologies",
    "internals",
    "ports",
    "windows",
    "files",
    "handles",
    "capi",
    "environment",
)


def assemble(namespace: dict[str, Any]) -> None:
    """Fill the namespace of `mpi4py.MPI`."""
    for chapter in CHAPTERS:
        module = import_module(f"pysmpi.mpi.{chapter}")
        for name in module.__all__:
            member = namespace[name] = getattr(module, name)
            publish(name, member)
    bound(namespace)
