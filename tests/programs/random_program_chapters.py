"""The steps of `random_program.py` for one-sided communication, files and the other chapters."""

from __future__ import annotations

import os
import tempfile
import zlib

import numpy as np
from mpi4py import MPI
from random_program import ELEMENTS, Place, build, numbers, show, thing

OPS = ("SUM", "PROD", "MIN", "MAX", "REPLACE")


def epoch(win, how, rank, size, act):
    """Do something in an epoch of a window."""
    if how == "fence":
        win.Fence()
        act()
        win.Fence()
    elif how == "groups":
        group = win.Get_group()
        win.Post(group)
        win.Start(group)
        act()
        win.Complete()
        win.Wait()
        group.Free()
    elif how == "lock_all":
        win.Lock_all()
        act()
        win.Unlock_all()
    else:
        for target in range(size):
            win.Lock(target, MPI.LOCK_EXCLUSIVE if how == "exclusive" else MPI.LOCK_SHARED)
        act()
        for target in range(size):
            win.Unlock(target)


def one_sided(comm, step):
    """Accesses of all ranks to each other's windows: to places of their own, or by one operator."""
    rank, size, dtype = comm.Get_rank(), comm.Get_size(), step["dtype"]
    count, kind = 1 + step["count"], ELEMENTS[step["dtype"]]
    width = np.dtype(dtype).itemsize
    room = size * count
    if step["b"] % 2:
        win = MPI.Win.Allocate(room * width, width, comm=comm)
        memory = np.frombuffer(win.tomemory(), dtype)
    else:
        memory = np.zeros(room, dtype)
        win = MPI.Win.Create(memory, width, comm=comm)
    memory[:] = numbers(dtype, room, rank)
    comm.Barrier()
    mine = numbers(dtype, count, rank + step["salt"])
    got = np.full(count, 77, dtype)
    target, way = (rank + step["a"]) % size, step["access"]
    operator = getattr(MPI, OPS[step["salt"] % 4])

    def act():
        place = (rank * count, count, kind)  # each origin has one of its own
        if way == "put":
            win.Put([mine, kind], target, place)
        elif way == "get":
            win.Get([got, kind], target, ((target + step["b"]) % size * count, count, kind))
        elif way == "accumulate":
            win.Accumulate([mine, kind], target, (0, count, kind), operator)
        elif way == "get_accumulate":
            win.Get_accumulate([mine, kind], [got, kind], target, place, operator)
        elif way == "no_op":
            win.Get_accumulate([None, 0, kind], [got, kind], target, place, MPI.NO_OP)
        elif way == "fetch":
            win.Fetch_and_op([mine, 1, kind], [got, 1, kind], target, rank * count, operator)
        elif way == "swap":
            compare = numbers(dtype, room, target)[rank * count : rank * count + 1].copy()
            if step["salt"] % 2:
                compare += 1
            win.Compare_and_swap(
                [mine, 1, kind], [compare, 1, kind], [got, 1, kind], target, rank * count
            )
        elif how in ("lock_all", "shared", "exclusive"):
            win.Rput([mine, kind], target, place).Wait()
            win.Flush(target)
            win.Rget([got, kind], target, place).Wait()

    how = step["epoch"]
    if dtype == "f8" and way == "swap":
        way = "put"
    if how == "exclusive" and size > 1:
        how = "shared"  # exclusive locks of several ranks in turn may wait for each other
    epoch(win, how, rank, size, act)
    comm.Barrier()
    seen = [show(memory.tobytes()), show(got.tobytes())]
    comm.Barrier()
    win.Free()
    return seen


def shared_window(comm, step):
    """A shared window: each rank writes a part and reads its neighbour's."""
    rank, size, count = comm.Get_rank(), comm.Get_size(), 1 + step["count"]
    win = MPI.Win.Allocate_shared(count * 4, 4, comm=comm)
    mine = np.frombuffer(win.tomemory(), "i4")
    win.Fence()
    mine[:] = numbers("i4", count, rank + step["salt"])
    win.Fence()
    memory, unit = win.Shared_query((rank + step["a"]) % size)
    seen = [show(np.frombuffer(memory, "i4").tobytes()), unit]
    win.Fence()
    win.Free()
    return seen


def file(comm, step):
    """Collective and independent accesses to a file, with views."""
    rank, size, count, dtype = comm.Get_rank(), comm.Get_size(), 1 + step["count"], step["dtype"]
    kind, width = ELEMENTS[dtype], np.dtype(dtype).itemsize
    path = comm.bcast(tempfile.mktemp(prefix="random-program-") if rank == 0 else None)
    opened = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    mine, got = numbers(dtype, count, rank + step["salt"]), np.full(count, 77, dtype)
    way = step["access"]
    if way in ("put", "accumulate"):
        view = kind.Create_vector(count, 1, size).Commit()
        opened.Set_view(rank * width, kind, view)
        opened.Write_all([mine, kind])
        opened.Seek(0)
        opened.Read_all([got, kind])
        view.Free()
    elif way == "get":
        opened.Write_at_all(rank * count * width, [mine, kind])
        comm.Barrier()
        opened.Read_at((rank + 1) % size * count * width, [got, kind])
    elif way in ("fetch", "swap"):
        opened.Write_ordered([mine, kind])
        opened.Seek_shared(0)
        opened.Read_ordered([got, kind])
    elif way == "no_op":
        opened.Iwrite_at(rank * count * width, [mine, kind]).Wait()
        opened.Sync()
        comm.Barrier()
        opened.Sync()
        opened.Iread_at((rank + step["a"]) % size * count * width, [got, kind]).Wait()
    else:
        opened.Write_at_all_begin(rank * count * width, [mine, kind])
        opened.Write_at_all_end([mine, kind])
        opened.Read_at_all_begin(rank * count * width, [got, kind])
        opened.Read_at_all_end([got, kind])
    comm.Barrier()
    seen = [show(got.tobytes()), opened.Get_size(), opened.Get_amode()]
    opened.Close()
    if rank == 0:
        with open(path, "rb") as stream:
            seen.append(show(stream.read()))
        os.unlink(path)
    return seen


