"""The base of all handles of MPI.

A handle is a small Python object that points to its MPI object (`_impl`; None is the null handle).
Copies, `MPI.Comm(comm)`, point to the same object: handles are equal if they point to the same
object. Freeing makes the handle null. Python finalisers do not free handles, because garbage may be
collected while another rank runs.

The predefined handles are registered under their names, which pickling uses, and under their
integers in the MPICH ABI. Other handles get an integer when a program first requests it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from copyreg import __newobj__  # type: ignore[attr-defined]
from ctypes import addressof, c_uint32, c_uint64, sizeof
from typing import Any, ClassVar, Self

from pysmpi.mpi.base.exceptions import fail, named, whole
from pysmpi.mpi.base.handle_numbers import Table
from pysmpi.mpi.base.options import ENVIRONMENT
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.calls import mpi

try:
    from pysmpi.mpi.base.handle_fields import HandleFields, read_number, write_number
except ImportError:  # installed without a C compiler

    class HandleFields:  # type: ignore[no-redef]
        """Nothing: no C code reads handles."""

        __slots__ = ()

    def write_number(handle: HandleFields, number: int, /) -> None:
        """Do nothing."""

    def read_number(handle: HandleFields, /) -> int:
        """Read nothing."""
        return 0


__all__ = ["_addressof", "_handleof", "_sizeof"]

_MASK = 0xFFFFFFFF

# The C cells of the handles with a requested address, by id: (weak reference, cell).
_cells: dict[int, tuple[object, c_uint32 | c_uint64]] = {}


def type_name(obj: object) -> str:
    """The type of an argument, as error messages name it."""
    cls = type(obj)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def wrong_type(argument: str, expected: type, obj: object) -> TypeError:
    """The exception for an argument of another type than `expected`."""
    return TypeError(
        f"Argument {argument!r} has incorrect type "
        f"(expected mpi4py.MPI.{expected.__name__}, got {type_name(obj)})"
    )


def check_comm(comm: object) -> None:
    """Refuse an argument `comm` that is not a communicator, without importing that class."""
    if not isinstance(comm, Handle) or comm._family.__name__ != "Comm":
        raise TypeError(
            f"Argument 'comm' has incorrect type (expected mpi4py.MPI.Comm, got {type_name(comm)})"
        )


class Family:
    """Gives the classes of a family access to its base class.

    A plain class attribute would be simpler, but programs that walk through the members of classes
    would never end if a class contained itself.
    """

    __slots__ = ("founder",)

    def __init__(self, founder: type[Handle]) -> None:
        self.founder = founder

    def __get__(self, instance: object, owner: object = None) -> type[Handle]:
        return self.founder


class CForm:
    """Handles and statuses as C code of a binary interface has them: MPICH's are integers."""

    cell: type[c_uint32 | c_uint64] = c_uint32
    # The integers of a status: each a field of MPICH's status, the number of bytes above its low 32
    # bits, or whether it was cancelled.
    status: ClassVar[tuple[int | str, ...]] = (0, 1, 2, 3, 4)
    status_ignore = 1  # the address MPI_STATUS_IGNORE

    def out(self, family: type[Handle], number: int) -> int:
        """The handle in C of an integer."""
        return number

    def into(self, family: type[Handle], handle: int) -> int:
        """The integer of a handle in C."""
        return handle & _MASK

    def fortran_out(self, family: type[Handle], number: int) -> int:
        """The handle in Fortran of an integer, without a sign."""
        return number

    def fortran_into(self, family: type[Handle], handle: int) -> int:
        """The integer of a handle in Fortran."""
        return handle & _MASK


MPICH_FORM = CForm()
_form = MPICH_FORM


def form_of_program() -> CForm:
    """The form that the C code of the program knows."""
    return _form


_families: list[type[Handle]] = []
# Whether C code reads handles in the objects, as extensions that know mpi4py's do.
_shows: list[None] = []


def show_handles(form: CForm) -> None:
    """Write constants and all further handles where C code finds them, in a form."""
    global _form
    if not _shows:
        _shows.append(None)
    if form is _form:
        return
    _form = form
    _cells.clear()
    for family in _families:
        for constant, _ in family._named.values():
            constant._show()


