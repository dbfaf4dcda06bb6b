"""`mpif.h` and the source of the modules `mpi` and `mpi_f08` for programs in Fortran.

The compiler of the user compiles the modules. Their interfaces name the entry points in C. Buffers
are of any type and rank, by an attribute of gfortran.
"""

from __future__ import annotations

from collections.abc import Iterator

from pysmpi.abi.families import BUFFERS, EntryPointText, constants, in_fortran
from pysmpi.abi.table import HANDLES, Argument, Function, functions

_COLUMNS = {"mpich": 0, "openmpi": 1}
_STATUS = {"mpich": (5, 3, 4, 5), "openmpi": (6, 1, 2, 3)}
_LOGICALS = frozenset("flag reorder commute periods remain_dims high weighted".split())
_TYPES = sorted(HANDLES)
_EXTERNALS = """\
      EXTERNAL MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, MPI_DUP_FN
      EXTERNAL MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN
      EXTERNAL MPI_COMM_DUP_FN
      EXTERNAL MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN
      EXTERNAL MPI_TYPE_DUP_FN
      EXTERNAL MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN
      EXTERNAL MPI_WIN_DUP_FN, MPI_CONVERSION_FN_NULL
"""
_CLOCKS = """\
      EXTERNAL MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK
      DOUBLE PRECISION MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK
      EXTERNAL MPI_AINT_ADD, MPI_AINT_DIFF
      INTEGER(KIND=8) MPI_AINT_ADD, MPI_AINT_DIFF
"""
_SENTINELS = """\
      INTEGER MPI_BOTTOM, MPI_IN_PLACE
      INTEGER MPI_ERRCODES_IGNORE(1)
      INTEGER MPI_UNWEIGHTED(1), MPI_WEIGHTS_EMPTY(1)
      CHARACTER MPI_ARGV_NULL(1), MPI_ARGVS_NULL(1,1)
"""
_STATUSES = """\
      INTEGER MPI_STATUS_IGNORE(MPI_STATUS_SIZE)
      INTEGER MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)
"""
# As `fortran.c` and `openmpi.c` have them.
_COMMONS = {
    "mpich": """\
      COMMON /MPIPRIV1/ MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
      COMMON /MPIPRIV2/ MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
      COMMON /MPIPRIVC/ MPI_ARGVS_NULL, MPI_ARGV_NULL
      COMMON /MPIFCMB5/ MPI_UNWEIGHTED
      COMMON /MPIFCMB9/ MPI_WEIGHTS_EMPTY
      SAVE /MPIPRIV1/, /MPIPRIV2/, /MPIPRIVC/, /MPIFCMB5/, /MPIFCMB9/
""",
    "openmpi": """\
      COMMON /MPI_FORTRAN_BOTTOM/ MPI_BOTTOM
      COMMON /MPI_FORTRAN_IN_PLACE/ MPI_IN_PLACE
      COMMON /MPI_FORTRAN_STATUS_IGNORE/ MPI_STATUS_IGNORE
      COMMON /MPI_FORTRAN_STATUSES_IGNORE/ MPI_STATUSES_IGNORE
      COMMON /MPI_FORTRAN_ERRCODES_IGNORE/ MPI_ERRCODES_IGNORE
      COMMON /MPI_FORTRAN_ARGV_NULL/ MPI_ARGV_NULL
      COMMON /MPI_FORTRAN_ARGVS_NULL/ MPI_ARGVS_NULL
      COMMON /MPI_FORTRAN_UNWEIGHTED/ MPI_UNWEIGHTED
      COMMON /MPI_FORTRAN_WEIGHTS_EMPTY/ MPI_WEIGHTS_EMPTY
""",
}


