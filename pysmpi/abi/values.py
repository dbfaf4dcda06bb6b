"""Arguments and results of functions in C: memory, text, handles and statuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from pysmpi.abi.engine import (
    message,
    read_handles,
    read_integers,
    read_text,
    view,
    write_integer,
    write_integers,
)
from pysmpi.abi.process import here
from pysmpi.mpi.base.constants import ANY_SOURCE, ERR_ARG, ERR_BUFFER, ERR_COUNT
from pysmpi.mpi.buffers.contiguous import _element_of
from pysmpi.mpi.buffers.memory import IN_PLACE, Address
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.point_to_point.requests import Request

__all__ = [
    "IGNORED",
    "RejectedError",
    "buffer",
    "datatypes",
    "finished",
    "free",
    "give",
    "give_all",
    "give_request",
    "give_status",
    "give_statuses",
    "give_text",
    "handle_at",
    "handles",
    "number_of",
    "read_status",
    "reject",
    "release",
    "write_status",
    "read_handles",
    "read_integers",
    "requests",
    "status_argument",
    "text",
    "vector",
    "vector_w",
    "view",
    "write_integer",
    "write_integers",
]

IGNORED = 1  # STATUS_IGNORE and STATUSES_IGNORE
_IN_PLACE = (1 << 64) - 1
_REQUEST_NULL = 0x2C000000


class RejectedError(Exception):
    """A wrong argument: an error of the communicator, window or file of the call."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def reject(code: int, detail: str) -> NoReturn:
    """End the call with an error of its communicator, window or file."""
    raise RejectedError(code, detail)


def _check_memory(address: int, count: int, datatype: Any) -> None:
    """Refuse NULL for elements of a datatype without absolute addresses, as MPICH."""
    if not address and count > 0 and datatype._impl is not None:
        if datatype.Get_size() and not datatype.Get_true_extent()[0]:
            reject(ERR_BUFFER, f"the address of {count} elements is NULL")


def buffer(address: int, count: int, datatype: Any, blocks: int = 1) -> Any:
    """A message of `count` elements for each of `blocks` processes, at an address."""
    if blocks == 1:
        simple = message(address, count, datatype)
        if simple is not None:
            return simple
    if address == _IN_PLACE:
        return IN_PLACE
    if count < 0:
        reject(ERR_COUNT, f"count is {count}")
    element = _element_of(datatype._impl)
    if element is not None and element.dense and count * blocks and address:
        return [view(address, element.size * count * blocks), count, datatype]
    _check_memory(address, count * blocks, datatype)
    return [Address(address), count, datatype]


def vector(address: int, counts: int, displs: int, datatype: Any, n: int, size: int) -> Any:
    """A message of `n` blocks with counts and displacements of `size` bytes each."""
    if address == _IN_PLACE:
        return IN_PLACE
    numbers = read_integers(counts, n, size)
    _check_memory(address, max(numbers, default=0), datatype)
    return [Address(address), numbers, read_integers(displs, n, size), datatype]


def vector_w(
    address: int, counts: int, displs: int, types: int, n: int, size: int, displ: int
) -> Any:
    """A message of `n` blocks, each with a datatype; displacements are of `displ` bytes."""
    if address == _IN_PLACE:
        return IN_PLACE
    numbers, kinds = read_integers(counts, n, size), datatypes(types, n)
    if not address:
        for number, kind in zip(numbers, kinds, strict=True):
            _check_memory(address, number, kind)
    return [Address(address), numbers, read_integers(displs, n, displ), kinds]


def datatypes(address: int, n: int) -> list[Any]:
    """An array of datatypes."""
    return read_handles(address, n, ord("D"))


def requests(address: int, n: int) -> list[Any]:
    """An array of requests."""
    if n < 0:
        reject(ERR_COUNT, f"count is {n}")
    if n and not address:
        reject(ERR_ARG, "the array of requests is NULL")
    return read_handles(address, n, ord("R"))


def text(address: int) -> str:
    """A string of C."""
    return read_text(address).decode("utf-8", "surrogateescape")


