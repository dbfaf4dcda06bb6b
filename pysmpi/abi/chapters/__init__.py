"""The functions of MPI for compiled programs, one module for each chapter of the standard."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pysmpi.mpi.base.errhandlers import Errhandler
from pysmpi.mpi.base.exceptions import Exception as MPIError
from pysmpi.mpi.base.info import Info
from pysmpi.mpi.communicators.comm import Comm
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.mpi.files.files import File
from pysmpi.mpi.groups.groups import Group
from pysmpi.mpi.operators.operators import Op
from pysmpi.mpi.point_to_point.matched import Message
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.mpi.processes.sessions import Session
from pysmpi.mpi.rma.windows import Win

__all__ = ["CHAPTERS", "FAMILIES", "MPIError", "load"]

CHAPTERS = (
    "environment", "point_to_point", "requests", "collective", "communicators", "operators",
    "datatypes", "packing", "statuses", "errors", "info", "topologies", "rma", "files", "processes",
    "tools",
)  # fmt: skip

FAMILIES: dict[str, Any] = {
    "C": Comm, "D": Datatype, "R": Request, "M": Message, "O": Op, "G": Group, "I": Info,
    "E": Errhandler, "S": Session, "W": Win, "F": File,
}  # fmt: skip


def load() -> None:
    """Import all chapters, which declare their functions."""
    for name in CHAPTERS:
        import_module(f"pysmpi.abi.chapters.{name}")
