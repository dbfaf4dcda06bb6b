"""Persistent and partitioned requests (MPI 4.1, sections 3.9 and 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pysmpi.mpi.base.constants import ERR_REQUEST
from pysmpi.mpi.base.exceptions import cint, fail, listed
from pysmpi.mpi.base.handles import wrong_type
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.point_to_point.operations import RequestOperation
from pysmpi.mpi.point_to_point.requests import Request, request_list

__all__ = ["Prequest"]


class Prequest(Request):
    """Persistent request handle."""

    __slots__ = ()

    def __new__(cls, request: Request | None = None) -> Any:
        self = super().__new__(cls, request)
        if self._impl is not None and not isinstance(request, Prequest):
            raise wrong_type("request", Prequest, request)
        return self

    @mpi.point_to_point("3.9")
    def Start(self) -> None:
        """Initiate a communication with a persistent request."""
        operation = self._live()
        _begin(operation)

    @classmethod
    @mpi.point_to_point("3.9")
    def Startall(cls, requests: list[Prequest]) -> None:
        """Start a collection of persistent requests."""
        for item in request_list(requests):
            _begin(item._live())

    @mpi.point_to_point("4.2.1")
    def Pready(self, partition: int) -> None:
        """Mark a given partition as ready."""
        self._partitioned().ready([cint(partition)])

    @mpi.point_to_point("4.2.1")
    def Pready_range(self, partition_low: int, partition_high: int) -> None:
        """Mark a range of partitions as ready."""
        self._partitioned().ready(range(cint(partition_low), cint(partition_high) + 1))

    @mpi.point_to_point("4.2.1")
    def Pready_list(self, partitions: Sequence[int]) -> None:
        """Mark a sequence of partitions as ready."""
        self._partitioned().ready([cint(partition) for partition in listed(partitions)])

    @mpi.point_to_point("4.2.2")
    def Parrived(self, partition: int) -> bool:
        """Test partial completion of a partitioned receive operation."""
        return bool(self._partitioned().arrived(cint(partition)))

    def _partitioned(self) -> Any:
        operation = self._live()
        if not hasattr(operation, "partitions"):
            fail(ERR_REQUEST, "not a partitioned operation", operation.subject)
        return operation


def _begin(operation: RequestOperation) -> None:
    if not operation.persistent:
        fail(ERR_REQUEST, "only a persistent request can be started", operation.subject)
    if operation.request is not None:
        fail(ERR_REQUEST, "the request is started already", operation.subject)
    operation.start()