def _integers(interface: str) -> Iterator[tuple[str, str, str]]:
    """The name, the class of handles (or nothing) and the value of each constant."""
    column = _COLUMNS[interface]
    for group, name, values in constants():
        handle = len(group) == 1
        text = values[3] if handle and column == 1 and values[3] != "-" else values[column]
        if handle and column == 1 and values[3] == "-":
            text = values[0]
        if text == "-" or group == "tools" or name.startswith("T_"):
            continue
        value = int(text, 0)
        if group == "length" and not name.startswith("BSEND"):
            value -= 1  # strings of C have an end
        yield (
            f"MPI_{name}",
            group if handle else "",
            str((value & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)),
        )


def _parameters(interface: str) -> Iterator[str]:
    size, source, tag, error = _STATUS[interface]
    fixed = {
        "VERSION": 4, "SUBVERSION": 1, "STATUS_SIZE": size, "SOURCE": source, "TAG": tag,
        "ERROR": error, "ADDRESS_KIND": 8, "OFFSET_KIND": 8, "COUNT_KIND": 8, "INTEGER_KIND": 4,
    }  # fmt: skip
    for name, value in fixed.items():
        yield f"      INTEGER MPI_{name}\n      PARAMETER (MPI_{name}={value})\n"
    for name in ("SUBARRAYS_SUPPORTED", "ASYNC_PROTECTS_NONBLOCKING"):
        yield f"      LOGICAL MPI_{name}\n      PARAMETER (MPI_{name}=.FALSE.)\n"


def mpif_h(interface: str) -> str:
    """The text of `mpif.h`, for fixed and free form."""
    lines = ["! Written by pysmpi.\n", *_parameters(interface)]
    for name, _, value in _integers(interface):
        kind = "INTEGER(KIND=8)" if name == "MPI_DISPLACEMENT_CURRENT" else "INTEGER"
        lines.append(f"      {kind} {name}\n      PARAMETER ({name}={value})\n")
    lines += [_SENTINELS, _STATUSES, _COMMONS[interface], _EXTERNALS, _CLOCKS]
    return "".join(lines)


def _declaration(function: Function, argument: Argument, f08: bool) -> list[str]:
    """The declaration of a dummy argument."""
    name, kind = _name(argument), argument.type
    old = EntryPointText(0, function, True).old
    shape = "(*)" if argument.brackets or argument.name.startswith("array_of") else ""
    if not f08 and kind != "char" and not kind.endswith("function"):
        # Programs for `mpif.h` may pass a number where an array is ignored.
        return [f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}", f"type(*) :: {name}(*)"]
    if argument.type == "Status":
        if f08:
            return [f"type(MPI_Status) :: {name}{shape}"]
        return [f"integer :: {name}(MPI_STATUS_SIZE{',*' if shape else ''})"]
    if kind in HANDLES and not kind.endswith("function"):
        return [f"{f'type(MPI_{kind})' if f08 else 'integer'} :: {name}{shape}"]
    if kind.endswith("function"):
        return [f"external :: {name}"]
    if kind == "char":
        if argument.name == "array_of_argv":
            return (
                [f"character(len=*) :: {name}(*)"]
                if not f08
                else [f"character(len=*) :: {name}(*)"]
            )
        words = len(argument.stars) + bool(argument.brackets) != 1
        return [f"character(len=*) :: {name}{'(*)' if words else ''}"]
    if kind == "void" and argument.name in ("attribute_val", "extra_state"):
        return [f"{'integer' if old else 'integer(MPI_ADDRESS_KIND)'} :: {name}"]
    if kind == "void":
        return [f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}", f"type(*) :: {name}(*)"]
    if argument.name == "ranges":
        return [f"integer :: {name}(3,*)"]
    if argument.name in _LOGICALS:
        return [f"logical :: {name}{shape}"]
    wide = kind in ("Aint", "Offset", "Count", "A") and not old
    kinds = {"Offset": "MPI_OFFSET_KIND", "Count": "MPI_COUNT_KIND"}
    word = f"integer({kinds.get(kind, 'MPI_ADDRESS_KIND')})" if wide else "integer"
    return [f"{word} :: {name}{shape}"]


def _name(argument: Argument) -> str:
    return "assertion" if argument.name == "assert" else argument.name


