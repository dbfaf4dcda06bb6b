"""Requests and matched messages (MPI 4.1, sections 3.7 to 3.9).

A handle points to a `RequestOperation` (see `operations.py`); the methods wait for one or several
operations, and finish those that are complete (see `completion.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.kernel.choices import SOME
from pysmpi.mpi.base.constants import (
    ERR_IN_STATUS,
    ERR_REQUEST,
    SUCCESS,
    UNDEFINED,
)
from pysmpi.mpi.base.exceptions import fail, listed
from pysmpi.mpi.base.handles import Handle, type_name, wrong_type
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.datatypes.status import Status, check_status
from pysmpi.mpi.point_to_point.completion import (
    active_operations,
    all_complete,
    any_complete,
    check_errors,
    choose_one,
    choose_some,
    complete_operations,
    fill_empty,
    first_complete,
    reportable,
    status_list,
    test_complete,
)
from pysmpi.mpi.point_to_point.immediate import wait_for, wait_for_all
from pysmpi.mpi.point_to_point.operations import RequestOperation

__all__ = ["Request", "REQUEST_NULL"]


class Request(Handle, kind=11, null=0x2C000000, error=ERR_REQUEST):
    """Request handle."""

    __slots__ = ("ob_buf",)

    ob_buf: object

    _shows_number = False

    def __new__(cls, request: Request | None = None) -> Any:
        """Make a copy of a handle."""
        self = object.__new__(cls)
        Handle._copy(self, request, "request")
        return self

    @classmethod
    def _wrap(cls, impl: object) -> object:
        return cls._of(impl)

    def _retire(self) -> None:
        if self._table.given:
            super()._retire()
        else:
            self._impl = None

    # Completion of one request.

    @mpi.point_to_point("3.7.3")
    def Wait(self, status: Status | None = None) -> bool:
        """Wait for a non-blocking operation to complete."""
        if status is None and wait_for(self):
            return True
        operation = self._active(status)
        if operation is None:
            return True
        current().process.wait([operation.request])
        self._end(operation, status)
        return True

    @mpi.point_to_point("3.7.3")
    def Test(self, status: Status | None = None) -> bool:
        """Test for the completion of a non-blocking operation."""
        operation = self._active(status)
        if operation is None:
            return True
        rank = current()
        if not test_complete(rank, operation):
            return False
        rank.process.finish(operation.request)
        self._end(operation, status)
        return True

    @mpi.point_to_point("3.7.6")
    def Get_status(self, status: Status | None = None) -> bool:
        """Non-destructive test for the completion of a request."""
        operation = self._active(status)
        if operation is None:
            return True
        if not test_complete(current(), operation):
            return False
        error = operation.fill(status)
        if error:
            fail(error, operation.error_detail(error), operation.subject)
        return True

    def _active(self, status: Status | None) -> Any:
        """The operation, or None if it is not active: then `status` says so."""
        if status is not None:
            check_status(status)
        operation = self._sync()
        if operation is None or operation.request is None:
            fill_empty(status)
            return None
        return operation

    def _finish(self, operation: RequestOperation, status: Status | None) -> int:
        error = operation.fill(status)
        error = operation.ended() or error
        if operation.persistent:
            operation.request = None
        else:
            self._retire()
        return error

    def _end(self, operation: RequestOperation, status: Status | None) -> None:
        """Return from the call that completed the operation, with its error if it has one."""
        error = self._finish(operation, status)
        if error:
            fail(error, operation.error_detail(error), operation.subject)

    # Completion of several requests.

    @classmethod
    @mpi.point_to_point("3.7.5")
    def Waitany(cls, requests: Sequence[Request], status: Status | None = None) -> int:
        """Wait for any previously initiated request to complete."""
        if status is not None:
            check_status(status)
        items = request_list(requests)
        active = active_operations(items)
        if not active:
            fill_empty(status)
            return UNDEFINED
        rank = current()
        rank.process.wait_any([operation.request for _, operation in active])
        control = rank.engine.control
        i = first_complete(active) if control is None else choose_one(rank, SOME, active)
        _end_one(rank, items, i, status)
        return i

    @classmethod
    @mpi.point_to_point("3.7.5")
    def Testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:
        """Test for completion of any previously initiated request."""
        if status is not None:
            check_status(status)
        items = request_list(requests)
        rank = current()
        i, flag = any_complete(rank, items, status)
        if i != UNDEFINED:
            _end_one(rank, items, i, status)
        return i, flag

    @classmethod
    @mpi.point_to_point("3.7.6")
    def Get_status_any(
        cls, requests: Sequence[Request], status: Status | None = None
    ) -> tuple[int, bool]:
        """Non-destructive test for the completion of any requests."""
        if status is not None:
            check_status(status)
        items = request_list(requests)
        i, flag = any_complete(current(), items, status)
        if i != UNDEFINED:
            operation = items[i]._impl
            error = operation.fill(status)
            if error:
                fail(error, operation.error_detail(error), operation.subject)
        return i, flag

    @classmethod
    @mpi.point_to_point("3.7.5")
    def Waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Wait for all previously initiated requests to complete."""
        if statuses is None and wait_for_all(requests, Request):
            return True
        rank = current()
        process = rank.process
        items = request_list(requests)
        operations = [item._impl for item in items]
        waits = [
            operation.request
            for operation in operations
            if operation is not None and operation.request is not None
        ]
        if waits:
            process.wait(waits)
        _finish_all(items, statuses)
        return True

    @classmethod
    @mpi.point_to_point("3.7.5")
    def Testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Test for the completion of all previously initiated requests."""
        items = request_list(requests)
        active = active_operations(items)
        rank = current()
        if not all_complete(rank, active):
            status_list(statuses, len(items))
            return False
        if active:
            rank.process.wait([operation.request for _, operation in active])
        _finish_all(items, statuses)
        return True

    @classmethod
    @mpi.point_to_point("3.7.6")
    def Get_status_all(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> bool:
        """Non-destructive test for the completion of all requests."""
        items = request_list(requests)
        flag = all_complete(current(), active_operations(items))
        entries = status_list(statuses, len(items))
        if flag:
            errors = []
            for i, item in enumerate(items):
                operation = item._impl
                status = None if entries is None else entries[i]
                if operation is None or operation.request is None:
                    fill_empty(status)
                else:
                    errors.append(operation.fill(status))
            check_errors(errors)
        return flag

    @classmethod
    @mpi.point_to_point("3.7.5")
    def Waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Wait for some previously initiated requests to complete."""
        items = request_list(requests)
        active = active_operations(items)
        if not active:
            return None
        rank = current()
        rank.process.wait_any([operation.request for _, operation in active])
        if rank.engine.control is not None:
            active = choose_some(rank, SOME, active)
        return _finish_some(rank, items, active, statuses)

    @classmethod
    @mpi.point_to_point("3.7.5")
    def Testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Test for completion of some previously initiated requests."""
        items = request_list(requests)
        active = active_operations(items)
        if not active:
            return None
        rank = current()
        return _finish_some(rank, items, reportable(rank, active), statuses)

    @classmethod
    @mpi.point_to_point("3.7.6")
    def Get_status_some(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Non-destructive test for completion of some requests."""
        items = request_list(requests)
        active = active_operations(items)
        if not active:
            return None
        rank = current()
        done, entries = complete_operations(rank, reportable(rank, active), statuses)
        check_errors([
            operation.fill(None if entries is None else entries[k])
            for k, (_, operation) in enumerate(done)
        ])  # fmt: skip
        return [i for i, _ in done]

    # Other calls.

    @mpi.point_to_point("3.8.4")
    def Cancel(self) -> None:
        """Cancel a request."""
        operation = self._live()
        if operation.request is not None:
            operation.cancel()

    @mpi.point_to_point("3.7.3")
    def Free(self) -> None:
        """Free a communication request."""
        operation = self._live()
        operation.release()
        self._retire()

    # Lower-case calls return the objects that were received.

    @mpi.point_to_point("3.7.3")
    def wait(self, status: Status | None = None) -> Any:
        """Wait for a non-blocking operation to complete."""
        operation = self._active(status)
        if operation is None:
            return None
        current().process.wait([operation.request])
        return _take(self, operation, status)

    @mpi.point_to_point("3.7.3")
    def test(self, status: Status | None = None) -> tuple[bool, Any | None]:
        """Test for the completion of a non-blocking operation."""
        operation = self._active(status)
        if operation is None:
            return True, None
        rank = current()
        if not test_complete(rank, operation):
            return False, None
        rank.process.finish(operation.request)
        return True, _take(self, operation, status)

    @mpi.point_to_point("3.7.6")
    def get_status(self, status: Status | None = None) -> bool:
        """Non-destructive test for the completion of a request."""
        return self.Get_status(status)

    @classmethod
    @mpi.point_to_point("3.7.5")
    def waitany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, Any]:
        """Wait for any previously initiated request to complete."""
        if status is not None:
            check_status(status)
        items = request_list(requests)
        operations = [item._impl for item in items]
        results = _keep_results(operations)
        i = cls.Waitany(requests, status)
        return i, None if i == UNDEFINED else results(i)

    @classmethod
    @mpi.point_to_point("3.7.5")
    def testany(
        cls, requests: Sequence[Request], status: Status | None = None
    ) -> tuple[int, bool, Any | None]:
        """Test for completion of any previously initiated request."""
        items = request_list(requests)
        results = _keep_results([item._impl for item in items])
        i, flag = cls.Testany(requests, status)
        return i, flag, None if i == UNDEFINED else results(i)

    @classmethod
    @mpi.point_to_point("3.7.6")
    def get_status_any(
        cls, requests: Sequence[Request], status: Status | None = None
    ) -> tuple[int, bool]:
        """Non-destructive test for the completion of any requests."""
        return cls.Get_status_any(requests, status)

    @classmethod
    @mpi.point_to_point("3.7.5")
    def waitall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[Any]:
        """Wait for all previously initiated requests to complete."""
        items = request_list(requests)
        results = _keep_results([item._impl for item in items])
        cls.Waitall(requests, statuses)
        return [results(i) for i in range(len(items))]

    @classmethod
    @mpi.point_to_point("3.7.5")
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Test for the completion of all previously initiated requests."""
        items = request_list(requests)
        results = _keep_results([item._impl for item in items])
        if not cls.Testall(requests, statuses):
            return False, None
        return True, [results(i) for i in range(len(items))]

    @classmethod
    @mpi.point_to_point("3.7.6")
    def get_status_all(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> bool:
        """Non-destructive test for the completion of all requests."""
        return cls.Get_status_all(requests, statuses)

    @classmethod
    @mpi.point_to_point("3.7.5")
    def waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Wait for some previously initiated requests to complete."""
        items = request_list(requests)
        results = _keep_results([item._impl for item in items])
        indices = cls.Waitsome(requests, statuses)
        return indices, None if indices is None else [results(i) for i in indices]

    @classmethod
    @mpi.point_to_point("3.7.5")
    def testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Test for completion of some previously initiated requests."""
        items = request_list(requests)
        results = _keep_results([item._impl for item in items])
        indices = cls.Testsome(requests, statuses)
        return indices, None if indices is None else [results(i) for i in indices]

    @classmethod
    @mpi.point_to_point("3.7.6")
    def get_status_some(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Non-destructive test for completion of some requests."""
        return cls.Get_status_some(requests, statuses)

    @mpi.local("3.8.4")
    def cancel(self) -> None:
        """Cancel a request."""
        self.Cancel()


