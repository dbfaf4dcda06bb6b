"""The object of a datatype handle: its constructor, and its layout.

A `Type` never changes after its creation, so every rank, every pending message and every derived
datatype shares one; freeing a datatype only releases a handle. The layout is computed at its first
use, because programs make many intermediate datatypes that never carry data.

The constructors take checked integers (counts of elements, displacements in elements or bytes, as
in MPI) and are those of MPI 4.1, section 5.1. Their contents are reported in the large-count form,
as mpi4py gets them from MPICH: arguments that may be large are in the counts. Datatypes that
compiled programs make with the functions for counts of `int` have the form of these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.datatypes import layouts as typemaps
from pysmpi.mpi.datatypes import predefined as typetable
from pysmpi.mpi.datatypes.layouts import Layout

# Number of cached layouts of repeated datatypes, and the longest list of counts of one.
LAYOUTS_KEPT = 512
LONGEST_SHARED = 64

_layouts: dict[tuple[object, ...], Layout] = {}


class Type:
    """A datatype.

    `combiner`, `integers`, `counts` and `types` describe its constructor. `kind`, `dtype`, `code`
    and `char` are those of the predefined types and of equivalent ones (see typetable.NamedType),
    None for others. `references` is the number of handles that a program must free; `committed`
    tells whether it may be used in communication. `small` tells whether the constructor was that
    for counts of `int`.
    """

    __slots__ = (
        "_build",
        "_layout",
        "char",
        "code",
        "combiner",
        "committed",
        "counts",
        "dtype",
        "element",
        "integers",
        "kind",
        "marked",
        "name",
        "named",
        "predefined",
        "references",
        "small",
        "types",
        "unit",
    )

    def __init__(
        self,
        combiner: int,
        build: Callable[[], Layout],
        types: Sequence[Type] = (),
        counts: Sequence[int] = (),
        integers: Sequence[int] = (),
    ) -> None:
        self.combiner = combiner
        self.types = tuple(types)
        self.counts = tuple(counts)
        self.integers = tuple(integers)
        self.named: typetable.NamedType | None = None
        self.kind: str | None = None
        self.dtype: np.dtype[Any] | None = None
        self.code: str | None = None
        self.char: str | None = None
        self.name = ""
        self.references = 1
        self.small = False
        # MPI owns these: a program cannot free them.
        self.predefined = self.committed = combiner in _OWNED
        # Whether a rank has given it a name, an attribute or a number, which Free must remove.
        self.marked = False
        # Bytes of an element of a predefined type without gaps, 0 for other types.
        self.unit = 0
        self.element: object = None  # for messages, see buffers/contiguous.py
        self._build = build
        self._layout: Layout | None = None

    @property
    def layout(self) -> Layout:
        """The flattened typemap."""
        layout = self._layout
        if layout is None:
            layout = self._layout = self._shared() if self.counts else self._build()
        return layout

    def _shared(self) -> Layout:
        """The layout, the same object for datatypes that were made in the same way.

        Ranks make the same datatypes, and programs make them again and again.
        """
        if len(self.counts) > LONGEST_SHARED:
            return self._build()
        parts = [part.layout for part in self.types]
        key = self.combiner, self.counts, self.integers, _alike(self.types), *parts
        layout = _layouts.get(key)
        if layout is None:
            if len(_layouts) >= LAYOUTS_KEPT:
                _layouts.clear()
            layout = _layouts[key] = self._build()
        return layout

    def arguments(self, small: bool) -> tuple[list[int], list[int], list[int]]:
        """The integers, addresses and counts of the constructor.

        `small` asks for the form of functions without counts larger than an `int`: their arguments
        are integers and addresses (MPI 4.1, section 5.1.13).
        """
        if not small:
            return list(self.integers), [], list(self.counts)
        integers, counts, addresses = list(self.integers), list(self.counts), 0
        combiner = self.combiner
        if combiner == c.COMBINER_HVECTOR:
            addresses = 1
        elif combiner == c.COMBINER_RESIZED:
            addresses = 2
        elif combiner in _IN_BYTES:
            addresses = counts[0]
        first = len(counts) - addresses
        # Counts stand where the constructor has them.
        at = {c.COMBINER_SUBARRAY: 1, c.COMBINER_DARRAY: 3}.get(combiner, 0)
        integers[at:at] = counts[:first]
        return integers, counts[first:], []

    def like(self, other: Type) -> Type:
        """Copy the properties of a predefined type for reductions and numpy."""
        self.kind, self.dtype, self.code, self.char = (
            other.kind,
            other.dtype,
            other.code,
            other.char,
        )
        return self


_OWNED = frozenset(
    (c.COMBINER_NAMED, c.COMBINER_F90_INTEGER, c.COMBINER_F90_REAL, c.COMBINER_F90_COMPLEX)
)
# Their displacements are addresses.
_IN_BYTES = frozenset((c.COMBINER_HINDEXED, c.COMBINER_HINDEXED_BLOCK, c.COMBINER_STRUCT))


def _define(named: typetable.NamedType) -> Type:
    record = Type(
        c.COMBINER_NAMED, lambda: typemaps.basic(named.size, typetable.alignment(named), record)
    )
    record.named = named
    record.kind, record.code, record.char = named.kind, named.code, named.char
    record.dtype = np.dtype(named.numpy) if named.numpy else None
    record.name, record.unit = named.mpi_name, named.size
    return record


def _pair(name: str, value: Type, index: Type) -> Type:
    """A predefined pair: a C structure of a value and an index."""
    assert value.dtype is not None and index.dtype is not None
    dtype = np.dtype([("value", value.dtype), ("index", index.dtype)], align=True)
    fields = dtype.fields
    assert fields is not None
    offset = fields["index"][1]

    def build() -> Layout:
        return typemaps.struct([(1, 0, value.layout), (1, offset, index.layout)], padded=True)

    record = Type(c.COMBINER_NAMED, build)
    record.named = typetable.NamedType(name, name, 0, 0, "pair", "", "V", "")
    record.kind, record.dtype, record.name = "pair", dtype, name
    return record


# By attribute name of mpi4py.MPI, and those of compiled programs; absent types are not in it.
PREDEFINED: dict[str, Type] = {
    named.name: _define(named) for named in (*typetable.NAMED, *typetable.COMPILED)
}
PREDEFINED.update(
    {
        name: _pair(mpi_name, *(PREDEFINED[m] for m in members))
        for name, mpi_name, _, members in (*typetable.PAIRS, *typetable.COMPILED_PAIRS)
    }
)
PREDEFINED.update({alias: PREDEFINED[name] for alias, name in typetable.ALIASES.items()})

BYTE = PREDEFINED["BYTE"]


def _counted(name: str, value: int) -> int:
    if value < 0:
        fail(c.ERR_COUNT, f"{name} is {value}, expecting a non-negative number")
    return value


def _lengths(values: Sequence[int]) -> Sequence[int]:
    if values and min(values) < 0:
        fail(c.ERR_COUNT, f"negative block length {min(values)}")
    return values


def duplicate(base: Type) -> Type:
    """MPI_Type_dup."""
    record = Type(c.COMBINER_DUP, lambda: base.layout, (base,)).like(base)
    record.committed, record.unit = base.committed, base.unit
    return record


def contiguous(base: Type, count: int) -> Type:
    """MPI_Type_contiguous."""
    _counted("count", count)

    def build() -> Layout:
        return typemaps.repeat(base.layout, count, base.layout.extent)

    return Type(c.COMBINER_CONTIGUOUS, build, (base,), (count,))


def vector(base: Type, count: int, blocklength: int, stride: int, in_bytes: bool = False) -> Type:
    """MPI_Type_vector, and MPI_Type_create_hvector if the stride is in bytes."""
    _counted("count", count)
    _counted("blocklength", blocklength)

    def build() -> Layout:
        layout = base.layout
        step = stride if in_bytes else stride * layout.extent
        return typemaps.repeat(typemaps.repeat(layout, blocklength, layout.extent), count, step)

    combiner = c.COMBINER_HVECTOR if in_bytes else c.COMBINER_VECTOR
    return Type(combiner, build, (base,), (count, blocklength, stride))


def indexed(
    base: Type, lengths: Sequence[int], displacements: Sequence[int], in_bytes: bool = False
) -> Type:
    """MPI_Type_indexed, and MPI_Type_create_hindexed where displacements are in bytes."""
    _lengths(lengths)

    def build() -> Layout:
        return _scattered(base, lengths, displacements, in_bytes)

    combiner = c.COMBINER_HINDEXED if in_bytes else c.COMBINER_INDEXED
    return Type(combiner, build, (base,), (len(lengths), *lengths, *displacements))


def indexed_block(
    base: Type, blocklength: int, displacements: Sequence[int], in_bytes: bool = False
) -> Type:
    """MPI_Type_create_indexed_block, and its hindexed form."""
    _counted("blocklength", blocklength)

    def build() -> Layout:
        return _scattered(base, [blocklength] * len(displacements), displacements, in_bytes)

    combiner = c.COMBINER_HINDEXED_BLOCK if in_bytes else c.COMBINER_INDEXED_BLOCK
    return Type(combiner, build, (base,), (len(displacements), blocklength, *displacements))


def _scattered(
    base: Type, lengths: Sequence[int], displacements: Sequence[int], in_bytes: bool
) -> Layout:
    layout = base.layout
    scale = 1 if in_bytes else layout.extent
    return typemaps.indexed(layout, lengths, [d * scale for d in displacements])


def _alike(types: Sequence[Type]) -> bool:
    """Whether MPICH treats all of them as one datatype."""
    if len(types) < 2:
        return True
    first = _original(types[0])
    return all([_original(other) == first for other in types])


def _original(record: Type) -> object:
    """The identity of a datatype without its name: duplicates and predefined types have equals."""
    while record.combiner == c.COMBINER_DUP or (
        record.combiner == c.COMBINER_CONTIGUOUS and record.counts == (1,)
    ):
        record = record.types[0]
    if not record.unit:
        return record
    return record.unit, record.kind if record.kind in ("real", "complex") else "integer"


def struct(lengths: Sequence[int], displacements: Sequence[int], types: Sequence[Type]) -> Type:
    """MPI_Type_create_struct.

    As in MPICH, members that are all of one type need no padding.
    """
    _lengths(lengths)

    def build() -> Layout:
        layouts = [t.layout for t in types]
        return typemaps.struct(zip(lengths, displacements, layouts), not _alike(types))

    return Type(c.COMBINER_STRUCT, build, types, (len(lengths), *lengths, *displacements))


def resized(base: Type, lb: int, extent: int) -> Type:
    """MPI_Type_create_resized."""
    return Type(
        c.COMBINER_RESIZED, lambda: typemaps.resized(base.layout, lb, extent), (base,), (lb, extent)
    )


def subarray(
    base: Type, sizes: Sequence[int], subsizes: Sequence[int], starts: Sequence[int], order: int
) -> Type:
    """MPI_Type_create_subarray."""
    if not sizes:
        fail(c.ERR_ARG, "a subarray needs at least one dimension")
    for i, (size, subsize, start) in enumerate(zip(sizes, subsizes, starts)):
        if size < 1 or not 1 <= subsize <= size or not 0 <= start <= size - subsize:
            fail(
                c.ERR_ARG,
                f"dimension {i}: {subsize} elements from {start} are not inside an array of {size}",
            )
    _check_order(order)

    def build() -> Layout:
        if order == c.ORDER_C:
            return typemaps.subarray(base.layout, sizes, subsizes, starts)
        return typemaps.subarray(base.layout, sizes[::-1], subsizes[::-1], starts[::-1])

    return Type(
        c.COMBINER_SUBARRAY, build, (base,), (*sizes, *subsizes, *starts), (len(sizes), order)
    )


def _check_order(order: int) -> None:
    if order not in (c.ORDER_C, c.ORDER_FORTRAN):
        fail(c.ERR_ARG, f"order is {order}, expecting ORDER_C or ORDER_FORTRAN")


def darray(
    base: Type,
    size: int,
    rank: int,
    gsizes: Sequence[int],
    distribs: Sequence[int],
    dargs: Sequence[int],
    psizes: Sequence[int],
    order: int,
) -> Type:
    """MPI_Type_create_darray."""
    if size < 1 or not 0 <= rank < size:
        fail(c.ERR_RANK, f"rank is {rank} in a grid of size {size}")
    if not gsizes:
        fail(c.ERR_ARG, "a distributed array needs at least one dimension")
    if any(p < 1 for p in psizes) or prod(psizes) != size:
        fail(c.ERR_ARG, f"psizes {list(psizes)} make no grid of size {size}")
    _check_order(order)
    # The grid of processes is in row-major order for every order of the array.
    coordinates: list[int] = []
    rest = rank
    for extent in reversed(psizes):
        rest, coordinate = divmod(rest, extent)
        coordinates.insert(0, coordinate)
    pieces = [
        _share(*arguments)
        for arguments in zip(range(len(gsizes)), gsizes, distribs, dargs, psizes, coordinates)
    ]

    def build() -> Layout:
        if order == c.ORDER_C:
            return typemaps.distributed(base.layout, gsizes, pieces)
        return typemaps.distributed(base.layout, gsizes[::-1], pieces[::-1])

    return Type(
        c.COMBINER_DARRAY,
        build,
        (base,),
        gsizes,
        (size, rank, len(gsizes), *distribs, *dargs, *psizes, order),
    )


def _share(
    dimension: int, size: int, distribution: int, darg: int, processes: int, coordinate: int
) -> tuple[int, int, int, int]:
    """The indices of a dimension that a process owns: (first, block, step, number owned)."""
    where = f"dimension {dimension}"
    if size < 1:
        fail(c.ERR_ARG, f"{where}: global size is {size}")
    if darg != c.DISTRIBUTE_DFLT_DARG and darg < 1:
        fail(c.ERR_ARG, f"{where}: distribution argument is {darg}")
    if distribution == c.DISTRIBUTE_NONE:
        if processes != 1:
            fail(c.ERR_ARG, f"{where}: not distributed, yet {processes} processes share it")
        return 0, size, size, size
    if distribution == c.DISTRIBUTE_BLOCK:
        block = -(-size // processes) if darg == c.DISTRIBUTE_DFLT_DARG else darg
        if block * processes < size:
            fail(c.ERR_ARG, f"{where}: {processes} blocks of {block} do not cover {size}")
        first = block * coordinate
        return first, block, block, max(0, min(block, size - first))
    if distribution == c.DISTRIBUTE_CYCLIC:
        block = 1 if darg == c.DISTRIBUTE_DFLT_DARG else darg
        first, step = block * coordinate, block * processes
        full, rest = divmod(size, step)
        return first, block, step, full * block + max(0, min(block, rest - first))
    fail(c.ERR_ARG, f"{where}: unknown distribution {distribution}")


_f90: dict[tuple[int, int, int], Type] = {}


def f90_integer(r: int) -> Type:
    """MPI_Type_create_f90_integer: r decimal digits."""
    for digits, name in ((2, "INTEGER1"), (4, "INTEGER2"), (9, "INTEGER4"), (18, "INTEGER8")):
        if r <= digits:
            return _parametrized(c.COMBINER_F90_INTEGER, name, "i", (r,))
    fail(c.ERR_OTHER, f"no integer has {r} decimal digits")


def f90_real(p: int, r: int) -> Type:
    """MPI_Type_create_f90_real: p decimal digits, decimal exponents up to r."""
    return _parametrized(
        c.COMBINER_F90_REAL, _precision(p, r, ("REAL4", "REAL8", "REAL16")), "f", (p, r)
    )


def f90_complex(p: int, r: int) -> Type:
    """MPI_Type_create_f90_complex: p decimal digits, decimal exponents up to r."""
    return _parametrized(
        c.COMBINER_F90_COMPLEX,
        _precision(p, r, ("COMPLEX8", "COMPLEX16", "COMPLEX32")),
        "c",
        (p, r),
    )


def _precision(p: int, r: int, names: tuple[str, str, str]) -> str:
    """The smallest IEEE format with this precision and range."""
    if p == r == c.UNDEFINED:
        fail(c.ERR_ARG, "either precision or range has to be given")
    for name, digits, exponent in zip(names, (6, 15, 33), (37, 307, 4931)):
        if p <= digits and r <= exponent:
            return name
    fail(c.ERR_OTHER, f"no real has {p} digits and exponents up to {r}")


def _parametrized(combiner: int, name: str, letter: str, integers: tuple[int, ...]) -> Type:
    """Equal parameters give the same type, which cannot be freed (MPI 4.1, section 19.1.9)."""
    key = (combiner, integers[0], integers[-1])
    record = _f90.get(key)
    if record is None:
        base = PREDEFINED[name]
        record = Type(combiner, lambda: base.layout, (), (), integers).like(base)
        assert base.named is not None
        record.char = typetable.CHARACTERS[letter, base.named.size]
        record.code = f"{letter}{base.named.size}"
        _f90[key] = record
    return record


_value_index = {
    (PREDEFINED[value], PREDEFINED[index]): PREDEFINED[name]
    for name, _, _, (value, index) in typetable.PAIRS
}


def value_index(value: Type, index: Type) -> Type | None:
    """MPI_Type_get_value_index: the pair for MINLOC and MAXLOC, None if there is none."""
    return _value_index.get((value, index))


def match_size(typeclass: int, size: int) -> Type:
    """MPI_Type_match_size."""
    names = {
        c.TYPECLASS_INTEGER: "INTEGER",
        c.TYPECLASS_REAL: "REAL",
        c.TYPECLASS_COMPLEX: "COMPLEX",
        c.TYPECLASS_LOGICAL: "LOGICAL",
    }
    if typeclass not in names:
        fail(c.ERR_ARG, f"typeclass is {typeclass}, which is none")
    name = typetable.MATCHES.get((names[typeclass], size))
    if name is None:
        fail(c.ERR_ARG, f"no {names[typeclass].lower()} type of size {size} bytes")
    return PREDEFINED[name]
