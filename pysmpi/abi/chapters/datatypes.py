"""Datatypes, packing and statuses (MPI 4.1, chapter 5 and sections 3.2.5 and 13.3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pysmpi.abi.entry import ENTRIES, entry
from pysmpi.abi.values import (
    IGNORED,
    datatypes,
    give,
    give_all,
    give_text,
    handle_at,
    number_of,
    read_integers,
    read_status,
    reject,
    release,
    text,
    view,
    write_integer,
    write_integers,
    write_status,
)
from pysmpi.mpi.base.constants import ERR_ARG, ERR_COUNT, ERR_TRUNCATE
from pysmpi.mpi.buffers.regions import place
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.mpi.datatypes.external32 import decode, encode

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

OBJECT_NAME = 128


@entry
def Type_contiguous(count: int, oldtype: MPI.Datatype, newtype: int) -> None:
    give(newtype, oldtype.Create_contiguous(count))


@entry
def Type_vector(
    count: int, blocklength: int, stride: int, oldtype: MPI.Datatype, newtype: int
) -> None:
    give(newtype, oldtype.Create_vector(count, blocklength, stride))


@entry
def Type_create_hvector(
    count: int, blocklength: int, stride: int, oldtype: MPI.Datatype, newtype: int
) -> None:
    give(newtype, oldtype.Create_hvector(count, blocklength, stride))


@entry
def Type_indexed(
    count: int, blocklengths: int, displacements: int, oldtype: MPI.Datatype, newtype: int,
    size: int,
) -> None:  # fmt: skip
    made = oldtype.Create_indexed(
        read_integers(blocklengths, count, size), read_integers(displacements, count, size)
    )
    give(newtype, made)


@entry
def Type_create_hindexed(
    count: int, blocklengths: int, displacements: int, oldtype: MPI.Datatype, newtype: int,
    size: int,
) -> None:  # fmt: skip
    made = oldtype.Create_hindexed(
        read_integers(blocklengths, count, size), read_integers(displacements, count, 8)
    )
    give(newtype, made)


@entry
def Type_create_indexed_block(
    count: int, blocklength: int, displacements: int, oldtype: MPI.Datatype, newtype: int, size: int
) -> None:
    give(
        newtype,
        oldtype.Create_indexed_block(blocklength, read_integers(displacements, count, size)),
    )


@entry
def Type_create_hindexed_block(
    count: int, blocklength: int, displacements: int, oldtype: MPI.Datatype, newtype: int
) -> None:
    give(
        newtype, oldtype.Create_hindexed_block(blocklength, read_integers(displacements, count, 8))
    )


@entry
def Type_create_struct(
    count: int, blocklengths: int, displacements: int, types: int, newtype: int, size: int
) -> None:
    lengths = read_integers(blocklengths, count, size)
    places = read_integers(displacements, count, 8)
    numbers = read_integers(types, count)
    if LB in numbers or UB in numbers:
        give(newtype, _bounded(lengths, places, numbers))
        return
    give(newtype, MPI.Datatype.Create_struct(lengths, places, datatypes(types, count)))


# The markers of MPI-1: members of a structure that give its bounds.
LB, UB = 0x4C000010, 0x4C000011


def _bounded(lengths: list[int], places: list[int], numbers: list[int]) -> MPI.Datatype:
    """A structure with markers of its bounds."""
    kind: Any = MPI.Datatype
    members = [
        (length, place, kind._wrap(kind._lookup(number & 0xFFFFFFFF)))
        for length, place, number in zip(lengths, places, numbers)
        if number not in (LB, UB)
    ]
    columns: Any = [list(each) for each in zip(*members)] or [[], [], []]
    inner = MPI.Datatype.Create_struct(*columns)
    low, extent = inner.Get_extent()
    high = low + extent
    lows = [place for place, number in zip(places, numbers) if number == LB]
    highs = [place for place, number in zip(places, numbers) if number == UB]
    low, high = min(lows, default=low), max(highs, default=high)
    made = inner.Create_resized(low, high - low)
    inner.Free()
    return made


@entry
def Type_create_subarray(
    ndims: int, sizes: int, subsizes: int, starts: int, order: int, oldtype: MPI.Datatype,
    newtype: int, size: int,
) -> None:  # fmt: skip
    full, part, first = (read_integers(each, ndims, size) for each in (sizes, subsizes, starts))
    made = oldtype.Create_subarray(full, part, first, order)
    give(newtype, made)


@entry
def Type_create_darray(
    size: int, rank: int, ndims: int, gsizes: int, distribs: int, dargs: int, psizes: int,
    order: int, oldtype: MPI.Datatype, newtype: int, width: int,
) -> None:  # fmt: skip
    kinds, arguments, grid = (read_integers(each, ndims) for each in (distribs, dargs, psizes))
    made = oldtype.Create_darray(
        size, rank, read_integers(gsizes, ndims, width), kinds, arguments, grid, order
    )
    give(newtype, made)


@entry
def Type_create_resized(oldtype: MPI.Datatype, lb: int, extent: int, newtype: int) -> None:
    give(newtype, oldtype.Create_resized(lb, extent))


@entry
def Type_dup(oldtype: MPI.Datatype, newtype: int) -> None:
    give(newtype, MPI.DATATYPE_NULL)  # also if a callback of an attribute fails
    give(newtype, oldtype.Dup())


@entry
def Type_commit(datatype: int) -> None:
    handle_at(datatype, "D").Commit()


@entry
def Type_free(datatype: int) -> None:
    release(datatype, "D", MPI.DATATYPE_NULL)


@entry
def Type_create_f90_integer(r: int, newtype: int) -> None:
    give(newtype, MPI.Datatype.Create_f90_integer(r))


@entry
def Type_create_f90_real(p: int, r: int, newtype: int) -> None:
    give(newtype, MPI.Datatype.Create_f90_real(p, r))


@entry
def Type_create_f90_complex(p: int, r: int, newtype: int) -> None:
    give(newtype, MPI.Datatype.Create_f90_complex(p, r))


@entry
def Type_match_size(typeclass: int, size: int, datatype: int) -> None:
    give(datatype, MPI.Datatype.Match_size(typeclass, size))


@entry
def Type_get_value_index(
    value_type: MPI.Datatype, index_type: MPI.Datatype, pair_type: int
) -> None:
    give(pair_type, MPI.Datatype.Get_value_index(value_type, index_type))


@entry
def Type_size(datatype: MPI.Datatype, size: int, width: int) -> None:
    write_integer(size, datatype.Get_size(), width)


@entry
def Type_size_x(datatype: MPI.Datatype, size: int) -> None:
    write_integer(size, datatype.Get_size(), 8)


def _extents(read: Callable[[MPI.Datatype], tuple[int, int]]) -> Callable[..., None]:
    def extent(datatype: MPI.Datatype, lb: int, extent: int) -> None:
        low, length = read(datatype)
        write_integer(lb, low, 8)
        write_integer(extent, length, 8)

    return extent


for _name, _read in (
    ("Type_get_extent", MPI.Datatype.Get_extent),
    ("Type_get_true_extent", MPI.Datatype.Get_true_extent),
):
    ENTRIES[_name] = ENTRIES[f"{_name}_x"] = _extents(_read)


@entry
def Type_extent(datatype: MPI.Datatype, extent: int) -> None:
    write_integer(extent, datatype.Get_extent()[1], 8)


@entry
def Type_lb(datatype: MPI.Datatype, displacement: int) -> None:
    write_integer(displacement, datatype.Get_extent()[0], 8)


@entry
def Type_ub(datatype: MPI.Datatype, displacement: int) -> None:
    write_integer(displacement, sum(datatype.Get_extent()), 8)


@entry
def Type_set_name(datatype: MPI.Datatype, type_name: int) -> None:
    datatype.Set_name(text(type_name))


@entry
def Type_get_name(datatype: MPI.Datatype, type_name: int, resultlen: int) -> None:
    give_text(type_name, resultlen, datatype.Get_name(), OBJECT_NAME)


@entry
def Type_get_envelope(
    datatype: Datatype, num_integers: int, num_addresses: int, num_datatypes: int, combiner: int
) -> None:
    integers, addresses, _ = datatype._live().arguments(True)
    *_, types, kind = datatype.Get_envelope()
    write_integer(num_integers, len(integers))
    write_integer(num_addresses, len(addresses))
    write_integer(num_datatypes, types)
    write_integer(combiner, kind)


@entry
def Type_get_envelope_c(
    datatype: MPI.Datatype, num_integers: int, num_addresses: int, num_large_counts: int,
    num_datatypes: int, combiner: int,
) -> None:  # fmt: skip
    integers, addresses, counts, types, kind = datatype.Get_envelope()
    for address, value in (
        (num_integers, integers), (num_addresses, addresses), (num_large_counts, counts),
        (num_datatypes, types),
    ):  # fmt: skip
        write_integer(address, value, 8)
    write_integer(combiner, kind)


@entry
def Type_get_contents(
    datatype: Datatype, max_integers: int, max_addresses: int, max_datatypes: int,
    array_of_integers: int, array_of_addresses: int, array_of_datatypes: int,
) -> None:  # fmt: skip
    types = datatype.Get_contents()[3]
    integers, addresses, _ = datatype._live().arguments(True)
    write_integers(array_of_integers, integers[:max_integers])
    write_integers(array_of_addresses, addresses[:max_addresses], 8)
    give_all(array_of_datatypes, types[:max_datatypes])


@entry
def Type_get_contents_c(
    datatype: MPI.Datatype, max_integers: int, max_addresses: int, max_large_counts: int,
    max_datatypes: int, array_of_integers: int, array_of_addresses: int,
    array_of_large_counts: int, array_of_datatypes: int,
) -> None:  # fmt: skip
    integers, addresses, counts, types = datatype.Get_contents()
    write_integers(array_of_integers, integers[:max_integers])
    write_integers(array_of_addresses, addresses[:max_addresses], 8)
    write_integers(array_of_large_counts, counts[:max_large_counts], 8)
    give_all(array_of_datatypes, types[:max_datatypes])


@entry
def Get_address(location: int, address: int) -> None:
    write_integer(address, location, 8)


@entry
def Aint_add(base: int, disp: int) -> int:
    return MPI.Aint_add(base, disp)


@entry
def Aint_diff(addr1: int, addr2: int) -> int:
    return MPI.Aint_diff(addr1, addr2)


# Packing: as the methods of mpi4py, which take whole arrays, for elements at an address.


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


# Statuses.


@entry
def Get_count(status: int, datatype: MPI.Datatype, count: int, width: int) -> None:
    _counted(count, read_status(status).Get_count(datatype), width)


@entry
def Get_elements(status: int, datatype: MPI.Datatype, count: int, width: int) -> None:
    _counted(count, read_status(status).Get_elements(datatype), width)


@entry
def Get_elements_x(status: int, datatype: MPI.Datatype, count: int) -> None:
    _counted(count, read_status(status).Get_elements(datatype), 8)


def _counted(address: int, count: int, width: int) -> None:
    write_integer(address, count if width == 8 or count < 1 << 31 else MPI.UNDEFINED, width)


@entry
def Test_cancelled(status: int, flag: int) -> None:
    write_integer(flag, read_status(status).Is_cancelled())


def _set(change: Callable[[Any], object], address: int) -> None:
    if address != IGNORED:
        status = read_status(address)
        change(status)
        write_status(address, status)


@entry
def Status_set_cancelled(status: int, flag: int) -> None:
    _set(lambda made: made.Set_cancelled(bool(flag)), status)


@entry
def Status_set_elements(status: int, datatype: MPI.Datatype, count: int) -> None:
    _set(lambda made: made.Set_elements(datatype, count), status)


@entry
def Status_set_elements_x(status: int, datatype: MPI.Datatype, count: int) -> None:
    _set(lambda made: made.Set_elements(datatype, count), status)


def _field(name: str, place: int) -> None:
    def get(status: int, value: int) -> None:
        write_integer(value, read_integers(status, 5)[place])

    def put(status: int, value: int) -> None:
        write_integer(status + 4 * place, value)

    ENTRIES[f"Status_get_{name}"] = get
    ENTRIES[f"Status_set_{name}"] = put


_field("source", 2)
_field("tag", 3)
_field("error", 4)


def _copy_status(source: int, target: int) -> None:
    write_integers(target, read_integers(source, 5))


for _name in ("c2f", "f2c", "c2f08", "f082c", "f082f", "f2f08"):
    ENTRIES[f"Status_{_name}"] = _copy_status

# The names of MPI-1.
for _old, _new in (
    ("Address", "Get_address"), ("Type_hvector", "Type_create_hvector"),
):  # fmt: skip
    ENTRIES[_old] = ENTRIES[_new]


@entry
def Type_struct(
    count: int, blocklengths: int, displacements: int, types: int, newtype: int
) -> None:
    Type_create_struct(count, blocklengths, displacements, types, newtype, 4)


@entry
def Type_hindexed(
    count: int, blocklengths: int, displacements: int, oldtype: MPI.Datatype, newtype: int
) -> None:
    Type_create_hindexed(count, blocklengths, displacements, oldtype, newtype, 4)


# The form of the arguments of a constructor is asked for later.


def _small(function: Callable[..., object]) -> Callable[..., object]:
    at = function.__code__.co_varnames.index("newtype")

    def make(*arguments: int) -> None:
        function(*arguments)
        handle_at(arguments[at], "D")._live().small = True

    return make


_OF_MPI_1 = ("Type_struct", "Type_hindexed", "Type_hvector")
for _name in [name for name in ENTRIES if re.match(r"Type_(?!dup|get|create_f90)\w+$", name)]:
    if "newtype" in ENTRIES[_name].__code__.co_varnames:
        if _name not in _OF_MPI_1:
            ENTRIES[f"{_name}_c"] = ENTRIES[_name]
        ENTRIES[_name] = _small(ENTRIES[_name])


# Integers of handles for Fortran, which are those of C here.


def _same(prefix: str, letter: str) -> None:
    def number(handle: Any) -> int:
        return number_of(handle)

    def same(value: int) -> int:
        return value

    for name in ("c2f", "toint"):
        ENTRIES[f"{prefix}_{name}"] = number
    for name in ("f2c", "fromint"):
        ENTRIES[f"{prefix}_{name}"] = same


for _prefix, _letter in (
    ("Comm", "C"), ("Type", "D"), ("Request", "R"), ("Message", "M"), ("Op", "O"), ("Group", "G"),
    ("Info", "I"), ("Errhandler", "E"), ("Session", "S"), ("Win", "W"), ("File", "F"),
):  # fmt: skip
    _same(_prefix, _letter)
