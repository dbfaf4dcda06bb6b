"""Messages in the memory of a program, and the short way to those of one contiguous array.

This module is compiled: every message of a buffer call passes through it.
"""

from __future__ import annotations

from typing import Any, Final, Optional

from pysmpi.mpi.base.exporting import address_of
from pysmpi.mpi.buffers.copying import copy
from pysmpi.mpi.datatypes.copy_plans import CopyPlan
from pysmpi.mpi.datatypes.layouts import Layout
from pysmpi.mpi.datatypes.records import Type

NOTHING: Final = memoryview(bytearray())

# The predefined datatype and its size in bytes, by the format of the buffer protocol, and whether
# the format is that of plain bytes. `spellings.py` fills it in.
FORMATS: Final[dict[str, tuple[object, int, bool]]] = {}

_memoryview: Final[Any] = memoryview
_OTHER: Final = object()


class MessageRegion:
    """`count` elements of a datatype in the memory of a program.

    `nbytes` is the number of data bytes. `data` is the memory itself if the message is contiguous,
    else None: then `plan` copies between the packed stream and `memory`; the address of the message
    is byte `origin` of `memory`.
    """

    __slots__ = ("count", "data", "datatype", "memory", "nbytes", "origin", "plan")

    def __init__(self, datatype: Any, count: int, nbytes: int, data: Any) -> None:
        self.datatype: Any = datatype
        self.count: int = count
        self.nbytes: int = nbytes
        self.data: Any = data
        self.memory: Any = None
        self.origin: int = 0
        self.plan: Any = None

    def pack(self) -> Any:
        """The packed data: the memory itself if it is contiguous, else a copy."""
        if self.data is not None:
            return self.data
        stream = bytearray(self.nbytes)
        self.plan.pack(self.memory, self.origin, stream)
        return stream

    def unpack(self, stream: Any) -> int:
        """Store packed data from the first element on; return the number of stored bytes.

        Data that does not fit is left out.
        """
        size = len(stream)
        if size > self.nbytes:
            size = self.nbytes
            stream = memoryview(stream)[:size]
        if self.data is not None:
            if size == self.nbytes:
                copy(self.data, stream)
            else:
                copy(self.data[:size], stream)
        elif size == self.nbytes:
            self.plan.unpack(self.memory, self.origin, stream)
        else:
            self.plan.unpack_some(self.memory, self.origin, stream, size)
        return size

    def snapshot(self) -> Any:
        """A packed copy of the data: `bytes`, or a view of a copy."""
        if self.data is not None:
            return self.data.tobytes()
        return memoryview(self.pack())

    def owner(self) -> object:
        """The array whose whole memory the message is, for `whole`; None if it is not that of one.

        A rank that waits with an array takes 400 bytes less than with a message.
        """
        if self.data is None:
            return None
        array = self.data.obj
        try:
            whole = array.nbytes == self.nbytes and array.flags.c_contiguous
        except AttributeError:  # not of numpy
            return None
        return array if whole else None


class ElementLayout:
    """An element of a committed datatype: its `extent` and its data bytes, `size`.

    An element without a layout is that of a predefined datatype, a block of `extent` bytes. The
    plan for as many elements as the latest message had is kept, with the first byte that it
    reaches, and the one behind the last.
    """

    __slots__ = ("count", "dense", "extent", "high", "layout", "low", "plan", "size")

    def __init__(self, extent: int, size: int, dense: bool, layout: Optional[Layout]) -> None:
        self.extent: int = extent
        self.size: int = size
        self.dense: bool = dense
        self.layout: Optional[Layout] = layout
        self.count: int = 0
        self.plan: Optional[CopyPlan] = None
        self.low: int = 0
        self.high: int = 0

    def prepare(self, count: int) -> None:
        """Have the plan for `count` elements."""
        assert self.layout is not None
        self.plan = plan = self.layout.plan(count)
        self.low = plan.low
        self.high = plan.high
        self.count = count


def whole(array: object) -> MessageRegion:
    """The bytes of an array as a message, which has no datatype."""
    data = _memoryview(array).cast("B")
    nbytes = len(data)
    return MessageRegion(None, nbytes, nbytes, data)


