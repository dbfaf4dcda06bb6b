"""The header `mpi.h` of the MPI library that compiled programs call (MPICH's binary interface).

Its constants are those of `mpi4py.MPI`, its prototypes those of `functions.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pysmpi.abi.table import Argument, Function, functions
from pysmpi.mpi.base.handles import Handle
from pysmpi.mpi.datatypes.datatypes import COMPILED

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

_START = """\
#ifndef MPI_INCLUDED
#define MPI_INCLUDED
/* Written by pysmpi: the binary interface of MPICH. */
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#define MPI_VERSION %d
#define MPI_SUBVERSION %d
#define PYSMPI 1
typedef int MPI_Comm, MPI_Datatype, MPI_Request, MPI_Message, MPI_Op, MPI_Group, MPI_Info;
typedef int MPI_Errhandler, MPI_Session, MPI_Win, MPI_Fint;
typedef struct pysmpi_file *MPI_File;
typedef long MPI_Aint;
typedef long long MPI_Count, MPI_Offset;
typedef struct {
    int count_lo, count_hi_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;
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
        if f"#define MPI_{name} " in _START or f"MPI_{name}" in COMPILED:
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


def header() -> str:
    """The text of `mpi.h`."""
    start = _START % MPI.Get_version()
    return start + "\n".join([*constants(), *prototypes()]) + "\n" + _END
