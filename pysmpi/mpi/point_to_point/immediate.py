"""The start of non-blocking sends and receives, and a short way to complete them.

The functions for completion are for handles without an integer in C code, operations that are not
persistent, and calls without a status. They return False, without an effect, in all other cases.

This module is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive, Send
from pysmpi.mpi.base.constants import ERR_IN_STATUS, SUCCESS
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.handles import Handle, _cells
from pysmpi.mpi.base.running import calling_rank
from pysmpi.mpi.buffers.contiguous import MessageRegion
from pysmpi.mpi.groups.communicator import communicator_of
from pysmpi.mpi.point_to_point.envelopes import new_receive, new_send, withdrawn
from pysmpi.mpi.point_to_point.operations import NoOperation, ReceiveOperation, SendOperation

if TYPE_CHECKING:
    from pysmpi.mpi.point_to_point.operations import RequestOperation

H = TypeVar("H", bound=Handle)

_new: Final[Any] = object.__new__
# Constants of the compiled module, which are read without a look into a dictionary.
_SEND: Final[Any] = SendOperation
_RECEIVE: Final[Any] = ReceiveOperation
_written: Final[Any] = _cells


def send_later(
    comm: object, payload: object, dest: object, tag: object, mode: int, kind: type[H]
) -> H:
    """Start a send of a message or of packed data; return a handle of class `kind`."""
    rank = calling_rank()
    communicator = communicator_of(comm, rank)
    process: Process = rank.process
    send = new_send(comm, communicator, process, payload, dest, tag, mode)
    operation: RequestOperation
    if send is None:
        operation = NoOperation(rank, comm, False)
    else:
        send.immediate = True
        operation = _SEND(rank, comm, None)
        operation.request = send
        process.start(send)
    return _handle(kind, operation, payload)


def receive_later(
    comm: object,
    payload: object,
    source: object,
    tag: object,
    kind: type[H],
    unpickle: Callable[[Any], object] | None = None,
) -> H:
    """Start a receive into a message or an `ObjectBuffer`; return a handle of class `kind`."""
    rank = calling_rank()
    communicator = communicator_of(comm, rank)
    process: Process = rank.process
    receive = new_receive(comm, communicator, process, payload, source, tag)
    operation: RequestOperation
    if receive is None:
        operation = NoOperation(rank, comm, True)
    else:
        operation = _RECEIVE(rank, comm, None, unpickle)
        operation.request = receive
        process.start(receive)
    return _handle(kind, operation, payload)


def _handle(kind: type[H], operation: RequestOperation, payload: object) -> H:
    handle = _new(kind)
    handle._impl = operation
    if isinstance(payload, MessageRegion):
        handle.ob_buf = payload
    return handle  # type: ignore[no-any-return]


def wait_for(handle: Any) -> bool:
    """Wait for one operation."""
    operation = handle._impl
    request = _plain_request(operation)
    if request is None or _written or handle._table.given:
        return False
    process: Process = calling_rank().process
    process.wait([request])
    if _ended_well(request):
        handle._impl = None
    else:
        handle._end(operation, None)
    return True


def wait_for_all(handles: object, family: type[Handle]) -> bool:
    """Wait for the operations of a list of handles of a family."""
    if handles.__class__ is not list and handles.__class__ is not tuple:
        return False
    if _written or family._table.given:
        return False
    items: list[Any] = list(handles)
    operations: list[Any] = []
    waits: list[KernelRequest] = []
    active: list[Any] = []
    for handle in items:
        if not isinstance(handle, family):
            return False
        operation = handle._impl
        operations.append(operation)
        if operation is not None:
            request = _plain_request(operation)
            if request is None:
                return False
            waits.append(request)
            active.append(handle)
    if len(waits) == 0:
        return True
    process: Process = calling_rank().process
    process.wait(waits)
    well = True
    for i in range(len(waits)):
        active[i]._impl = None
        well = _ended_well(waits[i]) and well
    if not well:
        _report(operations)
    return True


def _report(operations: list[Any]) -> None:
    """Fail with the errors of completed operations, None for each handle without one."""
    errors = [SUCCESS if operation is None else operation.fill(None) for operation in operations]
    failed = [i for i in range(len(errors)) if errors[i] != SUCCESS]
    if len(failed) > 0:
        subject = operations[failed[-1]].subject
        fail(ERR_IN_STATUS, f"requests ended with the error classes {errors}", subject)


def _plain_request(operation: object) -> KernelRequest | None:
    """The request of an active send or receive that is not persistent; else None."""
    kind = type(operation)
    if kind is not _RECEIVE and kind is not _SEND:
        return None
    return operation.request  # type: ignore[attr-defined, no-any-return]


def _ended_well(request: KernelRequest) -> bool:
    """Whether the request of a plain operation is without error; else `fill` tells the error."""
    if isinstance(request, Receive):
        return request.message is not None and not request.truncated
    return isinstance(request, Send) and not withdrawn(request)
