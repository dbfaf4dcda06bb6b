"""Error handlers (MPI 4.1, section 9.3).

The handler of a communicator, window, file or session is private to a rank, as it is private to a
process in a real MPI: each rank has a table from objects to handlers.

`with_errhandler` declares the four methods of a class with error handlers. These classes copy or
remove the handler of an object with `inherit` and `forget`.
"""

from __future__ import annotations

import builtins
import sys
import traceback
from collections.abc import Callable
from typing import Any, Self

from pysmpi.mpi.base.constants import ERR_ERRHANDLER, SUCCESS
from pysmpi.mpi.base.exceptions import Exception, cint, error_handlers, fail
from pysmpi.mpi.base.families import C, having
from pysmpi.mpi.base.handles import Handle, type_name, wrong_type
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import computing, mpi
from pysmpi.python.frames import is_own

# Exceptions that a callback must not raise: MPI has no way to pass them on.
FAILURES = (builtins.Exception, SystemExit)

__all__ = ["Errhandler", "ERRHANDLER_NULL", "ERRORS_RETURN", "ERRORS_ABORT", "ERRORS_ARE_FATAL"]

# Largest number of user-defined handlers at a time, for each class of objects, as in mpi4py.
MAX_USER_HANDLERS = 32


class Errhandler(Handle, kind=5, null=0x14000000, error=ERR_ERRHANDLER):
    """Error handler."""

    __slots__ = ()

    _impl: ErrorReaction | None
    _outlives_mpi = True

    def __new__(cls, errhandler: Errhandler | None = None) -> Self:
        self = object.__new__(cls)
        Handle._copy(self, errhandler, "errhandler")
        return self

    @mpi.local("9.3.5")
    def free(self) -> None:
        """Call `Free` if not null."""
        if id(self) not in self._constants and self._sync() is not None:
            self.Free()

    @mpi.local("9.3.5")
    def Free(self) -> None:
        """Free an error handler."""
        action = self._live()
        self._drop()
        action.release()


class ErrorReaction:
    """The reaction to an error, before it is raised."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def act(self, subject: Handle | None, error: Exception) -> None:
        """React to an error: ERRORS_RETURN has no effect, so the error is raised."""

    def hold(self) -> None:
        """Count a new reference of an object or handle to this handler."""

    def release(self) -> None:
        """Remove a reference to this handler."""


class Fatal(ErrorReaction):
    """Ends the whole program, or the processes of the communicator."""

    __slots__ = ()

    def act(self, subject: Handle | None, error: Exception) -> None:
        """Print the error and abort."""
        where = f" on {subject._family.__name__}" if subject is not None else ""
        print(f"Fatal error{where} ({self.name}): {error}", file=sys.stderr)
        rank = current()
        call = rank.call
        what = "" if call is None else f" in {call.name}"
        rank.abort(int(error), f"was ended by {self.name} after an error{what}")


class UserAction(ErrorReaction):
    """Calls a function of the program."""

    __slots__ = ("function", "family", "references")

    def __init__(self, function: Callable[[Any, int], None], family: type[Handle]) -> None:
        super().__init__("user")
        self.function = function
        self.family = family
        self.references = 1

    def act(self, subject: Handle | None, error: Exception) -> None:
        """Call the function with a separate handle; an exception from it is fatal."""
        argument = self.family._wrap(subject._impl if subject is not None else None)
        try:
            with computing():
                self.function(argument, int(error))
        except FAILURES as failure:
            show(failure)
            print("Fatal error: exception in a user-defined error handler", file=sys.stderr)
            current().abort(1, "raised an exception in an error handler")
        finally:
            argument._set(None)

    def hold(self) -> None:
        """Count a new reference of an object or handle to this handler."""
        self.references += 1

    def release(self) -> None:
        """Remove a reference: the last one frees its place among the user's handlers."""
        self.references -= 1
        if self.references == 0:
            of_rank().created[self.family] -= 1
            Errhandler._table.forget(self)


RETURN = ErrorReaction("ERRORS_RETURN")
ABORT = Fatal("ERRORS_ABORT")
ARE_FATAL = Fatal("ERRORS_ARE_FATAL")

ERRHANDLER_NULL = Errhandler._define("ERRHANDLER_NULL", None, 0x14000000)
ERRORS_RETURN = Errhandler._define("ERRORS_RETURN", RETURN, 0x54000001)
ERRORS_ABORT = Errhandler._define("ERRORS_ABORT", ABORT, 0x54000003)
ERRORS_ARE_FATAL = Errhandler._define("ERRORS_ARE_FATAL", ARE_FATAL, 0x54000000)


# None is the null file (MPI 4.1, section 14.7), the only null handle with an error handler.
_INITIAL: dict[object, ErrorReaction] = {None: RETURN}
_NONE_CREATED: dict[type[Handle], int] = {}


class Handlers:
    """The error handlers that the objects of one rank have.

    `actions` has those of single objects; ranks share the initial dictionary.
    """

    __slots__ = ("default", "chosen", "actions", "fallback", "created")

    def __init__(self, default: ErrorReaction = RETURN) -> None:
        self.default = default  # for objects without their own handler: `rc.errors`
        self.chosen = True  # whether it comes from `rc.errors` or from MPI
        self.actions = _INITIAL
        # COMM_SELF if it has its own handler; else COMM_WORLD, as MPICH and MPI before 4.0.
        self.fallback: Handle | None = None
        self.created = _NONE_CREATED  # number of user-defined handlers

    def of(self, impl: object) -> ErrorReaction:
        """The handler of an object."""
        return self.actions.get(impl, self.default)

    def put(self, impl: object, action: ErrorReaction) -> None:
        """Give an object a handler."""
        if self.actions is _INITIAL:
            self.actions = dict(_INITIAL)
        self.actions[impl] = action

    def take(self, impl: object) -> ErrorReaction | None:
        """Remove and return the handler of an object; None if it has none."""
        return None if self.actions is _INITIAL else self.actions.pop(impl, None)

    def handle(self, subject: Handle | None, error: Exception) -> None:
        """Pass an error to the handler of its object, or of COMM_SELF."""
        if subject is None or subject._impl is None and not subject._null_bears_errors:
            subject = self.fallback or subject
        if subject is None or subject._impl is None and not subject._null_bears_errors:
            action = self.default
        else:
            action = self.of(subject._impl)
        action.act(subject, error)


