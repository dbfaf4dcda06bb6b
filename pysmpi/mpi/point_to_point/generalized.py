"""Generalized requests: operations that the program itself completes (MPI 4.1, section 13.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.base.attributes import reported
from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG, ERR_REQUEST, SUCCESS
from pysmpi.mpi.base.errhandlers import FAILURES
from pysmpi.mpi.base.exceptions import fail, listed
from pysmpi.mpi.base.handles import wrong_type
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.calls import computing, mpi
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.point_to_point.operations import RequestOperation
from pysmpi.mpi.point_to_point.requests import Request

__all__ = ["Grequest"]


class GeneralizedOperation(RequestOperation):
    """A generalized request: the program completes it (MPI 4.1, section 13.2)."""

    __slots__ = ("query", "free_function", "cancel_function", "args", "kwargs", "value")

    def __init__(self, rank: Rank, functions: Sequence[object], args: object, kwargs: Any) -> None:
        super().__init__(rank, None)
        self.query, self.free_function, self.cancel_function = functions
        self.args = tuple(listed(args)) if args is not None else ()
        try:
            self.kwargs = dict(kwargs) if kwargs is not None else {}
        except (TypeError, ValueError) as error:
            raise type(error)(f"kwargs: {error}") from None
        self.value: object = None
        self.request = KernelRequest()

    def fill(self, status: Status | None) -> int:
        filled = Status() if status is None else status
        filled._fill(ANY_SOURCE, ANY_TAG, 0)
        return self._call(self.query, filled)

    def ended(self) -> int:
        return self._call(self.free_function)

    def result(self) -> object:
        return self.value

    def cancel(self) -> None:
        error = self._call(self.cancel_function, self.done())
        if error:
            fail(error, "the cancel function failed", self.subject)

    def release(self) -> None:
        error = self._call(self.free_function)
        if error:
            fail(error, "the free function failed", self.subject)

    def _call(self, function: Any, *first: Any) -> int:
        if function is None:
            return SUCCESS
        try:
            with computing():
                function(*first, *self.args, **self.kwargs)
        except FAILURES as error:
            return reported(error)
        return SUCCESS


class Grequest(Request):
    """Generalized request handle."""

    __slots__ = ("_room",)  # as large as mpi4py's

    def __new__(cls, request: Request | None = None) -> Any:
        self = super().__new__(cls, request)
        if self._impl is not None and not isinstance(request, Grequest):
            raise wrong_type("request", Grequest, request)
        return self

    @classmethod
    @mpi.point_to_point("13.2")
    def Start(
        cls,
        query_fn: Callable[..., None] | None = None,
        free_fn: Callable[..., None] | None = None,
        cancel_fn: Callable[..., None] | None = None,
        args: tuple[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Grequest:
        """Create and return a user-defined request."""
        operation = GeneralizedOperation(current(), (query_fn, free_fn, cancel_fn), args, kwargs)
        return cls._of(operation)

    @mpi.point_to_point("13.2")
    def Complete(self) -> None:
        """Notify that a user-defined request is complete."""
        operation = self._live()
        if operation.request.done:
            fail(ERR_REQUEST, "the request is complete already", operation.subject)
        rank = current()
        operation.request.complete(rank.engine.now)

    @mpi.point_to_point("13.2")
    def complete(self, obj: object = None) -> None:
        """Notify that a user-defined request is complete."""
        self._live().value = obj
        self.Complete()
