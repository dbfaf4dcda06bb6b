"""MPI calls: the registry of all procedures, and the boundary between them and the program.

A public function of MPI is declared where it is defined, by the decorator of its kind:

    @mpi.point_to_point("3.2.4")
    def Recv(self, buf, source=ANY_SOURCE, tag=ANY_TAG, status=None): ...

The decorator registers a `Procedure` and puts the boundary around the function. The boundary first
stops the clock of the rank's compute, so that pysmpi's own work does not count as compute of the
program. At the end, also after an exception, it starts the clock. In between `rank.call` is the
`MpiCall`. A call that MPI makes within another call belongs to the outer call, and the boundary has
no effect.

Work that belongs to the program's process, such as pickling in mpi4py, and functions of the program
run in the context `computing()`.

A local call only reads or sets state of the calling rank. Its work is compute of the program, so
the clock continues.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any, TypeVar

from greenlet import getcurrent

from pysmpi.mpi.base.docstrings import PUBLIC
from pysmpi.mpi.base.failed_calls import note_failure
from pysmpi.mpi.base.procedures import (
    VARARGS,
    VARKEYWORDS,
    CallKind,
    Procedure,
    Role,
)
from pysmpi.mpi.base.ranks import MpiCall, Rank, current
from pysmpi.mpi.base.running import computing
from pysmpi.mpi.internal_errors import internal, is_internal
from pysmpi.python.frames import BOUNDARY

__all__ = [
    "CallKind",
    "MpiCall",
    "PROCEDURES",
    "Procedure",
    "Role",
    "bare_boundary",
    "begun",
    "call_of",
    "check",
    "computing",
    "ended",
    "is_boundary",
    "mpi",
    "observe",
    "observe_no_more",
    "procedure_of",
    "replace_functions",
]

F = TypeVar("F", bound=Callable[..., object])


PROCEDURES: list[Procedure] = []  # all of them, in the order of their definition
_by_boundary: dict[FunctionType, Procedure] = {}


def procedure_of(member: object) -> Procedure | None:
    """The procedure that a public function or method of `mpi4py.MPI` calls, if it is one."""
    function = getattr(member, "__func__", member)
    return _by_boundary.get(function) if isinstance(function, FunctionType) else None


def is_boundary(code: CodeType) -> bool:
    """Whether code belongs to a boundary."""
    return code.co_filename == BOUNDARY


def check(error: BaseException, procedure: Procedure, values: tuple[object, ...]) -> None:
    """Raise another exception in place of one that is a bug of pysmpi, or a method of the program
    called with an object of a wrong class. Others are noted for reports.
    """
    if not is_internal(error):
        note_failure(current(), error)
        return
    if procedure.owners and procedure.parameters[:1] == ("self",):
        if not isinstance(values[0], tuple(procedure.owners)):
            owner = procedure.owners[0]
            raise TypeError(
                f"descriptor '{procedure.name}' for '{PUBLIC}.{owner.__name__}' objects doesn't "
                f"apply to a '{type(values[0]).__name__}' object"
            ) from None
    raise internal(error, procedure.name) from error


def call_of(fiber: Any) -> MpiCall | None:
    """The call in which a fiber is, running or suspended."""
    record = getattr(fiber, "record", None)
    if record is None:
        call: MpiCall | None = fiber.rank.call
        return call
    if isinstance(record, MpiCall):
        return record
    result = fiber.record = MpiCall(record[0], fiber.rank, record[1:])
    result.fiber = fiber
    return result


def begun(rank: Rank) -> None:
    """Tell the watchers of a rank that a call has begun: it is `rank.call`.

    On a core or a memory that others use too, only their compute decides when the rank's own has
    passed.
    """
    process = rank.process
    if process.core.shares() and process.debt > 0.0 and not rank.engine.controlled:
        process.finish_compute()
    for watcher in rank.watchers or ():
        watcher.begun(rank)


def ended(rank: Rank) -> None:
    """Tell the watchers of a rank that `rank.call` ends."""
    for watcher in rank.watchers or ():
        watcher.ended(rank)


# Both boundaries are written out: one more function would cost as much as all the rest. Functions
# are global: the frame of a call, which each rank that waits has, would hold those of a closure.
_CLOCKED = """
def make(_procedure, _function):
    def boundary({parameters}):
        try:
            _rank = getcurrent().rank
        except (AttributeError, RuntimeError):
            _rank = current()
        if _rank.in_call:
            return _function({passed})
        _timer = _rank.timer
        if _timer is not None:
            _rank.process.debt += _timer.stop()
        _rank.in_call = True
        _outer = _rank.record
        _rank.record = (_procedure, {values})
        try:
            if _rank.watchers is not None:
                begun(_rank)
            return _function({passed})
        except BaseException as _error:
            check(_error, _procedure, ({values}))
            raise
        finally:
            if _rank.watchers is not None:
                ended(_rank)
            _rank.record = _outer
            if _rank.in_call:
                _rank.in_call = False
                _timer = _rank.timer
                if _timer is not None:
                    _timer.start()
    return boundary