def give_text(address: int, length: int, value: str, limit: int) -> None:
    """Store a string, of at most `limit` bytes with its end, and its length if asked for."""
    data = value.encode("utf-8", "surrogateescape")[: limit - 1]
    view(address, len(data) + 1)[:] = data + b"\0"
    if length:
        write_integer(length, len(data))


def give(address: int, handle: Any) -> None:
    """Store a handle as its integer."""
    write_integer(address, _given(handle))


def give_all(address: int, handles: Iterable[Any]) -> None:
    """Store an array of handles."""
    write_integers(address, [_given(handle) for handle in handles])


def number_of(handle: Any) -> int:
    """The integer of a handle, under which the program finds it again."""
    if isinstance(handle, Request):
        return _number_of_request(handle)
    impl = handle._impl
    number: int = handle._table.number(impl)
    if impl is not None:
        objects = here().objects
        if number not in objects:
            # A constant, because calls make other handles of a predefined object null.
            constant = handle._named.get(id(impl))
            objects[number] = handle if constant is None else constant[0]
    return number


def _given(handle: Any) -> int:
    """The integer of a handle that the program gets, which it may have already."""
    number = number_of(handle)
    process = here()
    if process.objects.get(number, handle) is not handle:
        process.references[number] = process.references.get(number, 0) + 1
    return number


def release(address: int, kind: str, null: Any) -> None:
    """Free the handle at an address, and its object with the last reference of the program."""
    references = here().references
    number = read_integers(address, 1)[0] & 0xFFFFFFFF
    if references.get(number, 0):
        references[number] -= 1
        write_integer(address, null._table.null)
        return
    free(address, kind, null)


def free(address: int, kind: str, null: Any, end: str = "Free") -> None:
    """Free the object of the handle at an address by its method `end`; store a null handle."""
    number = read_integers(address, 1)[0] & 0xFFFFFFFF
    getattr(handle_at(address, kind), end)()
    here().objects.pop(number, None)
    write_integer(address, null._table.null)


# Requests come and go with messages: they have integers of their own, which are used again.


def _number_of_request(request: Any) -> int:
    if request._impl is None:
        return _REQUEST_NULL
    process = here()
    number: int | None = process.numbers.get(id(request))
    if number is None:
        number = process.free.pop() if process.free else 0xAC000000 | len(process.numbers) + 1
        process.numbers[id(request)] = number
        process.objects[number] = request
    return number


def give_request(address: int, request: Any) -> None:
    """Store a request that has been started or made."""
    write_integer(address, _number_of_request(request))


def finished(address: int, requests: Sequence[Any]) -> None:
    """Store null handles in place of requests that are over, at their places of an array."""
    process = here()
    for place, request in enumerate(requests):
        if request._impl is None:
            number = process.numbers.pop(id(request), None)
            if number is not None:
                del process.objects[number]
                process.free.append(number)
            write_integer(address + 4 * place, _REQUEST_NULL)


def status_argument(address: int) -> Any:
    """A status to fill for the program; None if it ignores it."""
    return None if address == IGNORED or not address else Status()


def give_status(address: int, status: Any) -> None:
    """Store a status but its error, which only calls for many requests and empty statuses set."""
    if status is not None:
        fields = status._fields
        write_integers(address, fields if fields[2] == ANY_SOURCE else fields[:4])


def give_statuses(address: int, statuses: Sequence[Any]) -> None:
    """Store an array of statuses with their errors."""
    for place, status in enumerate(statuses):
        write_integers(address + 20 * place, status._fields)


def handles(address: int, n: int, kind: str) -> list[Any]:
    """An array of handles; `kind` is the letter of their class."""
    return read_handles(address, n, ord(kind))


def handle_at(address: int, kind: str) -> Any:
    """The object of the handle at an address; `kind` is the letter of its class."""
    return read_handles(address, 1, ord(kind))[0]


def read_status(address: int) -> Any:
    """The status at an address."""
    status = Status()
    for place, value in enumerate(read_integers(address, 5)):
        status._fields[place] = value
    return status


def write_status(address: int, status: Any) -> None:
    """Store all fields of a status."""
    write_integers(address, status._fields)