# Of a rank that has none of its own: most ranks change no handler.
_UNCHANGED = Handlers()
HANDLERS = StateSlot(Rank, Handlers)


def _handle(subject: Handle | None, error: Exception) -> None:
    handlers = HANDLERS.peek(current())
    if handlers is not None:
        handlers.handle(subject, error)


error_handlers.append(_handle)


def of_rank() -> Handlers:
    """The error handlers of the calling rank, which may be changed."""
    return HANDLERS.of(current())


def known() -> Handlers:
    """The error handlers of the calling rank, only to be read."""
    return HANDLERS.peek(current()) or _UNCHANGED


def begin(default: ErrorReaction, chosen: bool) -> None:
    """Let objects without their own handler have the handler `default`."""
    handlers = known()
    if handlers.default is not default or handlers.chosen is not chosen:
        handlers = of_rank()
        handlers.default, handlers.chosen = default, chosen


def create(family: type[Handle], function: Callable[[Any, int], None]) -> Errhandler:
    """The body of `Create_errhandler`."""
    if not callable(function):
        raise AttributeError(f"errhandler_fn: {type_name(function)!r} object is not callable")
    family = family._family
    handlers = of_rank()
    if handlers.created is _NONE_CREATED:
        handlers.created = {}
    created = handlers.created
    if created.get(family, 0) >= MAX_USER_HANDLERS:
        raise RuntimeError(
            f"cannot create more than {MAX_USER_HANDLERS} user-defined error handlers"
        )
    created[family] = created.get(family, 0) + 1
    return Errhandler._of(UserAction(function, family))


def _bearer(subject: Handle) -> object:
    """The object of a handle's error handler; None for the null file."""
    return subject._sync() if subject._null_bears_errors else subject._live()


def get(subject: Handle) -> Errhandler:
    """The body of `Get_errhandler`."""
    action = known().of(_bearer(subject))
    action.hold()
    return Errhandler._of(action)


def set(subject: Handle, errhandler: Errhandler) -> None:
    """The body of `Set_errhandler`."""
    impl = _bearer(subject)
    if not isinstance(errhandler, Errhandler):
        raise wrong_type("errhandler", Errhandler, errhandler)
    action = errhandler._live()
    handlers = of_rank()
    if isinstance(action, UserAction) and action.family is not subject._family:
        fail(
            ERR_ERRHANDLER,
            f"a handler of {action.family.__name__} objects set for a {type(subject).__name__}",
            subject,
        )
    action.hold()
    handlers.of(impl).release()
    handlers.put(impl, action)
    known = subject._named.get(id(impl))
    if known is not None and (
        known[1] == "COMM_SELF"
        or known[1] == "COMM_WORLD" and not handlers.chosen and handlers.fallback is None
    ):  # fmt: skip
        handlers.fallback = known[0]


def call(subject: Handle, errorcode: int) -> None:
    """The body of `Call_errhandler`."""
    code = cint(errorcode)
    action = known().of(_bearer(subject))
    # A predefined handler ignores a success; users' handlers get it too.
    if code != SUCCESS or isinstance(action, UserAction):
        action.act(subject, Exception(code))


def inherit(parent: Handle, child: Handle) -> None:
    """Give a new communicator the error handler of another, unless `rc.errors` names one.

    MPI passes it on (MPI 4.1, section 7.4.2), then mpi4py sets that of `rc.errors`.
    """
    handlers = known()
    action = None if handlers.chosen else handlers.actions.get(parent._impl)
    if action is not None:
        action.hold()
        of_rank().put(child._impl, action)


def adopt(file: Handle) -> None:
    """Give a new file the error handler of the null file, unless `rc.errors` names another."""
    handlers = known()
    if not handlers.chosen:
        action = handlers.of(None)
        action.hold()
        of_rank().put(file._impl, action)


def forget(subject: Handle) -> None:
    """An object is about to be freed."""
    action = known().take(subject._impl)
    if action is not None:
        action.release()


def show(error: BaseException) -> None:
    """Print an exception from a callback of the program, with the program's frames."""
    trace = error.__traceback__
    while trace is not None and is_own(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace, file=sys.stderr)


class WithErrhandler:
    """The methods of handles whose objects have an error handler: see `families.having`."""

    __slots__ = ()

    @classmethod
    def Create_errhandler(cls, errhandler_fn: Callable[[Self, int], None]) -> Errhandler:
        """Create a new error handler for objects."""
        return create(cls, errhandler_fn)  # type: ignore[arg-type]

    def Get_errhandler(self) -> Errhandler:
        """Get the error handler for an object."""
        return get(self)  # type: ignore[arg-type]

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Set the error handler for an object."""
        set(self, errhandler)  # type: ignore[arg-type]

    def Call_errhandler(self, errorcode: int) -> None:
        """Call the error handler installed on an object."""
        call(self, errorcode)  # type: ignore[arg-type]


def with_errhandler(section: str, noun: str) -> Callable[[C], C]:
    """Declare the methods of `WithErrhandler` for a class; `noun` is "a" and its objects' name."""
    return having(WithErrhandler, section, noun, {"Call_errhandler": "9.5.2"})
