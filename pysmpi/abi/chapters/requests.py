"""Completion of requests, and statuses (MPI 4.1, sections 3.2.5, 3.7 to 3.9 and 13.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pysmpi.abi.entry import entry
from pysmpi.abi.values import (
    IGNORED,
    finished,
    give_status,
    give_statuses,
    requests,
    status_argument,
    write_integer,
    write_integers,
)

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI


def _statuses(address: int) -> list[MPI.Status] | None:
    return None if address == IGNORED or not address else []


@entry
def Wait(request: int, status: int) -> None:
    items = requests(request, 1)
    result = status_argument(status)
    try:
        items[0].Wait(result)
    finally:
        give_status(status, result)
        finished(request, items)


@entry
def Test(request: int, flag: int, status: int) -> None:
    items = requests(request, 1)
    result = status_argument(status)
    done = False
    try:
        done = items[0].Test(result)
    finally:
        write_integer(flag, done)
        if done:
            give_status(status, result)
        finished(request, items)


@entry
def Waitall(count: int, array_of_requests: int, array_of_statuses: int) -> None:
    items = requests(array_of_requests, count)
    results = _statuses(array_of_statuses)
    try:
        MPI.Request.Waitall(items, results)
    finally:
        give_statuses(array_of_statuses, results or ())
        finished(array_of_requests, items)


@entry
def Testall(count: int, array_of_requests: int, flag: int, array_of_statuses: int) -> None:
    items = requests(array_of_requests, count)
    results = _statuses(array_of_statuses)
    done = False
    try:
        done = MPI.Request.Testall(items, results)
    finally:
        write_integer(flag, done)
        if done:
            give_statuses(array_of_statuses, results or ())
        finished(array_of_requests, items)


@entry
def Waitany(count: int, array_of_requests: int, indx: int, status: int) -> None:
    items = requests(array_of_requests, count)
    result = status_argument(status)
    try:
        write_integer(indx, MPI.Request.Waitany(items, result))
    finally:
        give_status(status, result)
        finished(array_of_requests, items)


@entry
def Testany(count: int, array_of_requests: int, indx: int, flag: int, status: int) -> None:
    items = requests(array_of_requests, count)
    result = status_argument(status)
    place, done = MPI.Request.Testany(items, result)
    write_integer(indx, place)
    write_integer(flag, done)
    if done:
        give_status(status, result)
    finished(array_of_requests, items)


def _some(
    complete: Callable[..., list[int] | None],
    incount: int,
    array_of_requests: int,
    outcount: int,
    array_of_indices: int,
    array_of_statuses: int,
) -> None:
    items = requests(array_of_requests, incount)
    results = _statuses(array_of_statuses)
    places = complete(items, results)
    if places is None:
        write_integer(outcount, MPI.UNDEFINED)
        return
    write_integer(outcount, len(places))
    write_integers(array_of_indices, places)
    give_statuses(array_of_statuses, results or ())
    finished(array_of_requests, items)


@entry
def Waitsome(
    incount: int, array_of_requests: int, outcount: int, array_of_indices: int,
    array_of_statuses: int,
) -> None:  # fmt: skip
    _some(
        MPI.Request.Waitsome, incount, array_of_requests, outcount, array_of_indices,
        array_of_statuses,
    )  # fmt: skip


@entry
def Testsome(
    incount: int, array_of_requests: int, outcount: int, array_of_indices: int,
    array_of_statuses: int,
) -> None:  # fmt: skip
    _some(
        MPI.Request.Testsome, incount, array_of_requests, outcount, array_of_indices,
        array_of_statuses,
    )  # fmt: skip


@entry
def Request_get_status(request: MPI.Request, flag: int, status: int) -> None:
    result = status_argument(status)
    done = request.Get_status(result)
    write_integer(flag, done)
    if done:
        give_status(status, result)


@entry
def Request_get_status_all(
    count: int, array_of_requests: int, flag: int, array_of_statuses: int
) -> None:
    results = _statuses(array_of_statuses)
    done = MPI.Request.Get_status_all(requests(array_of_requests, count), results)
    write_integer(flag, done)
    if done:
        give_statuses(array_of_statuses, results or ())


@entry
def Request_get_status_any(
    count: int, array_of_requests: int, indx: int, flag: int, status: int
) -> None:
    result = status_argument(status)
    place, done = MPI.Request.Get_status_any(requests(array_of_requests, count), result)
    write_integer(indx, place)
    write_integer(flag, done)
    if done:
        give_status(status, result)


@entry
def Request_get_status_some(
    incount: int, array_of_requests: int, outcount: int, array_of_indices: int,
    array_of_statuses: int,
) -> None:  # fmt: skip
    results = _statuses(array_of_statuses)
    places = MPI.Request.Get_status_some(requests(array_of_requests, incount), results)
    write_integer(outcount, MPI.UNDEFINED if places is None else len(places))
    if places:
        write_integers(array_of_indices, places)
        give_statuses(array_of_statuses, results or ())


@entry
def Request_free(request: int) -> None:
    items = requests(request, 1)
    items[0].Free()
    finished(request, items)


@entry
def Cancel(request: int) -> None:
    requests(request, 1)[0].Cancel()


@entry
def Start(request: int) -> None:
    requests(request, 1)[0].Start()


@entry
def Startall(count: int, array_of_requests: int) -> None:
    MPI.Prequest.Startall(requests(array_of_requests, count))