REQUEST_NULL = Request._define("REQUEST_NULL", None, 0x2C000000)


def request_list(requests: object) -> list[Request]:
    """The handles of an argument; objects of other types are refused."""
    items = listed(requests)
    if not hasattr(requests, "__len__"):
        raise TypeError(f"requests: object of type {type_name(requests)!r} has no len()")
    for item in items:
        if not isinstance(item, Request):
            raise wrong_type("requests", Request, item)
        item._sync()
    if not isinstance(requests, list | tuple):
        call = current().call
        if call is not None:
            call.handles = items
    return items


def _end_one(rank: Rank, items: list[Request], i: int, status: Status | None) -> None:
    rank.polls = 0
    operation = items[i]._impl
    rank.process.finish(operation.request)
    items[i]._end(operation, status)


def _finish_all(items: list[Request], statuses: list[Status] | None) -> None:
    entries = status_list(statuses, len(items))
    errors = []
    details: dict[str, None] = {}
    subject = None
    for i, item in enumerate(items):
        operation = item._impl
        status = None if entries is None else entries[i]
        if operation is None or operation.request is None:
            fill_empty(status)
            errors.append(SUCCESS)
            continue
        error = item._finish(operation, status)
        errors.append(error)
        if error:
            subject = operation.subject
            details.setdefault(operation.error_detail(error))
    if any(errors):
        if entries is not None:
            for status, error in zip(entries, errors):
                status.error = error
        said = [f"requests ended with the error classes {errors}", *filter(None, details)]
        fail(ERR_IN_STATUS, ": ".join(said), subject)


def _finish_some(
    rank: Rank,
    items: list[Request],
    active: list[tuple[int, Any]],
    statuses: list[Status] | None,
) -> list[int]:
    done, entries = complete_operations(rank, active, statuses)
    if done:
        rank.process.wait([operation.request for _, operation in done])
    errors = []
    for k, (i, operation) in enumerate(done):
        error = items[i]._finish(operation, None if entries is None else entries[k])
        errors.append(error)
    check_errors(errors)
    return [i for i, _ in done]


def _take(handle: Request, operation: RequestOperation, status: Status | None) -> Any:
    request = operation.request
    handle._end(operation, status)
    if operation.persistent:
        operation.request, now = request, operation.request
        value = operation.result()
        operation.request = now
        return value
    return operation.result()


def _keep_results(operations: list[Any]) -> Callable[[int], object]:
    """The objects of operations with handles that become null at completion."""

    def result(i: int) -> Any:
        return None if operations[i] is None else operations[i].result()

    return result
