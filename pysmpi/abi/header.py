"""The header `mpi.h` of the MPI libraries that compiled programs call, for each binary interface.

The constants of MPICH's are those of `mpi4py.MPI`, those of the others are in `constants.txt`, and
the prototypes are those of `functions.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from pysmpi.abi.families import constants as table_of_constants
from pysmpi.abi.interfaces import INTERFACES
from pysmpi.abi.table import HANDLES, Argument, Function, functions
from pysmpi.mpi.base.handles import Handle
from pysmpi.mpi.datatypes.datatypes import COMPILED

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

_START = """\
#ifndef MPI_INCLUDED
#define MPI_INCLUDED
/* Written by pysmpi: the binary interface of %s. */
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#define MPI_VERSION %d
#define MPI_SUBVERSION %d
#define PYSMPI 1
"""
_TYPES = """\
typedef int MPI_Comm, MPI_Datatype, MPI_Request, MPI_Message, MPI_Op, MPI_Group, MPI_Info;
typedef int MPI_Errhandler, MPI_Session, MPI_Win, MPI_Fint;
typedef struct pysmpi_file *MPI_File;
typedef long MPI_Aint;
typedef long long MPI_Count, MPI_Offset;
typedef struct {
    int count_lo, count_hi_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;
"""
# Handles of Open MPI and of the standard are pointers.
_POINTERS = """\
typedef struct %(prefix)scommunicator_t *MPI_Comm;
typedef struct %(prefix)sdatatype_t *MPI_Datatype;
typedef struct %(prefix)srequest_t *MPI_Request;
typedef struct %(prefix)smessage_t *MPI_Message;
typedef struct %(prefix)sop_t *MPI_Op;
typedef struct %(prefix)sgroup_t *MPI_Group;
typedef struct %(prefix)sinfo_t *MPI_Info;
typedef struct %(prefix)serrhandler_t *MPI_Errhandler;
typedef struct %(prefix)sinstance_t *MPI_Session;
typedef struct %(prefix)swin_t *MPI_Win;
typedef struct %(prefix)sfile_t *MPI_File;
typedef int MPI_Fint;
typedef long MPI_Aint;
typedef long long MPI_Count, MPI_Offset;
"""
_STATUSES = {
    "openmpi": """\
typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR, _cancelled;
    size_t _ucount;
} MPI_Status;
""",
    "standard": """\
typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR, MPI_internal[5];
} MPI_Status;
""",
}
_FUNCTION_TYPES = """\
typedef MPI_Status MPI_F08_status;
typedef void MPI_User_function(void *, void *, int *, MPI_Datatype *);
typedef void MPI_User_function_c(void *, void *, MPI_Count *, MPI_Datatype *);
typedef void MPI_Comm_errhandler_function(MPI_Comm *, int *, ...);
typedef void MPI_Win_errhandler_function(MPI_Win *, int *, ...);
typedef void MPI_File_errhandler_function(MPI_File *, int *, ...);
typedef void MPI_Session_errhandler_function(MPI_Session *, int *, ...);
typedef MPI_Comm_errhandler_function MPI_Handler_function, MPI_Comm_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void *, void *, void *, int *);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void *, void *);
typedef int MPI_Type_copy_attr_function(MPI_Datatype, int, void *, void *, void *, int *);
typedef int MPI_Type_delete_attr_function(MPI_Datatype, int, void *, void *);
typedef int MPI_Win_copy_attr_function(MPI_Win, int, void *, void *, void *, int *);
typedef int MPI_Win_delete_attr_function(MPI_Win, int, void *, void *);
typedef MPI_Comm_copy_attr_function MPI_Copy_function;
typedef MPI_Comm_delete_attr_function MPI_Delete_function;
typedef int MPI_Grequest_query_function(void *, MPI_Status *);
typedef int MPI_Grequest_free_function(void *);
typedef int MPI_Grequest_cancel_function(void *, int);
typedef int MPI_Datarep_conversion_function(void *, MPI_Datatype, int, void *, MPI_Offset, void *);
typedef int MPI_Datarep_conversion_function_c(void *, MPI_Datatype, MPI_Count, void *, MPI_Offset,
                                              void *);