def partitioned(comm, step):
    """Partitioned messages around the ring, started several times."""
    rank, size = comm.Get_rank(), comm.Get_size()
    parts, count = 1 + step["b"], 1 + step["a"]
    datatype = build(step["type"])
    out = Place(datatype, count * parts, rank + step["salt"])
    into = Place(datatype, count * parts)
    if size == 1:
        datatype.Free()
        return None
    right, left = (rank + 1) % size, (rank - 1) % size
    send = comm.Psend_init([out.memory, count, datatype], parts, right, 5)
    receive = comm.Precv_init([into.memory, count, datatype], parts, left, 5)
    for _ in range(1 + step["salt"] % 2):
        MPI.Prequest.Startall([send, receive])
        for part in reversed(range(parts)):
            send.Pready(part)
        MPI.Request.Waitall([send, receive])
    send.Free()
    receive.Free()
    datatype.Free()
    return into.shown()


def groups(comm, step):
    """The algebra of groups."""
    size, group = comm.Get_size(), comm.Get_group()
    ranks = sorted({(step["a"] * i + step["b"]) % size for i in range(size)})
    some, rest = group.Incl(ranks), group.Excl(ranks)
    spans = group.Range_incl([(0, size - 1, 1 + step["b"] % 2)])
    made = [
        MPI.Group.Union(some, spans), MPI.Group.Intersection(spans, some),
        MPI.Group.Difference(group, some), MPI.Group.Union(rest, some),
    ]  # fmt: skip
    seen = [
        [one.Get_size(), one.Get_rank(), one.Translate_ranks(None, group),
         MPI.Group.Compare(one, group)]
        for one in (some, rest, spans, *made)
    ]  # fmt: skip
    for one in (some, rest, spans, *made, group):
        one.Free()
    return seen


def bridge(comm, step):
    """An intercommunicator between the two halves of the ranks."""
    rank, size = comm.Get_rank(), comm.Get_size()
    if size == 1:
        return None
    cut = 1 + step["a"] % (size - 1)
    low = rank < cut
    half = comm.Split(low, rank)
    inter = half.Create_intercomm(0, comm, cut if low else 0, step["salt"])
    count = step["count"]
    mine = numbers("i4", count, rank)
    got, many = np.full(count, 77, "i4"), np.full(count * inter.Get_remote_size(), 77, "i4")
    inter.Allreduce(mine, got, MPI.SUM)
    inter.Allgather(mine, many)
    root = 0 if not low else (MPI.ROOT if half.Get_rank() == 0 else MPI.PROC_NULL)
    word = inter.bcast(thing(step["kind"], rank) if root == MPI.ROOT else None, root)
    total = inter.allreduce(rank)
    merged = inter.Merge(low == bool(step["b"] % 2))
    seen = [
        show(got.tobytes()), show(many.tobytes()), None if root == MPI.ROOT else word, total,
        inter.Get_size(), inter.Get_remote_size(), merged.Get_rank(), merged.allgather(rank),
    ]  # fmt: skip
    for one in (merged, inter, half):
        one.Free()
    return seen


def attributes(comm, step):
    """Attributes and info objects through Dup."""
    deleted = []
    keep = step["b"] % 3
    copy = (True, None, lambda comm, key, value: value + 1)[keep]
    key = MPI.Comm.Create_keyval(copy, lambda comm, key, value: deleted.append(value))
    twin = comm.Dup()
    twin.Set_attr(key, step["salt"])
    info = MPI.Info.Create({"a": "1", f"k{step['a']}": step["kind"]})
    other = twin.Dup(info)
    seen = [other.Get_attr(key), twin.Get_attr(key), info.Get_nkeys(), sorted(info.items())]
    info.Free()
    other.Free()
    twin.Set_attr(key, -1)
    twin.Free()
    MPI.Comm.Free_keyval(key)
    return [*seen, deleted]


def from_group(comm, step):
    """A communicator of a group, without a parent."""
    group = comm.Get_group()
    made = MPI.Intracomm.Create_from_group(group, f"tag {step['salt']}")
    seen = [made.allreduce(made.Get_rank() * 3 + 1), MPI.Group.Compare(made.group, group)]
    made.Free()
    group.Free()
    return seen


def large(comm, step):
    """Many elements: other protocols and algorithms."""
    rank, size, dtype = comm.Get_rank(), comm.Get_size(), step["dtype"]
    count = 3000 * (1 + step["a"]) + step["count"]
    mine = (np.arange(count) * (rank + 1 + step["salt"]) % 251).astype(dtype)
    total, passed = np.zeros(count, dtype), np.zeros(count, dtype)
    comm.Allreduce(mine, total, MPI.SUM)
    comm.Sendrecv(mine, (rank + 1) % size, 3, passed, (rank - 1) % size, 3)
    whole = np.zeros(count * size, dtype)
    request = comm.Iallgather(mine, whole)
    request.Wait()
    root = step["b"] % size
    comm.Bcast(mine, root)
    return [zlib.crc32(data.tobytes()) for data in (total, passed, whole, mine)]


CHAPTERS = {
    "one_sided": one_sided, "shared_window": shared_window, "file": file,
    "partitioned": partitioned, "groups": groups, "bridge": bridge, "attributes": attributes,
    "from_group": from_group, "large": large,
}  # fmt: skip