"""
_LOCAL = """
def make(_procedure, _function):
    def boundary({parameters}):
        try:
            _rank = getcurrent().rank
        except (AttributeError, RuntimeError):
            _rank = current()
        if _rank.in_call or _rank.record is not None:
            return _function({passed})
        _rank.record = (_procedure, {values})
        try:
            return _function({passed})
        except BaseException as _error:
            check(_error, _procedure, ({values}))
            raise
        finally:
            _rank.record = None
    return boundary
"""
_COMMON: dict[str, object] = {
    "__builtins__": builtins,  # C extensions import with those of the innermost interpreted frame
    "getcurrent": getcurrent,
    "current": current,
    "begun": begun,
    "ended": ended,
    "check": check,
}
_TEMPLATES: dict[tuple[bool, int, int], CodeType] = {}


def _code(function: Any, clocked: bool) -> CodeType:
    """The code of the boundary, with the signature of a function.

    Functions with the same number of parameters share a template; only the names differ.
    """
    code = function.__code__
    names = code.co_varnames
    count, posonly = code.co_argcount, code.co_posonlyargcount
    plain = not code.co_kwonlyargcount and not code.co_flags & (VARARGS | VARKEYWORDS)
    key = (clocked, count, posonly)
    found = _TEMPLATES.get(key) if plain else None
    if found is None:
        own = [f"_{i}" for i in range(count)] if plain else list(names[:count])
        parameters, passed, values = list(own), list(own), list(own)
        if posonly:
            parameters.insert(posonly, "/")
        last = count + code.co_kwonlyargcount
        if code.co_flags & VARARGS:
            parameters.append(f"*{names[last]}")
            passed.append(f"*{names[last]}")
        elif code.co_kwonlyargcount:
            parameters.append("*")
        for name in names[count:last]:
            parameters.append(name)
            passed.append(f"{name}={name}")
            values.append(name)
        if code.co_flags & VARARGS:
            values.append(names[last])
            last += 1
        if code.co_flags & VARKEYWORDS:
            parameters.append(f"**{names[last]}")
            passed.append(f"**{names[last]}")
            values.append(names[last])
        source = (_CLOCKED if clocked else _LOCAL).format(
            parameters=", ".join(parameters),
            passed=", ".join(passed),
            values="".join(f"{value}, " for value in values),
        )
        made: dict[str, Any] = {}
        exec(compile(source, BOUNDARY, "exec"), made)
        found = next(c for c in made["make"].__code__.co_consts if isinstance(c, CodeType))
        if plain:
            _TEMPLATES[key] = found
    return found.replace(
        co_varnames=names[:count] + found.co_varnames[count:] if plain else found.co_varnames,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )


def bare_boundary(function: Any, procedure: Procedure) -> FunctionType:
    """The boundary of a function, which no registry knows."""
    code = _code(function, procedure.kind is not CallKind.LOCAL)
    known = {"_procedure": procedure, "_function": function}
    cells = tuple(CellType(known[name]) for name in code.co_freevars)
    return FunctionType(code, _COMMON, function.__name__, function.__defaults__, cells)


def _boundary(function: Any, procedure: Procedure) -> object:
    """The boundary of a function; it looks like the function itself."""
    result = bare_boundary(function, procedure)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__annotations__ = function.__annotations__
    result.__doc__ = function.__doc__
    result.__module__ = function.__module__
    result.__qualname__ = function.__qualname__
    procedure.boundary = result
    _by_boundary[result] = procedure
    return result


def observe(wrap: Callable[[Procedure, object], object]) -> None:
    """Put `wrap(procedure, function)` in place of the function inside every boundary.

    For observers that need every call, local ones included, with its result. Nothing is tested at
    the boundaries, so calls cost the same when nobody observes. A call that MPI makes within
    another call runs the same code: `rank.call` is the call of the program.
    """
    for boundary, procedure in _by_boundary.items():
        _inside(boundary).cell_contents = wrap(procedure, procedure.function)


def replace_functions(wrap: Callable[[Procedure, object], object]) -> Callable[[], None]:
    """Put `wrap(procedure, function)` in place of what is inside every boundary now.

    Returns a function that puts it back, where nothing else has come in its place.
    """
    replaced: list[tuple[CellType, object, object]] = []
    for boundary, procedure in _by_boundary.items():
        cell = _inside(boundary)
        before = cell.cell_contents
        after = wrap(procedure, before)
        if after is not before:
            cell.cell_contents = after
            replaced.append((cell, before, after))

    def restore() -> None:
        for cell, before, after in replaced:
            if cell.cell_contents is after:
                cell.cell_contents = before

    return restore


def observe_no_more() -> None:
    """Restore the functions inside the boundaries."""
    for boundary, procedure in _by_boundary.items():
        _inside(boundary).cell_contents = procedure.function


def _inside(boundary: FunctionType) -> CellType:
    cells = boundary.__closure__
    assert cells is not None
    return cells[boundary.__code__.co_freevars.index("_function")]


class mpi:
    """The decorators that declare procedures of MPI, one for each kind.

    Each takes the section of MPI 4.1 that describes the procedure, and the roles of parameters
    whose names do not imply them. A procedure that mpi4py adds has no section.
    """

    @staticmethod
    def _declared(kind: CallKind, section: str, roles: dict[str, Role]) -> Callable[[F], F]:
        def declare(function: object) -> Any:
            procedure = Procedure(function, kind, section, roles)
            PROCEDURES.append(procedure)
            return _boundary(function, procedure)

        return declare

    @staticmethod
    def local(section: str = "", **roles: Role) -> Callable[[F], F]:
        """A call that needs no other rank and takes no simulated time."""
        return mpi._declared(CallKind.LOCAL, section, roles)

    @staticmethod
    def point_to_point(section: str = "", **roles: Role) -> Callable[[F], F]:
        """A call of chapters 3 and 4, or one that completes their operations."""
        return mpi._declared(CallKind.POINT_TO_POINT, section, roles)

    @staticmethod
    def collective(section: str = "", **roles: Role) -> Callable[[F], F]:
        """A call that all ranks of a communicator make."""
        return mpi._declared(CallKind.COLLECTIVE, section, roles)

    @staticmethod
    def one_sided(section: str = "", **roles: Role) -> Callable[[F], F]:
        """A call of chapter 12."""
        return mpi._declared(CallKind.ONE_SIDED, section, roles)

    @staticmethod
    def file(section: str = "", **roles: Role) -> Callable[[F], F]:
        """A call of chapter 14."""
        return mpi._declared(CallKind.FILE, section, roles)

    @staticmethod
    def process(section: str = "", **roles: Role) -> Callable[[F], F]:
        """A call of chapter 11."""
        return mpi._declared(CallKind.PROCESS, section, roles)
