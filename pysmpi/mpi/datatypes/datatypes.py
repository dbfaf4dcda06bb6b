"""Datatypes (MPI 4.1, chapter 5), as handles of `typerecords.Type`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pysmpi.mpi.base import attributes as _attributes
from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.attributes import WithAttributes, with_attributes
from pysmpi.mpi.base.exceptions import cint, cstring, fail, integer, named, sequence, whole
from pysmpi.mpi.base.handles import Handle, _cells, _shows, check_comm, type_name, wrong_type
from pysmpi.mpi.base.integers import plain_integers
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.datatypes import decoding, packing
from pysmpi.mpi.datatypes import predefined as typetable
from pysmpi.mpi.datatypes import records as typerecords
from pysmpi.mpi.datatypes.layouts import Layout
from pysmpi.mpi.datatypes.records import Type

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec

NAMES: StateSlot[Rank, dict[Type, str]] = StateSlot(Rank, dict)  # given by a rank
# What else happens when a rank commits a datatype.
COMMITTED: StateSlot[Universe, Callable[[Type], None]] = StateSlot(Universe)


@with_attributes("7.7.4", "a datatype")
class Datatype(WithAttributes, Handle, kind=3, null=typetable.NULL, error=c.ERR_TYPE):
    """Datatype object."""

    __slots__ = ()

    _impl: Type | None

    def __new__(cls, datatype: Datatype | None = None) -> Datatype:
        self = object.__new__(cls)
        Handle._copy(self, datatype, "datatype")
        return self

    def __reduce__(self) -> str | tuple[object, ...]:
        """Reduce a predefined datatype to its name, another to its decoded form."""
        record = self._sync()
        if record is None or record.combiner == c.COMBINER_NAMED:
            return super().__reduce__()
        return _datatype_create, (*_datatype_decode(self, True), True)

    def _is_predefined(self) -> bool:
        record = self._sync()
        return record is None or record.predefined

    @property
    def handle(self) -> int:
        """MPI handle."""
        record = self._sync()
        if record is not None:
            record.marked = True
        return super().handle

    @property
    def _layout(self) -> Layout:
        layout: Layout = self._live().layout
        return layout

    # Properties.

    @mpi.local("5.1.5")
    def Get_size(self) -> int:
        """Return the number of bytes occupied by entries in the datatype."""
        return self._layout.size

    @property
    def size(self) -> int:
        """Size (in bytes)."""
        return self._layout.size

    @mpi.local("5.1.7")
    def Get_extent(self) -> tuple[int, int]:
        """Return lower bound and extent of datatype."""
        layout = self._layout
        return layout.lb, layout.extent

    @property
    def extent(self) -> int:
        """Extent."""
        return self._layout.extent

    @property
    def lb(self) -> int:
        """Lower bound."""
        return self._layout.lb

    @property
    def ub(self) -> int:
        """Upper bound."""
        return self._layout.ub

    @mpi.local("5.1.8")
    def Get_true_extent(self) -> tuple[int, int]:
        """Return the true lower bound and extent of a datatype."""
        layout = self._layout
        return layout.true_lb, layout.true_ub - layout.true_lb

    @property
    def true_extent(self) -> int:
        """True extent."""
        return self.Get_true_extent()[1]

    @property
    def true_lb(self) -> int:
        """True lower bound."""
        return self._layout.true_lb

    @property
    def true_ub(self) -> int:
        """True upper bound."""
        return self._layout.true_ub

    # Constructors.

    @mpi.local("5.1.10")
    def Dup(self) -> Datatype:
        """Duplicate a datatype."""
        record = self._live()
        result: Datatype = type(self)._of(typerecords.duplicate(record))
        if record.marked:
            result._live().marked = True
            _attributes.copied(self, result)
        return result

    Create_dup = Dup

    @mpi.local("5.1.2")
    def Create_contiguous(self, count: int) -> Datatype:
        """Create a contiguous datatype."""
        n = whole(count)
        return self._derived(typerecords.contiguous(self._live(), n))

    @mpi.local("5.1.2")
    def Create_vector(self, count: int, blocklength: int, stride: int) -> Datatype:
        """Create a vector (strided) datatype."""
        numbers = whole(count), whole(blocklength), whole(stride)
        return self._derived(typerecords.vector(self._live(), *numbers))

    @mpi.local("5.1.2")
    def Create_hvector(self, count: int, blocklength: int, stride: int) -> Datatype:
        """Create a vector (strided) datatype with stride in bytes."""
        numbers = whole(count), whole(blocklength), whole(stride)
        return self._derived(typerecords.vector(self._live(), *numbers, in_bytes=True))

    @mpi.local("5.1.2")
    def Create_indexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Datatype:
        """Create an indexed datatype."""
        lengths = integers(blocklengths)
        where = integers(displacements, len(lengths))
        return self._derived(typerecords.indexed(self._live(), lengths, where))

    @mpi.local("5.1.2")
    def Create_hindexed(
        self, blocklengths: Sequence[int], displacements: Sequence[int]
    ) -> Datatype:
        """Create an indexed datatype.

        .. note:: Displacements are measured in bytes.
        """
        lengths = integers(blocklengths)
        where = integers(displacements, len(lengths))
        return self._derived(typerecords.indexed(self._live(), lengths, where, in_bytes=True))

    @mpi.local("5.1.2")
    def Create_indexed_block(self, blocklength: int, displacements: Sequence[int]) -> Datatype:
        """Create an indexed datatype with constant-sized blocks."""
        length, where = whole(blocklength), integers(displacements)
        return self._derived(typerecords.indexed_block(self._live(), length, where))

    @mpi.local("5.1.2")
    def Create_hindexed_block(self, blocklength: int, displacements: Sequence[int]) -> Datatype:
        """Create an indexed datatype with constant-sized blocks.

        .. note:: Displacements are measured in bytes.
        """
        length, where = whole(blocklength), integers(displacements)
        return self._derived(typerecords.indexed_block(self._live(), length, where, in_bytes=True))

    @classmethod
    @mpi.local("5.1.2")
    def Create_struct(
        cls,
        blocklengths: Sequence[int],
        displacements: Sequence[int],
        datatypes: Sequence[Datatype],
    ) -> Datatype:
        """Create a general composite (struct) datatype.

        .. note:: Displacements are measured in bytes.
        """
        lengths = integers(blocklengths)
        where = integers(displacements, len(lengths))
        types = [handle._live() for handle in handles(datatypes, len(lengths))]
        result: Datatype = cls._of(typerecords.struct(lengths, where, types))
        return result

    @mpi.local("5.1.3")
    def Create_subarray(
        self,
        sizes: Sequence[int],
        subsizes: Sequence[int],
        starts: Sequence[int],
        order: int = c.ORDER_C,
    ) -> Datatype:
        """Create a datatype for a subarray of a multidimensional array."""
        whole = integers(sizes)
        part, first = integers(subsizes, len(whole)), integers(starts, len(whole))
        return self._derived(typerecords.subarray(self._live(), whole, part, first, cint(order)))

    @mpi.local("5.1.4")
    def Create_darray(
        self,
        size: int,
        rank: int,
        gsizes: Sequence[int],
        distribs: Sequence[int],
        dargs: Sequence[int],
        psizes: Sequence[int],
        order: int = c.ORDER_C,
    ) -> Datatype:
        """Create a datatype for a distributed array on Cartesian process grids."""
        whole = integers(gsizes)
        n = len(whole)
        return self._derived(
            typerecords.darray(
                self._live(),
                cint(size),
                cint(rank),
                whole,
                integers(distribs, n),
                integers(dargs, n),
                integers(psizes, n),
                cint(order),
            )
        )

    @classmethod
    @mpi.local("6.9.4")
    def Get_value_index(cls, value: Datatype, index: Datatype) -> Datatype:
        """Return a predefined pair datatype."""
        pair = typerecords.value_index(
            checked(value, "value")._live(), checked(index, "index")._live()
        )
        result: Datatype = cls._of(pair)
        return result

    @classmethod
    @mpi.local("19.1.9")
    def Create_f90_integer(cls, r: int) -> Datatype:
        """Return a bounded integer datatype."""
        result: Datatype = cls._of(typerecords.f90_integer(cint(r)))
        return result

    @classmethod
    @mpi.local("19.1.9")
    def Create_f90_real(cls, p: int, r: int) -> Datatype:
        """Return a bounded real datatype."""
        result: Datatype = cls._of(typerecords.f90_real(cint(p), cint(r)))
        return result

    @classmethod
    @mpi.local("19.1.9")
    def Create_f90_complex(cls, p: int, r: int) -> Datatype:
        """Return a bounded complex datatype."""
        result: Datatype = cls._of(typerecords.f90_complex(cint(p), cint(r)))
        return result

    @classmethod
    @mpi.local("19.1.9")
    def Match_size(cls, typeclass: int, size: int) -> Datatype:
        """Find a datatype matching a specified size in bytes."""
        result: Datatype = cls._of(typerecords.match_size(cint(typeclass), cint(size)))
        return result

    @mpi.local("5.1.7")
    def Create_resized(self, lb: int, extent: int) -> Datatype:
        """Create a datatype with a new lower bound and extent."""
        bounds = whole(lb), whole(extent)
        return self._derived(typerecords.resized(self._live(), *bounds))

    Resized = Create_resized

    def _derived(self, record: Type) -> Datatype:
        result: Datatype = type(self)._of(record)
        return result

    # Life.

    @mpi.local("5.1.9")
    def Commit(self) -> Datatype:
        """Commit the datatype."""
        record = self._live()
        record.committed = True
        committed = COMMITTED.peek(current().universe)
        if committed is not None:
            committed(record)
        return self

    @mpi.local("5.1.9")
    def Free(self) -> None:
        """Free the datatype."""
        record = self._live()
        if record.predefined:
            fail(c.ERR_TYPE, f"{record.name or 'a predefined datatype'} cannot be freed")
        record.references -= 1
        if record.marked and record.references == 0:
            _attributes.deleted(self)
            NAMES.of(current()).pop(record, None)
            self._retire()
        elif _cells or _shows:
            self._set(None)
        else:
            self._impl = None

    # Contents.

    @mpi.local("5.1.13")
    def Get_envelope(self) -> tuple[int, int, int, int, int]:
        """Return the number of input arguments used to create a datatype."""
        record = self._live()
        integers, addresses, counts = record.arguments(record.small)
        return len(integers), len(addresses), len(counts), len(record.types), record.combiner

    @property
    def envelope(self) -> tuple[int, int, int, int, int]:
        """Envelope."""
        return self.Get_envelope()

    @mpi.local("5.1.13")
    def Get_contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]:
        """Return the input arguments used to create a datatype."""
        record = self._live()
        if record.combiner == c.COMBINER_NAMED:
            fail(c.ERR_TYPE, f"{record.name} is a named datatype: it has no contents")
        return *record.arguments(record.small), [_reference(t) for t in record.types]

    @property
    def contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]:
        """Contents."""
        return self.Get_contents()

    @mpi.local()
    def decode(self) -> tuple[Datatype, str, dict[str, Any]]:
        """Convenience method for decoding a datatype."""
        return self._decoded()

    def _decoded(self, mark: bool = False) -> tuple[Datatype, str, dict[str, object]]:
        record = self._impl or self._live()
        number = record.combiner
        if number == c.COMBINER_NAMED:
            return self, "NAMED", {}
        # A marked handle needs no Free: it is not counted.
        types = [Datatype._wrap(t) if mark else _reference(t) for t in record.types]
        base = types[0] if len(types) == 1 else DATATYPE_NULL
        return base, decoding.COMBINERS[number], decoding.parameters(record, types)

    @property
    def combiner(self) -> int:
        """Combiner."""
        record = self._impl or self._live()
        return record.combiner

    @property
    def is_named(self) -> bool:
        """Is a named datatype."""
        return self.combiner == c.COMBINER_NAMED

    @property
    def is_predefined(self) -> bool:
        """Is a predefined datatype."""
        record = self._sync() if _cells else self._impl
        return record is None or record.predefined

    # Packing.

    @mpi.local("5.2")
    def Pack(self, inbuf: BufSpec, outbuf: BufSpec, position: int, comm: object) -> int:
        """Pack into contiguous memory according to datatype."""
        record, begin = self._live(), whole(position)
        _live_comm(comm)
        return packing.pack(record, inbuf, outbuf, begin)

    @mpi.local("5.2")
    def Unpack(self, inbuf: BufSpec, position: int, outbuf: BufSpec, comm: object) -> int:
        """Unpack from contiguous memory according to datatype."""
        record, begin = self._live(), whole(position)
        _live_comm(comm)
        return packing.unpack(record, inbuf, begin, outbuf)

    @mpi.local("5.2")
    def Pack_size(self, count: int, comm: object) -> int:
        """Determine the amount of space needed to pack a message.

        .. note:: Returns an upper bound measured in bytes.
        """
        _live_comm(comm)
        return packing.size(self._live(), whole(count))

    @mpi.local("5.3")
    def Pack_external(self, datarep: str, inbuf: BufSpec, outbuf: BufSpec, position: int) -> int:
        """Pack into contiguous memory according to datatype.

        Uses the portable data representation **external32**.
        """
        packing.check_representation(cstring(datarep))
        return packing.pack_external(self._live(), inbuf, outbuf, whole(position))

    @mpi.local("5.3")
    def Unpack_external(self, datarep: str, inbuf: BufSpec, position: int, outbuf: BufSpec) -> int:
        """Unpack from contiguous memory according to datatype.

        Uses the portable data representation **external32**.
        """
        packing.check_representation(cstring(datarep))
        return packing.unpack_external(self._live(), inbuf, whole(position), outbuf)

    @mpi.local("5.3")
    def Pack_external_size(self, datarep: str, count: int) -> int:
        """Determine the amount of space needed to pack a message.

        Uses the portable data representation **external32**.

        .. note:: Returns an upper bound measured in bytes.
        """
        packing.check_representation(cstring(datarep))
        return packing.external_size(self._live(), whole(count))

    # Attributes.

    @mpi.local("7.7.4")
    def Set_attr(self, keyval: int, attrval: Any) -> None:
        """Store attribute value associated with a key."""
        self._live().marked = True
        _attributes.set(self, keyval, attrval)

    # Names. They belong to the rank, also those of predefined datatypes.

    @mpi.local("7.8")
    def Get_name(self) -> str:
        """Get the print name for this datatype."""
        record = self._sync()
        if record is None:
            return "MPI_DATATYPE_NULL"
        name: str = record.name
        return NAMES.of(current()).get(record, name)

    @mpi.local("7.8")
    def Set_name(self, name: str) -> None:
        """Set the print name for this datatype."""
        text = cstring(name)
        record = self._live()
        record.marked = True
        NAMES.of(current())[record] = text[: c.MAX_OBJECT_NAME - 1]

    @property
    def name(self) -> str:
        """Print name."""
        return self.Get_name()

    @name.setter
    def name(self, value: str) -> None:
        self.Set_name(value)

    # Characters and strings that numpy and the buffer protocol use.

    @mpi.local()
    def tocode(self) -> str:
        """Get character code or type string from predefined MPI datatype."""
        code = _typecode(self)
        if code is None:
            raise ValueError("cannot map to character code or type string")
        return code

    @classmethod
    @mpi.local()
    def fromcode(cls, code: str) -> Datatype:
        """Get predefined MPI datatype from character code or type string."""
        try:
            return _typedict[code]
        except KeyError:
            raise ValueError(f"cannot map code {code!r} to MPI datatype") from None
        except TypeError as error:
            raise TypeError(f"code: {error}") from None

    @property
    def typestr(self) -> str:
        """Type string."""
        record = self._sync()
        if record is None:
            return ""
        if not record.code:
            return f"V{record.layout.extent}"
        return typetable.typestr(record.char, record.layout.size)

    @property
    def typechar(self) -> str:
        """Character code."""
        record = self._sync()
        if record is None:
            return ""
        return record.char if record.code else "V"


def checked(obj: object, argument: str) -> Datatype:
    """An argument that has to be a datatype."""
    if not isinstance(obj, Datatype):
        raise wrong_type(argument, Datatype, obj)
    return obj


def integers(values: Sequence[int], count: int | None = None) -> list[int]:
    """A list of integers, of a given length if there is one."""
    plain = plain_integers(values)
    numbers = [integer(value) for value in sequence(values)] if plain is None else plain
    if count is not None and len(numbers) != count:
        raise ValueError(f"{named(values)}expecting {count} items, got {len(numbers)}")
    return numbers


def handles(values: Sequence[Datatype], count: int) -> list[Datatype]:
    """A list of datatypes of a given length."""
    items = sequence(values)
    if len(items) != count:
        raise ValueError(f"{named(values)}expecting {count} items, got {len(items)}")
    for item in items:
        if not isinstance(item, Datatype):
            raise TypeError(f"{named(item)}expecting mpi4py.MPI.Datatype, got {type_name(item)}")
    return items


def _reference(record: Type) -> Datatype:
    """Another handle of a datatype; the program frees it if the datatype is derived."""
    record.references += 1
    result = object.__new__(Datatype)
    result._impl = record
    return result


def _live_comm(comm: Any) -> object:
    """The communicator argument of Pack and its like, which only has to be one."""
    check_comm(comm)
    comm._live()
    return comm


def _datatype_create(
    datatype: Datatype, combiner: str, params: dict[str, Any], free: bool = False
) -> Datatype:
    """Create datatype from base datatype, combiner name, and parameters."""
    checked(datatype, "datatype")
    if "datatypes" in params:
        parts = list(params["datatypes"])
    else:
        parts = [datatype]
    try:
        result: Datatype = getattr(datatype, f"Create_{combiner.lower()}")(**params).Commit()
    finally:
        if free:
            for part in parts:
                part.free()
    return result


def _datatype_decode(
    datatype: Datatype, mark: bool = False
) -> tuple[Datatype, str, dict[str, object]]:
    """Decode datatype to base datatype, combiner name, and parameters."""
    return checked(datatype, "datatype")._decoded(mark)


def _typecode(datatype: Datatype) -> str | None:
    """Map MPI datatype to character code or type string."""
    record = checked(datatype, "datatype")._sync()
    return None if record is None else record.code or None


def _typealign(datatype: Datatype) -> int | None:
    """Return MPI datatype alignment."""
    record = checked(datatype, "datatype")._sync()
    if record is None or record.char is None and record.kind != "pair":
        return None
    align: int = record.layout.align
    return align


def _predefine() -> dict[str, Datatype]:
    """The 91 names of datatypes in mpi4py.MPI."""
    names: dict[str, Datatype] = {}

    def define(name: str, record: Type | None, handle: int) -> None:
        names[name] = Datatype._define(name, record, handle)

    define("DATATYPE_NULL", None, typetable.NULL)
    for row in typetable.NAMED:
        define(row.name, typerecords.PREDEFINED[row.name], row.handle)
    for name, _, handle, _ in typetable.PAIRS:
        define(name, typerecords.PREDEFINED[name], handle)
    for name in typetable.ABSENT:
        define(name, None, typetable.NULL)
    for row in typetable.COMPILED:
        COMPILED[f"MPI_{row.name}"] = row.handle
        Datatype._define(row.mpi_name, typerecords.PREDEFINED[row.name], row.handle)
    for name, mpi_name, handle, _ in typetable.COMPILED_PAIRS:
        COMPILED[mpi_name] = handle
        Datatype._define(mpi_name, typerecords.PREDEFINED[name], handle)
    for alias, name in typetable.ALIASES.items():
        names[alias] = names[name]
    Datatype._table.first = typetable.FIRST_DERIVED
    return names


#: Handles of datatypes that compiled programs have and mpi4py.MPI has not, by their names.
COMPILED: dict[str, int] = {}
#: Every predefined datatype by its name in mpi4py.MPI.
PREDEFINED = _predefine()
globals().update(PREDEFINED)
DATATYPE_NULL = PREDEFINED["DATATYPE_NULL"]
BYTE = PREDEFINED["BYTE"]

_typedict = {code: PREDEFINED[name] for code, name in typetable.CODES.items()}
_typedict_c = {code: PREDEFINED[name] for code, name in typetable.C_CODES.items()}
_typedict_f = {code: PREDEFINED[name] for code, name in typetable.F_CODES.items()}

__all__ = [
    "Datatype",
    "_datatype_create",
    "_datatype_decode",
    "_typealign",
    "_typecode",
    "_typedict",
    "_typedict_c",
    "_typedict_f",
    *PREDEFINED,
]
