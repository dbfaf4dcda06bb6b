"""Handles that the program frees while an operation that uses them is pending.

    freed_early.py OUTCOMES.json

Each operation is started with handles of its own, which are freed before it ends; MPI 4.1 allows
it for datatypes (5.1.9), communicators (7.4.3), groups (7.3.3), info objects
(10) and error handlers (9.3.4). The outcome is the data that has arrived, or the exception.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size
SIMULATED = "pysmpi" in MPI.Get_library_version()
outcomes = {}


def plain():
    return MPI.INT.Dup()


def contiguous():
    return MPI.INT.Create_contiguous(1).Commit()


def strided():
    return MPI.INT.Create_vector(2, 1, 2).Commit()


def struct():
    inner = MPI.INT.Create_vector(2, 1, 2)
    made = MPI.Datatype.Create_struct([1], [0], [inner]).Commit()
    inner.Free()
    return made


def resized():
    return MPI.INT.Create_resized(0, 8).Commit()


TYPES = (plain, contiguous, strided, struct, resized)
FORMS = ("nonblocking", "persistent")


def started(comm, form, name, *arguments):
    """The request of a call in a form, started."""
    if form == "nonblocking":
        return getattr(comm, "I" + name[0].lower() + name[1:])(*arguments)
    return getattr(comm, name + "_init")(*arguments)


def finish(request, form):
    """Let the operation happen: a persistent one twice."""
    if form == "persistent":
        for _ in range(2):
            request.Start()
            request.Wait()
        request.Free()
    else:
        request.Wait()


def memory(blocks=1):
    return np.full(16 * blocks, -1, "i4")


def numbers(blocks=1):
    return np.arange(16 * blocks, dtype="i4") + 100 * rank


def note(name, call, *arguments):
    try:
        result = call(*arguments)
    except MPI.Exception as error:
        result = ["MPI.Exception", error.Get_error_class()]
    except Exception as error:
        result = [type(error).__name__, str(error)]
    outcomes[name] = result.tolist() if isinstance(result, np.ndarray) else result
    world.Barrier()


def collective(name, form, make, comm):
    """A collective call whose datatypes, operator and communicator are freed before its end."""
    sent, taken, own = make(), make(), comm.Dup()
    if name in SIMPLE:
        taken.Free()
        taken = sent  # mpi4py wants them equal
    out = [numbers(size), 2, sent]
    into = memory(size)
    take = [into, 2, taken]
    handles = [sent, taken, own]
    if name in SIMPLE:
        op = MPI.Op.Create(add, commute=True)
        handles = [sent, own]  # mpi4py loses the function of an operator that is freed
        if name == "Reduce_scatter":
            out[1] = 2 * size
            request = started(own, form, name, out, take, [2] * size, op)
        else:
            if name == "Reduce_scatter_block":
                out[1] = take[1] = 2
            request = started(own, form, name, out, take, op)
    elif name == "Bcast":
        request = started(own, form, name, out)
        into = out[0]
    elif name in ("Gather", "Scatter"):
        root = rank == 0
        if name == "Gather":
            request = started(own, form, name, out, take if root else None)
        else:
            request = started(own, form, name, out if root else None, take)
    elif name in ("Gatherv", "Allgatherv", "Neighbor_allgatherv"):
        places = range(0, 2 * size, 2)
        counts = ([2] * size, list(places)) if "Neigh" not in name else ([2] * 2, [0, 2])
        blocks = [into, counts, taken]
        request = started(own, form, name, out, None if rank and name == "Gatherv" else blocks)
    elif name in ("Alltoallv", "Neighbor_alltoallv"):
        count = size if name == "Alltoallv" else 2
        counts = ([2] * count, list(range(0, 2 * count, 2)))
        request = started(own, form, name, [out[0], counts, sent], [into, counts, taken])
    elif name in ("Alltoallw", "Neighbor_alltoallw"):
        count = size if name == "Alltoallw" else 2
        counts = ([1] * count, [16 * i for i in range(count)])
        sends, takes = [out[0], counts, [sent] * count], [into, counts, [taken] * count]
        request = started(own, form, name, sends, takes)
    elif name == "Scatterv":
        counts = ([2] * size, list(range(0, 2 * size, 2)))
        request = started(own, form, name, [out[0], counts, sent] if rank == 0 else None, take)
    else:
        request = started(own, form, name, out, take)
    for handle in handles:
        handle.Free()
    # Other handles may take the places of those that are freed.
    others = [make() for _ in handles]
    finish(request, form)
    for other in others:
        other.Free()
    if name in SIMPLE:
        op.Free()
    return into


def add(first, second, datatype):
    x, y = np.frombuffer(first, "i4"), np.frombuffer(second, "i4")
    y += x


COLLECTIVES = (
    "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv", "Alltoall",
    "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block",
    "Scan", "Exscan",
)  # fmt: skip
NEIGHBOURS = (
    "Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv",
    "Neighbor_alltoallw",
)  # fmt: skip
# Reductions of these datatypes read elements with gaps in the function.
SIMPLE = ("Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan")


def collectives():
    ring = world.Create_cart([size], [True])
    for form in FORMS:
        for name in COLLECTIVES + NEIGHBOURS:
            for make in TYPES[:2] if name in SIMPLE else TYPES:
                comm = ring if name in NEIGHBOURS else world
                if name == "Exscan" and rank == 0:
                    collective(name, form, make, comm)  # its data is undefined
                    world.Barrier()
                else:
                    note(f"{name} {form} {make.__name__}", collective, name, form, make, comm)


def message(send, receive, make, first):
    """A message whose datatypes and communicators are freed before it is received."""
    sent, taken, comm = make(), make(), world.Dup()
    into = memory()
    box = MPI.Alloc_mem(4096)
    buffered = "sen" in send and "B" in send or send == "Ibsend"
    if buffered:
        MPI.Attach_buffer(box)

    def sends():
        request = getattr(comm, send)([numbers(), 2, sent], right)
        return request

    def receives():
        return getattr(comm, receive)([into, 2, taken], left)

    requests = [sends(), receives()] if first else [receives(), sends()]
    for handle in (sent, taken, comm):
        handle.Free()
    others = [make(), make()]
    for request in requests:
        if isinstance(request, MPI.Prequest):
            request.Start()
    MPI.Request.Waitall(requests)
    for request in requests:
        if request:
            request.Free()
    for handle in others:
        handle.Free()
    if buffered:
        MPI.Detach_buffer()
    return into


def messages():
    pairs = [(send, "Irecv") for send in ("Isend", "Issend", "Ibsend")]
    pairs += [(f"{send}_init", "Recv_init") for send in ("Send", "Ssend", "Bsend")]
    for send, receive in pairs:
        for make in TYPES:
            for first in (True, False):
                name = f"{send} {receive} {make.__name__} {first}"
                note(name, message, send, receive, make, first)
    for make in TYPES:
        note(f"Isendrecv {make.__name__}", exchange, make)
        note(f"mprobe {make.__name__}", probed, make)
        note(f"partitioned {make.__name__}", in_parts, make)


def exchange(make):
    sent, taken, comm, into = make(), make(), world.Dup(), memory()
    request = comm.Isendrecv([numbers(), 2, sent], right, 0, [into, 2, taken], left, 0)
    for handle in (sent, taken, comm):
        handle.Free()
    request.Wait()
    return into


def probed(make):
    taken, comm, into = make(), world.Dup(), memory()
    send = comm.Isend([numbers(), 2, taken], right)
    found = comm.Mprobe(left)
    request = found.Irecv([into, 2, taken])
    for handle in (taken, comm):
        handle.Free()
    MPI.Request.Waitall([send, request])
    return into


def in_parts(make):
    sent, taken, comm, into = make(), make(), world.Dup(), memory()
    send = comm.Psend_init([numbers(), 4, sent], 2, right)
    receive = comm.Precv_init([into, 4, taken], 2, left)
    for handle in (sent, taken):
        handle.Free()
    for _ in range(2):
        MPI.Prequest.Startall([send, receive])
        send.Pready_range(0, 1)
        MPI.Request.Waitall([send, receive])
    send.Free()
    receive.Free()
    comm.Free()
    return into


def one_sided(name, make):
    """An access whose datatypes are freed before its epoch ends; the group is freed, too."""
    group, info = world.Get_group(), MPI.Info.Create({"no_locks": "false"})
    comm = world.Dup()
    window = MPI.Win.Allocate(256, 4, info, comm)
    for handle in (group, info, comm):
        handle.Free()
    mine = np.frombuffer(window.tomemory(), "i4")
    mine[:] = numbers(4)
    world.Barrier()
    sent, taken, into = make(), make(), memory(4)
    window.Lock_all()
    out, target = [numbers(), 2, sent], [0, 2, taken]
    request = None
    if name in ("Put", "Rput"):
        request = getattr(window, name)(out, right, target)
    elif name in ("Get", "Rget"):
        request = getattr(window, name)([into, 2, sent], right, target)
    elif name in ("Accumulate", "Raccumulate"):
        request = getattr(window, name)(out, right, target, MPI.SUM)
    else:
        request = getattr(window, name)(out, [into, 2, sent], right, target, MPI.SUM)
    sent.Free()
    taken.Free()
    others = [make(), make()]
    if request is not None:
        request.Wait()
    window.Unlock_all()
    world.Barrier()
    found = np.concatenate((into, mine))
    for handle in others:
        handle.Free()
    window.Free()
    return found


def active(make):
    """Epochs of groups that are freed in them."""
    window = MPI.Win.Allocate(64, 4, comm=world)
    mine = np.frombuffer(window.tomemory(), "i4")
    mine[:] = 0
    everyone = world.Get_group()
    peers, targets = everyone.Incl([left]), everyone.Incl([right])
    world.Barrier()
    window.Post(peers)
    window.Start(targets)
    for handle in (everyone, peers, targets):
        handle.Free()
    sent = make()
    window.Put([numbers(), 2, sent], right, [0, 2, sent])
    sent.Free()
    window.Complete()
    window.Wait()
    found = mine.copy()
    window.Free()
    return found


def windows():
    names = (
        "Put", "Get", "Accumulate", "Get_accumulate", "Rput", "Rget", "Raccumulate",
        "Rget_accumulate",
    )  # fmt: skip
    for name in names:
        for make in TYPES:
            note(f"{name} {make.__name__}", one_sided, name, make)
    for make in TYPES:
        note(f"active {make.__name__}", active, make)


def file_access(name, make):
    path = f"{sys.argv[1]}.{name}.{make.__name__}"
    info, comm = MPI.Info.Create({"striping_factor": "1"}), world.Dup()
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR, info)
    info.Free()
    comm.Free()
    etype = MPI.INT.Dup()
    view = etype.Create_contiguous(1).Create_resized(0, 4).Commit()
    file.Set_view(256 * rank, etype, view)
    etype.Free()
    view.Free()
    file.Write_at(0, [numbers(2), 32, MPI.INT])
    into, kind = memory(), make()
    if name.endswith("begin"):
        getattr(file, name)(*([0] if "_at_" in name else []), [into, 2, kind])
        kind.Free()
        getattr(file, name.replace("begin", "end"))(into)
    else:
        request = getattr(file, name)(*([0] if "_at" in name else []), [into, 2, kind])
        kind.Free()
        request.Wait()
    found = np.concatenate((into, [file.Get_view()[1].Get_size()]))
    file.Close()
    world.Barrier()
    if rank == 0:
        os.unlink(path)
    return found


def files():
    names = ["Iread_at", "Iread", "Read_all_begin", "Read_at_all_begin"]
    if SIMULATED:  # MPICH crashes
        names += ["Iread_at_all", "Iread_all"]
    for name in names:
        for make in TYPES:
            note(f"{name} {make.__name__}", file_access, name, make)


def others():
    note("handler", handler)
    note("inherited", inherited)
    note("keyval", keyval)
    note("parts", parts)
    note("Idup", duplicate)
    note("session", session)


def handler():
    """The error handler of a communicator outlives its handle."""
    seen = []
    made = MPI.Comm.Create_errhandler(lambda comm, code: seen.append(MPI.Get_error_class(code)))
    comm = world.Dup()
    comm.Set_errhandler(made)
    made.Free()
    twin = comm.Dup()
    comm.Free()
    twin.Call_errhandler(MPI.ERR_TAG)
    twin.Free()
    return seen


def inherited():
    """New communicators get the error handler of `rc.errors`, not that of their parent."""
    comm = world.Dup()
    comm.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    twin, request = comm.Idup()
    request.Wait()
    grid = comm.Create_cart([size])
    made = [
        comm.Dup(), comm.Clone(), comm.Dup(MPI.INFO_NULL), twin, comm.Split(),
        comm.Split_type(MPI.COMM_TYPE_SHARED), comm.Create(comm.group),
        comm.Create_group(comm.group), grid, grid.Sub([True]),
        comm.Create_dist_graph_adjacent([], []), MPI.Win.Create(None, comm=comm),
    ]  # fmt: skip
    found = [thing.Get_errhandler() == MPI.ERRORS_RETURN for thing in made]
    for thing in (*made, comm):
        thing.Free()
    return found


def keyval():
    """A key outlives its number while attributes have it."""
    deleted = []
    key = MPI.Comm.Create_keyval(delete_fn=lambda comm, key, value: deleted.append(value))
    comm = world.Dup()
    comm.Set_attr(key, 7)
    MPI.Comm.Free_keyval(key)
    comm.Free()
    return deleted


def parts():
    """What is made of a handle outlives it."""
    comm = world.Dup()
    group = comm.Get_group()
    some = group.Incl([0])
    cart = comm.Create_cart([size], [True])
    comm.Free()
    group.Free()
    line = cart.Sub([True])
    cart.Free()
    inner = MPI.INT.Create_contiguous(2)
    outer = inner.Create_vector(2, 1, 2)
    inner.Free()
    kind = outer.Dup()
    outer.Free()
    kind.Commit()
    found = [some.size, line.Get_dim(), kind.Get_size(), kind.extent, len(kind.Get_contents()[3])]
    some.Free()
    line.Free()
    kind.Free()
    return found


def duplicate():
    comm = world.Dup()
    twin, request = comm.Idup()
    comm.Free()
    request.Wait()
    found = twin.allgather(rank)
    twin.Free()
    return found


def session():
    info = MPI.Info.Create()
    made = MPI.Session.Init(info)
    info.Free()
    group = made.Create_group("mpi://WORLD")
    comm = MPI.Intracomm.Create_from_group(group, "tag")
    group.Free()
    found = comm.allreduce(1)
    comm.Free()
    made.Finalize()
    return found


if __name__ == "__main__":
    for kind in (collectives, messages, windows, files, others):
        kind()
    everything = world.gather(outcomes)
    if everything is not None:
        with open(sys.argv[1], "w") as stream:
            json.dump(everything, stream)