def copy_message(source: MessageRegion, target: MessageRegion) -> int:
    """Copy the data of one message to another, once, through both layouts.

    Returns the bytes that were copied: no more than the target has room for.
    """
    data, room = source.data, target.data
    if data is not None:
        if room is not None:
            nbytes = source.nbytes
            if nbytes == target.nbytes:
                copy(room, data)
            elif nbytes < target.nbytes:
                copy(room[:nbytes], data)
            else:
                nbytes = target.nbytes
                copy(room, data[:nbytes])
            return nbytes
        return target.unpack(data)
    if room is not None and source.nbytes <= target.nbytes:
        source.plan.pack(source.memory, source.origin, room)
        return source.nbytes
    if room is None and source.plan.suits(target.plan):
        source.plan.move(source.memory, source.origin, target.memory, target.origin)
        return source.nbytes
    return target.unpack(source.pack())


def contiguous(spec: Any, writable: bool) -> Optional[MessageRegion]:
    """The message in a contiguous array, alone or with a datatype; None for all other arguments."""
    try:
        if isinstance(spec, (list, tuple)):
            return _typed(spec, writable)
        view = _memoryview(spec)
        form = view.format
        datatype, unit, plain = FORMATS[form]
        if writable and view.readonly:
            return None
        data = view if plain and _is_flat(view) else view.cast("B")
    except Exception:
        # An empty or unusual argument; the general way handles it, or refuses it with the right
        # message.
        return None
    nbytes = len(data)
    return MessageRegion(datatype, nbytes // unit, nbytes, data)


def _is_flat(view: memoryview) -> bool:
    dimensions: int = view.ndim
    return dimensions == 1 and view.c_contiguous


def alike(source: Any, target: Any) -> Optional[tuple[MessageRegion, MessageRegion]]:
    """Two contiguous arrays with equal counts of one predefined datatype; else None.

    They are the buffers of a reduction, of which the second is written. They begin at different
    addresses.
    """
    into = contiguous(target, True)
    if into is None:
        return None
    out = contiguous(source, False)
    if out is None or out.datatype is not into.datatype or out.count != into.count:
        return None
    if out.nbytes and not apart(out.data, into.data):
        if address_of(out.data) == address_of(into.data):
            return None
    return out, into


def apart(one: Any, other: Any) -> bool:
    """Whether two views are of arrays that own their memory, and are not the same."""
    if one is None or other is None:
        return False
    first, second = one.obj, other.obj
    return (
        first is not second
        and getattr(first, "base", _OTHER) is None
        and getattr(second, "base", _OTHER) is None
    )


def _typed(spec: Any, writable: bool) -> Optional[MessageRegion]:
    """The message of `[array, datatype]` or `[array, count, datatype]`.

    None for other arguments, and for messages that are empty or not inside the array.
    """
    items: list[object] = spec if type(spec) is list else list(spec)
    number = len(items)
    if number != 2 and number != 3:
        return None
    datatype = items[number - 1]
    element = _element_of(getattr(datatype, "_impl", None))
    if element is None:
        return None
    view = _memoryview(items[0])
    if writable and view.readonly:
        return None
    data = view.cast("B")
    room = len(data)
    count: int
    if number == 3:
        given = items[1]
        if type(given) is not int:
            return None
        count = given
    else:
        if element.extent <= 0 or room % element.extent != 0:
            return None
        count = room // element.extent
    if count <= 0:
        return None
    nbytes = element.size * count
    if nbytes == 0:
        return None
    if element.dense:
        if nbytes < room:
            data = data[:nbytes]
        elif nbytes > room:
            return None
        return MessageRegion(datatype, count, nbytes, data)
    if count != element.count:
        element.prepare(count)
    if element.low < 0 or element.high > room:
        return None
    result = MessageRegion(datatype, count, nbytes, None)
    result.memory = data
    result.plan = element.plan
    return result


def _element_of(record: Optional[Type]) -> Optional[ElementLayout]:
    """The element of a datatype, which keeps it; None if it is not committed."""
    result: object = getattr(record, "element", None)
    if isinstance(result, ElementLayout):
        return result
    if record is None or not record.committed:
        return None
    element: ElementLayout
    if record.unit > 0:
        element = ElementLayout(record.unit, record.unit, True, None)
    else:
        layout = record.layout
        # The datatypes of all ranks that have this layout share its element.
        result = layout.element
        if isinstance(result, ElementLayout):
            element = result
        else:
            element = ElementLayout(layout.ub - layout.lb, layout.size, layout.dense, layout)
            layout.element = element
    record.element = element
    return element
