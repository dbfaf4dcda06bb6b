"""Requests and matched messages (MPI 4.1, sections 3.7 to 3.9).

A handle points to an `RequestOperation` (see `operations.py`); the methods wait for one or several
operations, and finish those that are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from pysmpi.kernel.choices import NO, SOME, TEST
from pysmpi.kernel.requests import KernelRequest, Receive, Send
from pysmpi.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    ERR_IN_STATUS,
    ERR_REQUEST,
    SUCCESS,
    UNDEFINED,
)
from pysmpi.mpi.base.exceptions import cint, fail, listed, sequence
from pysmpi.mpi.base.handles import Handle, type_name, wrong_type
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.datatypes.status import Status, check_status
from pysmpi.mpi.point_to_point.immediate import wait_for, wait_for_all
from pysmpi.mpi.point_to_point.operations import RequestOperation
from pysmpi.mpi.point_to_point.polling import charge, choose, poll

SUBSETS = 4  # complete requests up to which a strategy may choose any of their subsets

__all__ = ["Request", "Prequest", "REQUEST_NULL"]


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
        if not _tested(rank, operation):
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
        if not _tested(current(), operation):
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
            _empty(status)
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
        items = _listed(requests)
        active = _active(items)
        if not active:
            _empty(status)
            return UNDEFINED
        rank = current()
        rank.process.wait_any([operation.request for _, operation in active])
        control = rank.engine.control
        i = _first_done(active) if control is None else _chosen(rank, SOME, active)
        _end_one(rank, items, i, status)
        return i

    @classmethod
    @mpi.point_to_point("3.7.5")
    def Testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:
        """Test for completion of any previously initiated request."""
        if status is not None:
            check_status(status)
        items = _listed(requests)
        rank = current()
        i, flag = _look_for_one(rank, items, status)
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
        items = _listed(requests)
        i, flag = _look_for_one(current(), items, status)
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
        items = _listed(requests)
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
        items = _listed(requests)
        active = _active(items)
        rank = current()
        if not _tested_all(rank, active):
            _extend(statuses, len(items))
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
        items = _listed(requests)
        flag = _tested_all(current(), _active(items))
        entries = _extend(statuses, len(items))
        if flag:
            errors = []
            for i, item in enumerate(items):
                operation = item._impl
                status = None if entries is None else entries[i]
                if operation is None or operation.request is None:
                    _empty(status)
                else:
                    errors.append(operation.fill(status))
            _check_all(errors)
        return flag

    @classmethod
    @mpi.point_to_point("3.7.5")
    def Waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Wait for some previously initiated requests to complete."""
        items = _listed(requests)
        active = _active(items)
        if not active:
            return None
        rank = current()
        rank.process.wait_any([operation.request for _, operation in active])
        if rank.engine.control is not None:
            active = _chosen_some(rank, SOME, active)
        return _finish_some(rank, items, active, statuses)

    @classmethod
    @mpi.point_to_point("3.7.5")
    def Testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Test for completion of some previously initiated requests."""
        items = _listed(requests)
        active = _active(items)
        if not active:
            return None
        rank = current()
        return _finish_some(rank, items, _test_some(rank, active), statuses)

    @classmethod
    @mpi.point_to_point("3.7.6")
    def Get_status_some(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Non-destructive test for completion of some requests."""
        items = _listed(requests)
        active = _active(items)
        if not active:
            return None
        rank = current()
        done, entries = _done(rank, _test_some(rank, active), statuses)
        _check_all([
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
        rank = current()
        rank.process.wait([operation.request])
        return _take(rank, self, operation, status)

    @mpi.point_to_point("3.7.3")
    def test(self, status: Status | None = None) -> tuple[bool, Any | None]:
        """Test for the completion of a non-blocking operation."""
        operation = self._active(status)
        if operation is None:
            return True, None
        rank = current()
        if not _tested(rank, operation):
            return False, None
        rank.process.finish(operation.request)
        return True, _take(rank, self, operation, status)

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
        items = _listed(requests)
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
        items = _listed(requests)
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
        items = _listed(requests)
        results = _keep_results([item._impl for item in items])
        cls.Waitall(requests, statuses)
        return [results(i) for i in range(len(items))]

    @classmethod
    @mpi.point_to_point("3.7.5")
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Test for the completion of all previously initiated requests."""
        items = _listed(requests)
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
        items = _listed(requests)
        results = _keep_results([item._impl for item in items])
        found = cls.Waitsome(requests, statuses)
        return found, None if found is None else [results(i) for i in found]

    @classmethod
    @mpi.point_to_point("3.7.5")
    def testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Test for completion of some previously initiated requests."""
        items = _listed(requests)
        results = _keep_results([item._impl for item in items])
        found = cls.Testsome(requests, statuses)
        return found, None if found is None else [results(i) for i in found]

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
        for item in _listed(requests):
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


REQUEST_NULL = Request._define("REQUEST_NULL", None, 0x2C000000)


def _begin(operation: RequestOperation) -> None:
    if not operation.persistent:
        fail(ERR_REQUEST, "only a persistent request can be started", operation.subject)
    if operation.request is not None:
        fail(ERR_REQUEST, "the request is started already", operation.subject)
    operation.start()


def _listed(requests: object) -> list[Request]:
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


def _active(items: list[Request]) -> list[tuple[int, Any]]:
    return [
        (i, item._impl)
        for i, item in enumerate(items)
        if item._impl is not None and item._impl.request is not None
    ]


def _tested(rank: Rank, operation: RequestOperation) -> bool:
    """Test an operation: let the time of a test pass, and return whether it is complete then."""
    if not poll(rank, operation.done, _messages([(0, operation)])):
        return False
    rank.polls = 0
    return True


def _tested_all(rank: Rank, active: list[tuple[int, Any]]) -> bool:
    """Test whether all active operations are complete."""
    if active:
        if not poll(
            rank, lambda: all(operation.done() for _, operation in active), _messages(active)
        ):
            return False
        rank.polls = 0
    return True


def _look_for_one(rank: Rank, items: list[Request], status: Status | None) -> tuple[int, bool]:
    """Test whether one of the requests is complete.

    Returns its number and True, or UNDEFINED and whether no request is active.
    """
    active = _active(items)
    if not active:
        _empty(status)
        return UNDEFINED, True
    if rank.engine.control is None:
        charge(rank)
        i = _first_done(active)
    else:
        i = _chosen(rank, TEST, active)
    if i == UNDEFINED:
        _empty(status)
        return UNDEFINED, False
    rank.polls = 0
    return i, True


def _done(
    rank: Rank, active: list[tuple[int, Any]], statuses: list[Status] | None
) -> tuple[list[tuple[int, Any]], list[Status] | None]:
    """The active operations that are complete, and as many statuses."""
    done = [(i, operation) for i, operation in active if operation.done()]
    entries = _extend(statuses, len(done))
    if done:
        rank.polls = 0
    return done, entries


def _test_some(rank: Rank, active: list[tuple[int, Any]]) -> list[tuple[int, object]]:
    """The operations of which a test of several reports those that are complete."""
    if rank.engine.control is not None:
        return _chosen_some(rank, TEST, active)
    charge(rank)
    return active


def _messages(active: list[tuple[int, Any]]) -> dict[str, KernelRequest] | None:
    """The sends and receives of some operations; None if one is something else."""
    requests = {str(i): operation.request for i, operation in active}
    return requests if all(isinstance(one, (Send, Receive)) for one in requests.values()) else None


def _chosen(rank: Rank, kind: str, active: list[tuple[int, Any]]) -> int:
    """The number of the complete operation that a strategy chooses, or UNDEFINED."""

    def answers() -> list[str]:
        return [str(i) for i, operation in active if operation.done()]

    answer = _answer(rank, kind, answers, active)
    return UNDEFINED if answer == NO else int(answer)


def _chosen_some(rank: Rank, kind: str, active: list[tuple[int, Any]]) -> list[tuple[int, object]]:
    """The complete operations that a strategy chooses: all of them, or some."""

    def answers() -> list[str]:
        done = [str(i) for i, operation in active if operation.done()]
        sizes = range(len(done), 0, -1) if len(done) <= SUBSETS else (len(done), 1)
        return ["+".join(some) for size in sizes for some in combinations(done, size)]

    answer = _answer(rank, kind, answers, active)
    chosen = [] if answer == NO else answer.split("+")
    return [entry for entry in active if str(entry[0]) in chosen]


def _answer(
    rank: Rank, kind: str, answers: Callable[[], list[str]], active: list[tuple[int, Any]]
) -> str:
    if kind == TEST:
        return choose(rank, answers, _messages(active))
    control = rank.engine.control
    assert control is not None
    return control.ask(rank.process, kind, answers, _messages(active))


def _first_done(active: list[tuple[int, Any]]) -> int:
    """The number of the active operation that completed first, or UNDEFINED."""
    done = [entry for entry in active if entry[1].done()]
    return min(done, key=lambda entry: entry[1].request.time)[0] if done else UNDEFINED


def _end_one(rank: Rank, items: list[Request], i: int, status: Status | None) -> None:
    rank.polls = 0
    operation = items[i]._impl
    rank.process.finish(operation.request)
    items[i]._end(operation, status)


def _empty(status: Status | None) -> None:
    """Describe an operation that does not exist (MPI 4.1, section 3.7.3)."""
    if status is not None:
        status._fill(ANY_SOURCE, ANY_TAG, 0)
        status.error = SUCCESS


def _extend(statuses: Sequence[Status] | None, count: int) -> list[Status] | None:
    """As many statuses as requests: as in mpi4py, a list of the program is extended."""
    if statuses is None:
        return None
    items = sequence(statuses)
    for status in items:
        check_status(status, "statuses")
    missing = [Status() for _ in range(count - len(items))]
    if isinstance(statuses, list):
        statuses += missing
        return statuses
    return items + missing


def _finish_all(items: list[Request], statuses: list[Status] | None) -> None:
    entries = _extend(statuses, len(items))
    errors = []
    details: dict[str, None] = {}
    subject = None
    for i, item in enumerate(items):
        operation = item._impl
        status = None if entries is None else entries[i]
        if operation is None or operation.request is None:
            _empty(status)
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
    done, entries = _done(rank, active, statuses)
    if done:
        rank.process.wait([operation.request for _, operation in done])
    errors = []
    for k, (i, operation) in enumerate(done):
        error = items[i]._finish(operation, None if entries is None else entries[k])
        errors.append(error)
    _check_all(errors)
    return [i for i, _ in done]


def _check_all(errors: list[int]) -> None:
    """Report the error classes of several requests, if there are any."""
    if any(errors):
        fail(ERR_IN_STATUS, f"requests ended with the error classes {errors}", None)


def _take(rank: Rank, handle: Request, operation: RequestOperation, status: Status | None) -> Any:
    kept = operation.request
    handle._end(operation, status)
    if operation.persistent:
        operation.request, now = kept, operation.request
        value = operation.result()
        operation.request = now
        return value
    return operation.result()


def _keep_results(operations: list[Any]) -> Callable[[int], object]:
    """The objects of operations with handles that become null at completion."""

    def result(i: int) -> Any:
        return None if operations[i] is None else operations[i].result()

    return result
