"""Packing (MPI 4.1, sections 5.2 and 5.3): as the methods of mpi4py, for elements at an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.abi.entry import entry
from pysmpi.abi.values import (
    read_integers,
    reject,
    text,
    view,
    write_integer,
)
from pysmpi.mpi.base.constants import ERR_ARG, ERR_COUNT, ERR_TRUNCATE
from pysmpi.mpi.buffers.regions import place
from pysmpi.mpi.datatypes.external32 import decode, encode

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI


def _elements(address: int, count: int, datatype: Any) -> Any:
    if count < 0:
        reject(ERR_COUNT, f"count is {count}")
    return place(None, None, address, count, datatype, True)


def _signature(datatype: Any) -> Any:
    return datatype._live().layout.signature


def _end(start: int, nbytes: int, available: int) -> int:
    if start < 0:
        reject(ERR_ARG, f"position is {start}")
    if nbytes and start + nbytes > available:
        reject(ERR_TRUNCATE, f"{nbytes} bytes at position {start} of a buffer of {available} bytes")
    return start + nbytes


@entry
def Pack(
    inbuf: int, incount: int, datatype: MPI.Datatype, outbuf: int, outsize: int, position: int,
    comm: MPI.Comm, size: int,
) -> None:  # fmt: skip
    start = read_integers(position, 1, size)[0]
    message = _elements(inbuf, incount, datatype)
    end = _end(start, message.nbytes, outsize)
    if end > start:
        view(outbuf, outsize)[start:end] = message.pack()
    write_integer(position, end, size)


@entry
def Unpack(
    inbuf: int, insize: int, position: int, outbuf: int, outcount: int, datatype: MPI.Datatype,
    comm: MPI.Comm, size: int,
) -> None:  # fmt: skip
    start = read_integers(position, 1, size)[0]
    message = _elements(outbuf, outcount, datatype)
    end = _end(start, message.nbytes, insize)
    if end > start:
        message.unpack(view(inbuf, insize)[start:end])
    write_integer(position, end, size)


@entry
def Pack_size(incount: int, datatype: MPI.Datatype, comm: MPI.Comm, size: int, width: int) -> None:
    write_integer(size, datatype.Pack_size(incount, comm), width)


@entry
def Pack_external(
    datarep: int, inbuf: int, incount: int, datatype: MPI.Datatype, outbuf: int, outsize: int,
    position: int,
) -> None:  # fmt: skip
    nbytes = datatype.Pack_external_size(text(datarep), incount)
    start = read_integers(position, 1, 8)[0]
    end = _end(start, nbytes, outsize)
    if end > start:
        message = _elements(inbuf, incount, datatype)
        signature = _signature(datatype)
        encode(signature, incount, message.pack(), view(outbuf, outsize)[start:end])
    write_integer(position, end, 8)


@entry
def Unpack_external(
    datarep: int, inbuf: int, insize: int, position: int, outbuf: int, outcount: int,
    datatype: MPI.Datatype,
) -> None:  # fmt: skip
    nbytes = datatype.Pack_external_size(text(datarep), outcount)
    start = read_integers(position, 1, 8)[0]
    end = _end(start, nbytes, insize)
    if end > start:
        message = _elements(outbuf, outcount, datatype)
        native = bytearray(message.nbytes)
        decode(_signature(datatype), outcount, view(inbuf, insize)[start:end], native)
        message.unpack(native)
    write_integer(position, end, 8)


@entry
def Pack_external_size(datarep: int, incount: int, datatype: MPI.Datatype, size: int) -> None:
    write_integer(size, datatype.Pack_external_size(text(datarep), incount), 8)