typedef int MPI_Datarep_extent_function(MPI_Datatype, MPI_Aint *, void *);
typedef void *MPI_T_enum, *MPI_T_cvar_handle, *MPI_T_pvar_handle, *MPI_T_pvar_session;
typedef void *MPI_T_event_registration, *MPI_T_event_instance;
typedef int MPI_T_cb_safety, MPI_T_source_order;
typedef void MPI_T_event_cb_function(MPI_T_event_instance, MPI_T_event_registration,
                                     MPI_T_cb_safety, void *);
typedef void MPI_T_event_free_cb_function(MPI_T_event_registration, MPI_T_cb_safety, void *);
typedef void MPI_T_event_dropped_cb_function(MPI_Count, MPI_T_event_registration, int,
                                             MPI_T_cb_safety, void *);
"""
_VALUES = """\
#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)-1)
#define MPI_BUFFER_AUTOMATIC ((void *)-2)
#define MPI_STATUS_IGNORE ((MPI_Status *)1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)1)
#define MPI_ERRCODES_IGNORE ((int *)0)
#define MPI_ARGV_NULL ((char **)0)
#define MPI_ARGVS_NULL ((char ***)0)
#define MPI_NULL_COPY_FN ((MPI_Copy_function *)0)
#define MPI_NULL_DELETE_FN ((MPI_Delete_function *)0)
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function *)0)
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function *)0)
#define MPI_TYPE_NULL_COPY_FN ((MPI_Type_copy_attr_function *)0)
#define MPI_TYPE_NULL_DELETE_FN ((MPI_Type_delete_attr_function *)0)
#define MPI_WIN_NULL_COPY_FN ((MPI_Win_copy_attr_function *)0)
#define MPI_WIN_NULL_DELETE_FN ((MPI_Win_delete_attr_function *)0)
#define MPI_DUP_FN MPIR_Dup_fn
#define MPI_COMM_DUP_FN ((MPI_Comm_copy_attr_function *)MPIR_Dup_fn)
#define MPI_TYPE_DUP_FN ((MPI_Type_copy_attr_function *)MPIR_Dup_fn)
#define MPI_WIN_DUP_FN ((MPI_Win_copy_attr_function *)MPIR_Dup_fn)
#define MPI_CONVERSION_FN_NULL ((MPI_Datarep_conversion_function *)0)
#define MPI_CONVERSION_FN_NULL_C ((MPI_Datarep_conversion_function_c *)0)
#define MPI_MESSAGE_NULL ((MPI_Message)0x2c000000)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)0x6c000000)
#define MPI_MAX_PORT_NAME 256
#define MPI_2INT MPI_TWOINT
#define MPI_LONG_LONG_INT MPI_LONG_LONG
#define MPI_LB ((MPI_Datatype)0x4c000010)
#define MPI_UB ((MPI_Datatype)0x4c000011)
#define MPI_HOST 0x64400003
#define MPI_COMBINER_HVECTOR_INTEGER 5
#define MPI_COMBINER_HINDEXED_INTEGER 8
#define MPI_COMBINER_STRUCT_INTEGER 11
int MPIR_Dup_fn(MPI_Comm, int, void *, void *, void *, int *);
extern int *const MPI_UNWEIGHTED, *const MPI_WEIGHTS_EMPTY;
extern MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
extern MPI_F08_status *MPI_F08_STATUS_IGNORE, *MPI_F08_STATUSES_IGNORE;
"""
_POINTER_VALUES = """\
#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_ERRCODES_IGNORE ((int *)0)
#define MPI_ARGV_NULL ((char **)0)
#define MPI_ARGVS_NULL ((char ***)0)
#define MPI_CONVERSION_FN_NULL ((MPI_Datarep_conversion_function *)0)
#define MPI_CONVERSION_FN_NULL_C ((MPI_Datarep_conversion_function_c *)0)
extern MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
extern MPI_F08_status *MPI_F08_STATUS_IGNORE, *MPI_F08_STATUSES_IGNORE;
"""
_WEIGHTS = """\
#define MPI_UNWEIGHTED ((int *)%d)
#define MPI_WEIGHTS_EMPTY ((int *)%d)
"""
_END = """\
#ifdef __cplusplus
}
#endif
#endif
"""


def constants() -> Iterator[str]:
    """The definitions of constants and predefined handles."""
    for name in sorted(vars(MPI)):
        value: Any = getattr(MPI, name)
        if f"MPI_{name}" in COMPILED or re.search(rf"\bMPI_{name}\b", _VALUES):
            continue
        if not name[0].isupper() or name != name.upper() or name in ("VERSION", "SUBVERSION"):
            continue
        if isinstance(value, Handle):
            kind = type(value)._family.__name__
            number = value.handle
            if kind == "File":
                yield f"#define MPI_{name} ((MPI_File)0)"
            else:
                yield f"#define MPI_{name} ((MPI_{kind}){number & 0xFFFFFFFF:#x})"
        elif type(value) is int and not name.startswith(("F_", "BUFFER_")):
            yield f"#define MPI_{name} {value if value < 0 else f'{value:#x}'}"
    for name, number in COMPILED.items():
        yield f"#define {name} ((MPI_Datatype){number:#x})"


def _other_constants(column: int) -> Iterator[str]:
    """The definitions of Open MPI (1) or of the standard (2)."""
    for group, name, values in table_of_constants():
        value = values[column]
        if value == "-":
            continue
        if len(group) == 1:
            kind = next(kind for kind, letter in HANDLES.items() if letter == group)
            if column == 1:
                yield f"extern struct pysmpi_object {value};"
                value = f"(void *)&{value}"
            value = f"((MPI_{kind}){value})"
        yield f"#define MPI_{name} {value}"


def _attribute_functions(openmpi: bool) -> Iterator[str]:
    """The copy and delete functions that MPI has."""
    for prefix, kind in (("", "Comm"), ("COMM_", "Comm"), ("TYPE_", "Datatype"), ("WIN_", "Win")):
        types = {"": ("Copy", "Delete")}.get(
            prefix, tuple(f"{prefix[:-1].title()}_{word}_attr" for word in ("copy", "delete"))
        )
        for name, place, number in (("NULL_COPY", 0, 0), ("NULL_DELETE", 1, 0), ("DUP", 0, 1)):
            if openmpi:
                rest = "void *, void *, void *, int *" if place == 0 else "void *, void *"
                yield f"int OMPI_C_MPI_{prefix}{name}_FN(MPI_{kind}, int, {rest});"
                yield f"#define MPI_{prefix}{name}_FN OMPI_C_MPI_{prefix}{name}_FN"
            else:
                yield f"#define MPI_{prefix}{name}_FN ((MPI_{types[place]}_function *){number})"


def prototypes() -> Iterator[str]:
    """The prototypes of functions, and of their names for tools."""
    for each in functions():
        words = ", ".join(_word(each, argument) for argument in each.arguments) or "void"
        for prefix in ("", "P"):
            yield f"{_type(each, each.result)}{prefix}MPI_{each.name}({words});"


def _type(function: Function, name: str) -> str:
    name = {"N": "Count", "D": "Aint", "A": "Count"}.get(name, name) if function.wide else name
    name = {"N": "int", "D": "int", "A": "Aint"}.get(name, name)
    if name in ("int", "double", "void", "char"):
        return name + " "
    return f"MPI_{name} "


def _word(function: Function, argument: Argument) -> str:
    if argument.type == "...":
        return "..."
    constant = "const " if argument.constant else ""
    kind = _type(function, argument.type)
    return f"{constant}{kind}{argument.stars}{argument.name}{argument.brackets}"


def header(interface: str = "mpich") -> str:
    """The text of `mpi.h` for a binary interface."""
    start = _START % (INTERFACES[interface].name, *MPI.Get_version())
    if interface == "mpich":
        parts = [_TYPES, _FUNCTION_TYPES, _VALUES]
        values = constants()
    else:
        openmpi = interface == "openmpi"
        parts = [
            _POINTERS % {"prefix": "ompi_" if openmpi else "MPI_ABI_"},
            _STATUSES[interface], _FUNCTION_TYPES, _POINTER_VALUES,
            _WEIGHTS % ((2, 3) if openmpi else (10, 11)),
        ]  # fmt: skip
        if not openmpi:
            parts.append("#define MPI_BUFFER_AUTOMATIC ((void *)2)\n")
        values = chain(_attribute_functions(openmpi), _other_constants(1 if openmpi else 2))
    # As SMPI's header, that of MPI has SMPI's macros.
    macros = "#include <smpi/smpi.h>\n" if interface == "mpich" else ""
    text = "\n".join([*values, *prototypes()]) + "\n"
    end = _END.removesuffix("#endif\n")
    return start + "".join(parts) + text + end + macros + "#endif\n"
