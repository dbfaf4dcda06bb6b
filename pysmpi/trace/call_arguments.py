"""The arguments of calls that a recording has: ranks and datatypes."""

from __future__ import annotations

from typing import Any

from pysmpi.mpi.calls import Role
from pysmpi.mpi.datatypes.datatypes import Datatype


class ArgumentForm:
    """The arguments of a procedure: the names of ranks, and whether some are requests."""

    def __init__(self, procedure: Any) -> None:
        roles = procedure.roles
        self.name: str = procedure.name
        self.parameters: tuple[str, ...] = procedure.parameters
        self.peers: list[tuple[int, str]] = [
            (i, name)
            for i, name in enumerate(self.parameters)
            if roles[name] in (Role.PEER, Role.ROOT)
        ]
        self.requests: bool = Role.REQUEST in roles.values()

    def ranks(self, values: tuple[Any, ...]) -> tuple[tuple[str, int], ...]:
        """The arguments of a call that are ranks, with their names."""
        return tuple([(name, values[i]) for i, name in self.peers if type(values[i]) is int])

    def datatypes(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """The datatypes that the arguments of a call name, by argument."""
        found: dict[str, Any] = {}
        for name, value in zip(self.parameters, values):
            if value.__class__ is list or value.__class__ is tuple:
                for part in value:
                    if isinstance(part, Datatype):
                        found[name] = _description(part)
        return found


def _description(datatype: Datatype) -> dict[str, Any]:
    """A datatype: its name, the bytes of its data and of its extent, and its constructor."""
    record = datatype._impl
    if record is None:
        return {}
    layout = record.layout
    found = {"name": record.name, "size": layout.size, "extent": layout.ub - layout.lb}
    if record.types:
        found["combiner"] = record.combiner
        found["integers"] = list(record.integers)
        found["counts"] = list(record.counts)
    return found
