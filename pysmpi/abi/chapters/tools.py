"""The interface for tools (MPI 4.1, chapter 15): there are no variables, categories or events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pysmpi.abi.entry import ENTRIES, entry
from pysmpi.abi.values import write_integer

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

# MPICH's numbers.
INVALID_INDEX, INVALID_HANDLE, INVALID_SESSION, INVALID_NAME = 62, 64, 67, 73
_SESSION = 1  # the handle of every session


@entry
def T_init_thread(required: int, provided: int) -> None:
    write_integer(provided, min(required, MPI.THREAD_FUNNELED))


@entry
def T_finalize() -> None:
    pass


@entry
def T_category_changed(update_number: int) -> None:
    write_integer(update_number, 0)


def _none(number: int) -> None:
    write_integer(number, 0)


for _name in ("cvar", "pvar", "events", "sources"):
    ENTRIES[f"T_{_name.removesuffix('s')}_get_num"] = _none
ENTRIES["T_category_get_num"] = _none


@entry
def T_pvar_session_create(session: int) -> None:
    write_integer(session, _SESSION, 8)


@entry
def T_pvar_session_free(session: int) -> None:
    write_integer(session, 0, 8)


def _refusing(code: int) -> Callable[..., int]:
    return lambda *arguments: code


for _names, _code in (
    (
        "cvar_get_info pvar_get_info event_get_info source_get_info category_get_info "
        "category_get_categories category_get_cvars category_get_pvars category_get_events "
        "category_get_num_events cvar_handle_alloc pvar_handle_alloc event_handle_alloc "
        "source_get_timestamp",
        INVALID_INDEX,
    ),
    ("cvar_get_index pvar_get_index event_get_index category_get_index", INVALID_NAME),
    (
        "cvar_handle_free cvar_read cvar_write enum_get_info enum_get_item pvar_handle_free "
        "pvar_read pvar_readreset pvar_reset pvar_start pvar_stop pvar_write "
        "event_callback_get_info "
        "event_callback_set_info event_copy event_get_source event_get_timestamp event_handle_free "
        "event_handle_get_info event_handle_set_info event_read event_register_callback "
        "event_set_dropped_handler",
        INVALID_HANDLE,
    ),
):
    for _name in _names.split():
        ENTRIES[f"T_{_name}"] = _refusing(_code)