class Handle(HandleFields):
    """Base of all handles.

    A family of handles is a direct subclass, made with the keywords of `__init_subclass__`.
    Subclasses of a family, including those of users, belong to the family.
    """

    __slots__ = ("_impl", "__weakref__")

    _impl: Any

    _family: ClassVar[Family]
    _table: ClassVar[Table]
    _error: ClassVar[int]
    _release: ClassVar[str | None]
    # id of the thing -> (the constant, its name); the first name wins.
    _named: ClassVar[dict[int, tuple[Handle, str]]]
    _constants: ClassVar[set[int]]

    # May be freed before MPI is initialized and after it is finalized.
    _outlives_mpi: ClassVar[bool] = False

    # Whether each handle has an integer when C code reads these. Requests come and go too often.
    _shows_number: ClassVar[bool] = True

    # The null handle has an error handler, for errors without an object of the family.
    _null_bears_errors: ClassVar[bool] = False

    def __init_subclass__(
        cls,
        kind: int | None = None,
        null: int = 0,
        error: int = 0,
        release: str | None = "Free",
        **keywords: object,
    ) -> None:
        """Create a family if there is a `kind`.

        `kind` is the number of the family in MPICH's handles, `null` the integer of its null
        handle, `error` the error class of a bad handle and `release` the method that frees one.
        """
        super().__init_subclass__(**keywords)
        if kind is not None:
            cls._family = Family(cls)
            cls._table = Table(kind, null)
            cls._error = error
            cls._release = release
            cls._named = {}
            cls._constants = set()
            _families.append(cls)

    # Constructors for chapters.

    @classmethod
    def _define(cls, name: str, impl: object, number: int) -> Self:
        """A predefined handle; `impl` None is the null handle."""
        self = object.__new__(cls)
        self._impl = impl
        write_number(self, number)
        cls._named.setdefault(id(impl), (self, name))
        cls._constants.add(id(self))
        cls._table.define(impl, number)
        return self

    @classmethod
    def _of(cls, impl: object) -> Self:
        """A new handle of exactly this class, which may be a user's subclass."""
        self = cls.__new__(cls)
        _point(self, impl)
        if _shows:
            self._show()
        return self

    @classmethod
    def _wrap(cls, impl: object) -> Any:
        """A new handle of the class of the family that fits the object."""
        self = object.__new__(cls._family)
        self._impl = impl
        if _shows:
            self._show()
        return self

    def _copy(self, other: object, argument: str) -> None:
        """Become a copy of `other`, or null if it is None: the body of the constructors."""
        if other is None:
            _point(self, None)
            write_number(self, _form.out(self._family, self._table.null))
        elif isinstance(other, self._family):
            _point(self, other._sync())
            if _shows:
                self._show()
        else:
            raise wrong_type(argument, self._family, other)

    def _show(self) -> None:
        """Write the handle where C code finds it in the object."""
        if self._shows_number:
            write_number(self, _form.out(self._family, self._table.number(self._impl)))

    # The objects of handles.

    def _sync(self) -> Any:
        """The object of the handle, also after C code has written another handle into it."""
        if _shows or _cells:
            self._read()
        return self._impl

    def _read(self) -> None:
        """Point to what C code has stored in the cell, or in a new object."""
        entry = _cells.get(id(self))
        if entry is not None:
            number = _form.into(self._family, entry[1].value)
            if number != self._table.number(self._impl):
                _point(self, self._lookup(number))
        elif self._impl is None and _shows and id(self) not in self._constants:
            stored = read_number(self)
            number = _form.into(self._family, stored) if stored else 0
            if number and number != self._table.null:
                _point(self, self._lookup(number))
                if not self._shows_number:
                    write_number(self, 0)

    def _live(self) -> Any:
        """The object of the handle; an error of the family's class if it is null."""
        impl = self._impl
        if impl is None:
            impl = self._sync()
            if impl is None:
                fail(self._error, f"{named(self)}null {self._family.__name__.lower()}")
        return impl

    def _set(self, impl: object) -> None:
        """Point to another object, or to None."""
        _point(self, impl)
        if _shows:
            self._show()
        if _cells:
            entry = _cells.get(id(self))
            if entry is not None:
                entry[1].value = _form.out(self._family, self._table.number(impl))

    def _drop(self) -> None:
        """Become null; a module constant does not change."""
        if id(self) not in self._constants:
            self._set(None)

    def _retire(self) -> None:
        """Become null because the object has been freed."""
        self._table.forget(self._impl)
        self._drop()

    def _is_predefined(self) -> bool:
        """Whether MPI made the thing: it is never freed."""
        return id(self._sync()) in self._named

    @classmethod
    def _lookup(cls, number: int, argument: str = "handle") -> Any:
        try:
            return cls._table.find(number)
        except KeyError:
            family = cls._family.__name__.lower()
            fail(cls._error, f"{argument}: no {family} has the handle {number:#x}")

    # Public methods.

    def __eq__(self, other: object) -> bool:
        """Return self==value."""
        if not isinstance(other, self._family):
            return NotImplemented
        if _cells or _shows:
            return self._sync() is other._sync()
        return self._impl is other._impl

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        """Return bool(self)."""
        return self._sync() is not None

    def __reduce__(self) -> str | tuple[object, ...]:
        """Reduce a predefined handle to its name."""
        known = self._named.get(id(self._sync()))
        if known is None:
            raise ValueError(f"cannot serialize {type_name(self)!r} instance")
        constant, name = known
        return name if self is constant else (__newobj__, (type(self), constant))

    @property
    def handle(self) -> int:
        """MPI handle."""
        return _form.out(self._family, self._table.number(self._sync()))

    @classmethod
    @mpi.local("19.3.4")
    def fromhandle(cls, handle: int) -> Self:
        """Create object from MPI handle."""
        number = whole(handle)
        if number < 0:
            raise OverflowError(f"handle: {number} is negative")
        found: Self = cls._wrap(cls._lookup(_form.into(cls._family, number)))
        return found

    @mpi.local("19.3.4")
    def toint(self) -> int:
        """Translate object to integer handle."""
        number = _form.fortran_out(self._family, _form.into(self._family, self.handle))
        return number - 0x100000000 if number > 0x7FFFFFFF else number

    @classmethod
    @mpi.local("19.3.4")
    def fromint(cls, arg: int, /) -> Self:
        """Translate integer handle to object."""
        number = _form.fortran_into(cls._family, whole(arg))
        found: Self = cls._wrap(cls._lookup(number, "arg"))
        return found

    @mpi.local("19.3.4")
    def py2f(self) -> int:
        """Translate object to Fortran handle."""
        return self.toint()

    @classmethod
    @mpi.local("19.3.4")
    def f2py(cls, arg: int) -> Self:
        """Translate Fortran handle to object."""
        number = _form.fortran_into(cls._family, whole(arg))
        found: Self = cls._wrap(cls._lookup(number, "arg"))
        return found

    @mpi.local()
    def free(self) -> None:
        """Free the object if it is not null or predefined."""
        if id(self) in self._constants or self._sync() is None:
            return
        if self._is_predefined():
            self._set(None)
        elif self._release is not None:
            if self._outlives_mpi or is_active():
                getattr(self, self._release)()
            else:
                self._set(None)


