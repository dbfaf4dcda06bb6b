"""Datatypes (MPI 4.1, chapter 5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pysmpi.abi.entry import ENTRIES, entry
from pysmpi.abi.values import (
    datatypes,
    give,
    give_all,
    give_text,
    handle_at,
    read_integers,
    release,
    text,
    write_integer,
    write_integers,
)
from pysmpi.mpi.datatypes.datatypes import Datatype

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
