"""One-sided communication (MPI 4.1, chapter 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.abi.entry import ENTRIES, entry
from pysmpi.abi.values import (
    buffer,
    free,
    give,
    give_request,
    give_text,
    reject,
    text,
    view,
    write_integer,
)
from pysmpi.mpi.base.constants import ERR_SIZE

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

OBJECT_NAME = 128


@entry
def Win_create(
    base: int, size: int, disp_unit: int, info: MPI.Info, comm: MPI.Intracomm, win: int
) -> None:
    if size < 0:
        reject(ERR_SIZE, f"the size of the window is {size}")
    memory: Any = view(base, size) if base and size else MPI.BOTTOM
    give(win, MPI.Win.Create(memory, disp_unit, info, comm))


def _allocated(create: Any) -> Any:
    def allocate(
        size: int, disp_unit: int, info: MPI.Info, comm: MPI.Intracomm, baseptr: int, win: int,
        *width: int,
    ) -> None:  # fmt: skip
        made = create(size, disp_unit, info, comm)
        write_integer(baseptr, made.Get_attr(MPI.WIN_BASE), 8)
        give(win, made)

    return allocate


ENTRIES["Win_allocate"] = _allocated(MPI.Win.Allocate)
ENTRIES["Win_allocate_shared"] = _allocated(MPI.Win.Allocate_shared)


@entry
def Win_create_dynamic(info: MPI.Info, comm: MPI.Intracomm, win: int) -> None:
    give(win, MPI.Win.Create_dynamic(info, comm))


@entry
def Win_shared_query(
    win: MPI.Win, rank: int, size: int, disp_unit: int, baseptr: int, width: int
) -> None:
    memory, unit = win.Shared_query(rank)
    write_integer(size, memory.nbytes, 8)
    write_integer(disp_unit, unit, width)
    write_integer(baseptr, memory.address, 8)


@entry
def Win_attach(win: MPI.Win, base: int, size: int) -> None:
    win.Attach(view(base, size))


@entry
def Win_detach(win: MPI.Win, base: int) -> None:
    win.Detach(view(base, 1))


@entry
def Win_free(win: int) -> None:
    free(win, "W", MPI.WIN_NULL)


@entry
def Win_get_group(win: MPI.Win, group: int) -> None:
    give(group, win.Get_group())


@entry
def Win_set_info(win: MPI.Win, info: MPI.Info) -> None:
    win.Set_info(info)


@entry
def Win_get_info(win: MPI.Win, info_used: int) -> None:
    give(info_used, win.Get_info())


@entry
def Win_set_name(win: MPI.Win, win_name: int) -> None:
    win.Set_name(text(win_name))


@entry
def Win_get_name(win: MPI.Win, win_name: int, resultlen: int) -> None:
    give_text(win_name, resultlen, win.Get_name(), OBJECT_NAME)


def _target(disp: int, count: int, datatype: MPI.Datatype) -> Any:
    return [disp, count, datatype]


@entry
def Put(
    origin: int, count: int, datatype: MPI.Datatype, rank: int, disp: int, target_count: int,
    target_type: MPI.Datatype, win: MPI.Win,
) -> None:  # fmt: skip
    win.Put(buffer(origin, count, datatype), rank, _target(disp, target_count, target_type))


@entry
def Get(
    origin: int, count: int, datatype: MPI.Datatype, rank: int, disp: int, target_count: int,
    target_type: MPI.Datatype, win: MPI.Win,
) -> None:  # fmt: skip
    win.Get(buffer(origin, count, datatype), rank, _target(disp, target_count, target_type))


@entry
def Accumulate(
    origin: int, count: int, datatype: MPI.Datatype, rank: int, disp: int, target_count: int,
    target_type: MPI.Datatype, op: MPI.Op, win: MPI.Win,
) -> None:  # fmt: skip
    target = _target(disp, target_count, target_type)
    win.Accumulate(buffer(origin, count, datatype), rank, target, op)


@entry
def Get_accumulate(
    origin: int, count: int, datatype: MPI.Datatype, result: int, result_count: int,
    result_type: MPI.Datatype, rank: int, disp: int, target_count: int, target_type: MPI.Datatype,
    op: MPI.Op, win: MPI.Win,
) -> None:  # fmt: skip
    win.Get_accumulate(
        _origin(origin, count, datatype, op), buffer(result, result_count, result_type), rank,
        _target(disp, target_count, target_type), op,
    )  # fmt: skip


def _origin(address: int, count: int, datatype: MPI.Datatype, op: MPI.Op) -> Any:
    # NO_OP does not read the origin, whose datatype may be null.
    if op == MPI.NO_OP:
        return [MPI.BOTTOM, 0, MPI.BYTE]
    return buffer(address, count, datatype)


@entry
def Fetch_and_op(
    origin: int, result: int, datatype: MPI.Datatype, rank: int, disp: int, op: MPI.Op, win: MPI.Win
) -> None:
    into = buffer(result, 1, datatype)
    out = into if op == MPI.NO_OP else buffer(origin, 1, datatype)
    win.Fetch_and_op(out, into, rank, disp, op)


@entry
def Compare_and_swap(
    origin: int, compare: int, result: int, datatype: MPI.Datatype, rank: int, disp: int,
    win: MPI.Win,
) -> None:  # fmt: skip
    new, old, into = (buffer(each, 1, datatype) for each in (origin, compare, result))
    win.Compare_and_swap(new, old, into, rank, disp)


@entry
def Rput(
    origin: int, count: int, datatype: MPI.Datatype, rank: int, disp: int, target_count: int,
    target_type: MPI.Datatype, win: MPI.Win, request: int,
) -> None:  # fmt: skip
    target = _target(disp, target_count, target_type)
    give_request(request, win.Rput(buffer(origin, count, datatype), rank, target))


@entry
def Rget(
    origin: int, count: int, datatype: MPI.Datatype, rank: int, disp: int, target_count: int,
    target_type: MPI.Datatype, win: MPI.Win, request: int,
) -> None:  # fmt: skip
    target = _target(disp, target_count, target_type)
    give_request(request, win.Rget(buffer(origin, count, datatype), rank, target))


@entry
def Raccumulate(
    origin: int, count: int, datatype: MPI.Datatype, rank: int, disp: int, target_count: int,
    target_type: MPI.Datatype, op: MPI.Op, win: MPI.Win, request: int,
) -> None:  # fmt: skip
    target = _target(disp, target_count, target_type)
    give_request(request, win.Raccumulate(buffer(origin, count, datatype), rank, target, op))


@entry
def Rget_accumulate(
    origin: int, count: int, datatype: MPI.Datatype, result: int, result_count: int,
    result_type: MPI.Datatype, rank: int, disp: int, target_count: int, target_type: MPI.Datatype,
    op: MPI.Op, win: MPI.Win, request: int,
) -> None:  # fmt: skip
    made = win.Rget_accumulate(
        _origin(origin, count, datatype, op), buffer(result, result_count, result_type), rank,
        _target(disp, target_count, target_type), op,
    )  # fmt: skip
    give_request(request, made)


@entry
def Win_fence(assertion: int, win: MPI.Win) -> None:
    win.Fence(assertion)


@entry
def Win_start(group: MPI.Group, assertion: int, win: MPI.Win) -> None:
    win.Start(group, assertion)


@entry
def Win_complete(win: MPI.Win) -> None:
    win.Complete()


@entry
def Win_post(group: MPI.Group, assertion: int, win: MPI.Win) -> None:
    win.Post(group, assertion)


@entry
def Win_wait(win: MPI.Win) -> None:
    win.Wait()


@entry
def Win_test(win: MPI.Win, flag: int) -> None:
    write_integer(flag, win.Test())


@entry
def Win_lock(lock_type: int, rank: int, assertion: int, win: MPI.Win) -> None:
    win.Lock(rank, lock_type, assertion)


@entry
def Win_unlock(rank: int, win: MPI.Win) -> None:
    win.Unlock(rank)


@entry
def Win_lock_all(assertion: int, win: MPI.Win) -> None:
    win.Lock_all(assertion)


@entry
def Win_unlock_all(win: MPI.Win) -> None:
    win.Unlock_all()


@entry
def Win_flush(rank: int, win: MPI.Win) -> None:
    win.Flush(rank)


@entry
def Win_flush_all(win: MPI.Win) -> None:
    win.Flush_all()


@entry
def Win_flush_local(rank: int, win: MPI.Win) -> None:
    win.Flush_local(rank)


@entry
def Win_flush_local_all(win: MPI.Win) -> None:
    win.Flush_local_all()


@entry
def Win_sync(win: MPI.Win) -> None:
    win.Sync()