# An assignment would call the `__setattr__` of a user's subclass, which may pass it on to another
# handle.
_point: Callable[[Handle, object], None] = vars(Handle)["_impl"].__set__


def is_active() -> bool:
    """Whether MPI is initialized and not finalized in the calling rank."""
    environment = ENVIRONMENT.peek(current())
    return environment is None or (environment.initialized and not environment.finalized)


def _cell(obj: Handle) -> c_uint32 | c_uint64:
    """The C cell of a handle; C code may then read and write it."""
    key = id(obj)
    entry = _cells.get(key)
    if entry is None:
        cell = _form.cell(obj.handle)
        _cells[key] = (weakref.ref(obj, lambda _: _cells.pop(key, None)), cell)
        return cell
    return entry[1]


# Classes that C code sees as structures, with what tells the size of the structure in bytes.
structures: dict[type, Callable[[], int]] = {}


def _sizeof(arg: object) -> int:
    """Size in bytes of the underlying MPI handle."""
    cls = arg if isinstance(arg, type) else type(arg)
    if issubclass(cls, Handle):
        return sizeof(_form.cell)
    for kind, size in structures.items():
        if issubclass(cls, kind):
            return size()
    raise TypeError(f"expecting an MPI type or instance, not {type_name(arg)}")


def _addressof(arg: object) -> int:
    """Memory address of the underlying MPI handle."""
    if isinstance(arg, Handle):
        return addressof(_cell(arg))
    if isinstance(arg, tuple(structures)):
        structure: Any = arg
        address: int = structure._address()
        return address
    raise TypeError(f"expecting an MPI instance, not {type_name(arg)}")


def _handleof(arg: object) -> int:
    """Unsigned integer value with the underlying MPI handle."""
    if isinstance(arg, Handle):
        return arg.handle
    return _addressof(arg)
