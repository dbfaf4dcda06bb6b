"""The operations of the requests that a call takes, as they are when it begins."""

from __future__ import annotations

from typing import Any

from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.base.procedures import Role
from pysmpi.mpi.base.ranks import MpiCall

# See `mpi/point_to_point/operations.py`.
Operation = Any


class AwaitedOperations:
    """The operations of the call that has just begun, which several checkers ask for."""

    def __init__(self) -> None:
        self._call: MpiCall | None = None
        self._operations: list[Operation] = []
        self._messages: list[tuple[Operation, list[KernelRequest]]] | None = None

    def of(self, call: MpiCall) -> list[Operation]:
        """The operations of a call that has just begun."""
        if call is not self._call:
            self._call = call
            self._messages = None
            self._operations = operations_of(call)
        return self._operations

    def messages(self, call: MpiCall) -> list[tuple[Operation, list[KernelRequest]]]:
        """Those operations of a call that has just begun which have messages, with these."""
        operations = self.of(call)
        messages = self._messages
        if messages is None:
            messages = self._messages = [
                (operation, list(operation.messages()))
                for operation in operations
                if hasattr(operation, "messages")
            ]
        return messages


def operations_of(call: MpiCall) -> list[Operation]:
    """The operations of the requests among the arguments of a call (see `MpiCall.operations`)."""
    places = call.procedure.places.get(Role.REQUEST)
    if places is None:
        return []
    if call.handles is None and len(places) == 1 and places[0][0] < len(call.values):
        value = call.values[places[0][0]]
        if not isinstance(value, (list, tuple)):
            operation = getattr(value, "_impl", None)
            return [] if operation is None else [operation]
    return call.operations