def _subroutine(function: Function, f08: bool) -> list[str]:
    arguments = [
        each
        for each in function.arguments
        if each.type != "..."
        and not (function.name.startswith("Init") and each.name.startswith("arg"))
    ]
    name = f"MPI_{function.name}"
    names = [_name(each) for each in arguments]
    if function.result == "int" and function.name != "Pcontrol":
        names.append("ierror")
    body = [f"subroutine {name}{'_f08' if f08 else ''}({', '.join(names)})"]
    body.append("import")
    for argument in arguments:
        body += _declaration(function, argument, f08)
    if names and names[-1] == "ierror":
        body.append(f"integer{', optional' if f08 else ''} :: ierror")
    body.append("end subroutine")
    return body


def _wrapped(lines: list[str]) -> Iterator[str]:
    for line in lines:
        first = True
        while len(line) > 100 and not line.startswith("!"):
            at = line.rindex(" ", 0, 100)
            yield ("" if first else "  ") + line[:at] + " &"
            line, first = line[at + 1 :], False
        yield line


def _listed() -> Iterator[Function]:
    for function in functions():
        if in_fortran(function) and function.result == "int":
            yield function


def mpi_module() -> str:
    """The source of the module `mpi`: functions with buffers have interfaces."""
    lines = ["module mpi", "implicit none", "include 'mpif.h'", "interface"]
    for function in _listed():
        if any(each.name in BUFFERS and each.type == "void" for each in function.arguments):
            lines += _subroutine(function, False)
    lines += ["end interface", "end module mpi"]
    return "\n".join(_wrapped(lines)) + "\n"


def f08_module(interface: str) -> str:
    """The source of the module `mpi_f08`."""
    lines = ["module mpi_f08", "use, intrinsic :: iso_c_binding, only: c_ptr", "implicit none"]
    for kind in _TYPES:
        lines += [f"type, bind(C) :: MPI_{kind}", "integer :: MPI_VAL", f"end type MPI_{kind}"]
    fields = "integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR"
    before, after = "integer, private :: low, high", ""
    if interface == "openmpi":
        before, after = "", "integer, private :: cancelled, low, high"
    lines += ["type, bind(C) :: MPI_Status", before, fields, after, "end type MPI_Status"]
    lines += "".join(_parameters(interface)).splitlines()
    letters = {letter: kind for kind, letter in HANDLES.items()}
    for name, group, value in _integers(interface):
        if group:
            kind = f"MPI_{letters[group]}"
            lines.append(f"type({kind}), parameter :: {name} = {kind}({value})")
        else:
            word = "integer(8)" if name == "MPI_DISPLACEMENT_CURRENT" else "integer"
            lines.append(f"{word}, parameter :: {name} = {value}")
    lines += _SENTINELS.splitlines()
    lines += ["type(MPI_Status) :: MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE(1)"]
    lines += _COMMONS[interface].splitlines()
    lines += [*_EXTERNALS.splitlines(), *_CLOCKS.splitlines()]
    for function in _listed():
        lines += [f"interface MPI_{function.name}", *_subroutine(function, True), "end interface"]
    for operator, word in (("==", "equal"), ("/=", "differ")):
        lines.append(f"interface operator({operator})")
        lines += [f"module procedure {word}_{kind}" for kind in _TYPES]
        lines.append("end interface")
    lines += [f"private :: {word}_{kind}" for word in ("equal", "differ") for kind in _TYPES]
    lines.append("contains")
    for kind in _TYPES:
        for operator, word in (("==", "equal"), ("/=", "differ")):
            lines += [
                f"elemental logical function {word}_{kind}(a, b)",
                f"type(MPI_{kind}), intent(in) :: a, b",
                f"{word}_{kind} = a%MPI_VAL {operator} b%MPI_VAL",
                "end function",
            ]
    lines.append("end module mpi_f08")
    return "\n".join(_wrapped([line for line in lines if line])) + "\n"
