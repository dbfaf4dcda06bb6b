"""Initialisation, inquiry and clocks (MPI 4.1, chapters 9 and 11), and mpi4py's options."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pysmpi.mpi.base import attributes, constants, errhandlers
from pysmpi.mpi.base.constants import (
    ERR_ARG,
    ERR_OTHER,
    THREAD_MULTIPLE,
    THREAD_SINGLE,
)
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.info import Info
from pysmpi.mpi.base.options import Environment, RcOptions, of_rank, put, thread_of
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.communicators.intracomm import COMM_SELF, COMM_WORLD
from pysmpi.mpi.datatypes import datatypes
from pysmpi.mpi.groups.hardware import resources
from pysmpi.mpi.processes import inactive
from pysmpi.version import __version__

__all__ = [
    "Init",
    "Init_thread",
    "Finalize",
    "Is_initialized",
    "Is_finalized",
    "Query_thread",
    "Is_thread_main",
    "Get_version",
    "Get_library_version",
    "Get_abi_version",
    "Get_abi_info",
    "Get_abi_fortran_info",
    "Get_processor_name",
    "Get_hw_resource_info",
    "Wtime",
    "Wtick",
    "Pcontrol",
    "get_vendor",
    "_set_abort_status",
]

# The supported standard; VERSION and SUBVERSION are those of the names.
MPI_VERSION = (4, 1)

# The clock has double-precision seconds: this is its resolution after days.
TICK = 1e-9

# Called by Finalize with the rank, the newest first, while MPI can still be used.
at_finalize: list[Callable[[Rank], None]] = []

# The value of the option `errors`; None: MPI's default handlers for new objects.
_ACTIONS: dict[str, errhandlers.ErrorReaction | None] = {
    "default": None,
    "exception": errhandlers.RETURN,
    "abort": errhandlers.ABORT,
    "fatal": errhandlers.ARE_FATAL,
}


def start(
    rc: object = None, environ: Mapping[str, str] | None = None, options: RcOptions | None = None
) -> Environment:
    """The calling rank imports `mpi4py.MPI`: read its options, and initialize if requested.

    `rc` is the rank's `mpi4py.rc`, `environ` its environment variables; nothing is read if the
    `options` are known.
    """
    if options is None:
        options = RcOptions(rc, environ)
    if options.initialize:
        level = options.thread_level if options.threads else THREAD_SINGLE
        thread = thread_of(current())
        return _initialize(Environment(options, thread_level=level, init_thread=thread))
    errhandlers.begin(errhandlers.RETURN, True)
    inactive.enter(current())
    return put(Environment(options, initialized=False))


def finish() -> int:
    """The calling rank has ended: finalize if necessary.

    Returns the status with which `python -m mpi4py.run` aborts all ranks, usually 0.
    """
    environment = of_rank()
    if environment.initialized and not environment.finalized:
        if not environment.abort_status and environment.options.finalize:
            _finalize()
    inactive.leave(current())
    return environment.abort_status


def _initialize(environment: Environment) -> Environment:
    environment = put(environment)
    inactive.leave(current())
    # mpi4py sets this handler on every communicator, window, file and session that it returns.
    action = _ACTIONS[environment.options.errors]
    errhandlers.begin(action or errhandlers.ARE_FATAL, action is not None)
    rank = current()
    seconds = rank.universe.settings.init
    if seconds > 0.0:
        rank.sleep(seconds)
    return environment


def _require_active(call: str) -> Environment:
    environment = of_rank()
    if not environment.initialized:
        fail(ERR_OTHER, f"{call} called before MPI was initialized")
    if environment.finalized:
        fail(ERR_OTHER, f"{call} called after MPI was finalized")
    return environment


@mpi.process("11.2.1")
def Init() -> None:
    """Initialize the MPI execution environment."""
    Init_thread(THREAD_SINGLE)


@mpi.process("11.2.1")
def Init_thread(required: int = THREAD_MULTIPLE) -> int:
    """Initialize the MPI execution environment."""
    level = cint(required)
    environment = of_rank()
    if environment.finalized:
        fail(ERR_OTHER, "MPI was finalized and cannot be initialized again")
    if environment.initialized:
        fail(ERR_OTHER, "MPI is initialized already")
    if not THREAD_SINGLE <= level <= THREAD_MULTIPLE:
        fail(ERR_ARG, f"required is {level}, expecting one of THREAD_SINGLE to THREAD_MULTIPLE")
    thread = thread_of(current())
    _initialize(environment._replace(initialized=True, thread_level=level, init_thread=thread))
    return level


@mpi.process("11.2.2")
def Finalize() -> None:
    """Terminate the MPI execution environment."""
    _finalize()
    inactive.enter(current())


def _finalize() -> None:
    _require_active("Finalize")
    fallback = errhandlers.known().fallback
    rank = current()
    if rank.universe.settings.barrier_finalization:
        COMM_WORLD.Barrier()
    # The attributes of COMM_SELF go first, so that their callbacks can still use MPI
    # (MPI 4.1, section 11.2.4).

    attributes.deleted(COMM_SELF)
    for function in reversed(at_finalize):
        function(rank)
    put(of_rank()._replace(finalized=True))
    if fallback is not None:
        errhandlers.forget(fallback)
        errhandlers.of_rank().fallback = None


@mpi.local("11.2.1")
def Query_thread() -> int:
    """Return the level of thread support provided by the MPI library."""
    return _require_active("Query_thread").thread_level


@mpi.local("11.2.1")
def Is_thread_main() -> bool:
    """Indicate whether this thread called `Init` or `Init_thread`."""
    return _require_active("Is_thread_main").init_thread == thread_of(current())


@mpi.local("11.2.3")
def Is_initialized() -> bool:
    """Indicate whether `Init` has been called."""
    return of_rank().initialized


@mpi.local("11.2.3")
def Is_finalized() -> bool:
    """Indicate whether `Finalize` has completed."""
    return of_rank().finalized


@mpi.local("9.1.1")
def Get_version() -> tuple[int, int]:
    """Obtain the version number of the MPI standard."""
    return MPI_VERSION


@mpi.local("9.1.1")
def Get_library_version() -> str:
    """Obtain the version string of the MPI library."""
    return f"pysmpi {__version__}"


# The MPI library that compiled libraries of the program take for theirs, and its version.
VENDOR: StateSlot[Universe, tuple[str, tuple[int, int, int]]] = StateSlot(Universe)


@mpi.local()
def get_vendor() -> tuple[str, tuple[int, int, int]]:
    """Information about the underlying MPI implementation.

    Returns:
      - string with the name of the MPI implementation.
      - integer 3-tuple version number ``(major, minor, micro)``.
    Libraries of the program choose by this what they open: it is then MPICH or Open MPI, whichever
    interface they have.
    """
    universe = getattr(current(), "universe", None)
    chosen = None if universe is None else VENDOR.peek(universe)
    if chosen is not None:
        return chosen
    numbers = [int("".join(filter(str.isdigit, part)) or 0) for part in __version__.split(".")]
    major, minor, micro = (numbers + [0, 0, 0])[:3]
    return ("pysmpi", (major, minor, micro))


@mpi.local()
def Get_abi_version() -> tuple[int, int]:
    """Obtain the MPI ABI version number."""
    return (-1, -1)


@mpi.local()
def Get_abi_info() -> Info:
    """Obtain information about the MPI ABI."""
    return Info.Create(
        {
            f"mpi_{name}_size": str(getattr(datatypes, name.upper()).Get_size())
            for name in ("aint", "count", "offset")
        }
    )


# Fortran types that a compiler may lack, in the order of MPI 5.0, section 20.3.
_OPTIONAL_TYPES = [
    f"{kind}{size}"
    for kind, sizes in (
        ("logical", (1, 2, 4, 8, 16)),
        ("integer", (1, 2, 4, 8, 16)),
        ("real", (2, 4, 8, 16)),
        ("complex", (4, 8, 16, 32)),
        ("double_complex", ("",)),
    )
    for size in sizes
]


@mpi.local()
def Get_abi_fortran_info() -> Info:
    """Obtain information about the Fortran MPI ABI."""
    pairs = {}
    for name in ("logical", "integer", "real", "double_precision"):
        pairs[f"mpi_{name}_size"] = str(getattr(datatypes, name.upper()).Get_size())
    for name in _OPTIONAL_TYPES:
        datatype = getattr(datatypes, name.upper())
        known = bool(datatype) and datatype.Get_size() > 0
        pairs[f"mpi_{name}_supported"] = "true" if known else "false"
    return Info.Create(pairs)


@mpi.local("9.1.2")
def Get_processor_name() -> str:
    """Obtain the name of the calling processor."""
    return current().host_name()[: constants.MAX_PROCESSOR_NAME - 1]


@mpi.local("9.1.2")
def Get_hw_resource_info() -> Info:
    """Obtain information about the hardware platform of the calling processor."""
    # "true" means that the process stays within one instance of the kind of resource.
    return Info.Create(dict.fromkeys(resources(current()), "true"))


@mpi.local("9.6")
def Wtime() -> float:
    """Return an elapsed time on the calling processor."""
    return current().clock()


@mpi.local("9.6")
def Wtick() -> float:
    """Return the resolution of `Wtime`."""
    return TICK


@mpi.local("15.2.4")
def Pcontrol(level: int) -> None:
    """Control profiling."""
    number = cint(level)
    if not 0 <= number <= 2:
        fail(ERR_ARG, f"level is {number}, expecting 0, 1 or 2")


def _set_abort_status(status: int) -> None:
    """Helper for ``python -m mpi4py.run ...``."""
    put(of_rank()._replace(abort_status=cint(status)))
