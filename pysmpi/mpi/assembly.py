"""Assembly of the module that programs import, from its chapters.

A chapter lists in `__all__` its names in `mpi4py.MPI`, including private helpers for mpi4py's own
Python code.
"""

from __future__ import annotations

from importlib import import_module

from pysmpi.mpi.base.docstrings import publish
from pysmpi.mpi.base.procedures import PUBLIC_CLASSES

CHAPTERS = (
    "base.constants",
    "base.exceptions",
    "base.errhandlers",
    "base.info",
    "groups.groups",
    "buffers.memory",
    "datatypes.datatypes",
    "operators.operators",
    "buffers.pickling",
    "datatypes.status",
    "base.attributes",
    "point_to_point.requests",
    "point_to_point.persistent_requests",
    "point_to_point.generalized",
    "point_to_point.matched",
    "point_to_point.buffered",
    "processes.sessions",
    "communicators.comm",
    "communicators.intracomm",
    "communicators.intercomm",
    "topologies.topologies",
    "communicators.mpi4py_internals",
    "processes.ports",
    "rma.windows",
    "files.files",
    "base.handles",
    "c_interface.capi",
    "processes.environment",
)


def assemble(namespace: dict[str, object]) -> None:
    """Fill the namespace of `mpi4py.MPI`."""
    for chapter in CHAPTERS:
        module = import_module(f"pysmpi.mpi.{chapter}")
        for name in module.__all__:
            member = namespace[name] = getattr(module, name)
            publish(name, member)
    classes = (member for member in namespace.values() if isinstance(member, type))
    PUBLIC_CLASSES[:] = dict.fromkeys(classes)
