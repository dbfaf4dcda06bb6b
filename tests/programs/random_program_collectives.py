"""The collective steps of `random_program.py`."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from random_program import ELEMENTS, Place, build, numbers, show, thing

INTEGER_OPS = ("SUM", "PROD", "MIN", "MAX", "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR")
FLOAT_OPS = ("SUM", "PROD", "MIN", "MAX")


def call(comm, step, name, *arguments):
    """The call in the form of the step."""
    form = step["form"]
    if form == "blocking":
        getattr(comm, name)(*arguments)
    elif form == "nonblocking":
        getattr(comm, "I" + name.lower())(*arguments).Wait()
    else:
        request = getattr(comm, name + "_init")(*arguments)
        request.Start()
        request.Wait()
        request.Free()


def bcast(comm, step):
    root, datatype = step["a"] % comm.Get_size(), build(step["type"])
    here = comm.Get_rank() == root
    place = Place(datatype, step["count"], step["salt"] if here else None)
    call(comm, step, "Bcast", place.spec, root)
    datatype.Free()
    return place.shown()


def regular(comm, step):
    """Gather, Scatter, Allgather and Alltoall of a derived datatype."""
    rank, size, name = comm.Get_rank(), comm.Get_size(), step["name"]
    root, datatype, count = step["a"] % size, build(step["type"]), step["count"]
    here = rank == root
    # The number of blocks of so many items each; a count in a message is that of one block.
    sends, takes = {
        "Gather": (1, size if here else 0),
        "Scatter": (size if here else 0, 1),
        "Allgather": (1, size),
        "Alltoall": (size, size),
    }[name]
    rooted = (root,) if name in ("Gather", "Scatter") else ()
    out = Place(datatype, count, rank + step["salt"], sends) if sends else None
    into = Place(datatype, count, None, takes) if takes else None
    send, take = out and out.spec, into and into.spec
    if step["in_place"] and (here or not rooted):
        if name == "Scatter":
            take = MPI.IN_PLACE
        else:
            into = Place(datatype, count, rank + step["salt"], takes)
            send, take = MPI.IN_PLACE, into.spec
    call(comm, step, name, send, take, *rooted)
    datatype.Free()
    return None if into is None else into.shown()


def layout(counts, gap):
    """Displacements of blocks with gaps, and the whole length."""
    starts, at = [], gap
    for count in counts:
        starts.append(at)
        at += count + gap
    return starts, at


def varying(comm, step):
    """The v forms: as many elements as the counts of the step say, gaps between the blocks."""
    rank, size, name = comm.Get_rank(), comm.Get_size(), step["name"]
    root, dtype, gap = step["a"] % size, step["dtype"], step["b"] % 3
    counts = [step["counts"][i % len(step["counts"])] for i in range(size)]
    kind, here = ELEMENTS[dtype], rank == root
    fill = lambda n: np.full(n, 77, dtype)  # noqa: E731
    starts, total = layout(counts, gap)
    if name in ("Alltoallv", "Alltoallw"):
        table = [[step["counts"][(i + 2 * j) % len(step["counts"])] for j in range(size)]
                 for i in range(size)]  # fmt: skip
        sent, taken = table[rank], [row[rank] for row in table]
        (at, room), (to, space) = layout(sent, gap), layout(taken, gap)
        out, got = numbers(dtype, room, rank + step["salt"]), fill(space)
        if name == "Alltoallw":
            width = got.itemsize
            at, to = [x * width for x in at], [x * width for x in to]
            call(comm, step, name, [out, sent, at, [kind] * size], [got, taken, to, [kind] * size])
        else:
            call(comm, step, name, [out, sent, at, kind], [got, taken, to, kind])
        return show(got.tobytes())
    mine = numbers(dtype, counts[rank], rank + step["salt"])
    if name == "Scatterv":
        got = fill(counts[rank])
        out = [numbers(dtype, total, step["salt"]), counts, starts, kind] if here else None
        call(comm, step, name, out, got, root)
        return show(got.tobytes())
    got = fill(total)
    target, send = [got, counts, starts, kind], mine
    if step["in_place"] and (here or name == "Allgatherv"):
        got[starts[rank] : starts[rank] + counts[rank]] = mine
        send = MPI.IN_PLACE
    if name == "Gatherv":
        call(comm, step, name, send, target if here else None, root)
    else:
        call(comm, step, name, send, target)
    return show(got.tobytes())


def affine(first, second, datatype):
    """Compose maps x -> a*x + b; associative, not commutative."""
    x = np.frombuffer(first, "i4").reshape(-1, 2)
    y = np.frombuffer(second, "i4").reshape(-1, 2)
    y[:] = np.stack((x[:, 0] * y[:, 0], x[:, 0] * y[:, 1] + x[:, 1]), axis=1)


def reduction(comm, step):
    rank, size, name = comm.Get_rank(), comm.Get_size(), step["name"]
    root, count, dtype = step["a"] % size, step["count"], step["dtype"]
    names = FLOAT_OPS if dtype == "f8" else INTEGER_OPS
    chosen, kind, width = step["operator"], ELEMENTS[dtype], 1
    own = chosen == "own"
    if own or chosen in ("MINLOC", "MAXLOC"):
        dtype, width = "i4", 2
        kind = MPI.INT32_T.Create_contiguous(2).Commit() if own else MPI.TWOINT
        operator = MPI.Op.Create(affine, commute=False) if own else getattr(MPI, chosen)
    else:
        operator = getattr(MPI, names[chosen % len(names)])
    counts = [step["counts"][i % len(step["counts"])] for i in range(size)]
    length = {"Reduce_scatter": sum(counts), "Reduce_scatter_block": size * count}.get(name, count)
    short = {"Reduce_scatter": counts[rank], "Reduce_scatter_block": count}.get(name, count)
    mine = numbers(dtype, length * width, rank + step["salt"])
    got, here = np.full(short * width, 77, dtype), rank == root
    # Reduce_scatter_block counts in blocks.
    send = [mine, short if name == "Reduce_scatter_block" else length, kind]
    if step["in_place"] and (name != "Reduce" or here):
        got, send = mine, MPI.IN_PLACE
    take = [got, length if got is mine and name == "Reduce_scatter" else short, kind]
    if name == "Reduce":
        call(comm, step, name, send, take if here else None, operator, root)
    elif name == "Reduce_scatter":
        call(comm, step, name, send, take, counts, operator)
    else:
        call(comm, step, name, send, take, operator)
    if own:
        operator.Free()
        kind.Free()
    # The data of the first rank of an Exscan, and behind a part in place, is undefined.
    if name == "Exscan" and rank == 0:
        return None
    return show(got[: short * width].tobytes())


def object_collective(comm, step):
    rank, size, name = comm.Get_rank(), comm.Get_size(), step["name"]
    root, kind, salt = step["a"] % size, step["kind"], step["salt"]
    here, mine = rank == root, thing(kind, rank + salt)
    many = [thing(kind, rank * size + i + salt) for i in range(size)]
    if name == "bcast":
        return comm.bcast(mine if here else None, root)
    if name == "gather":
        return comm.gather(mine, root)
    if name == "scatter":
        return comm.scatter(many if here else None, root)
    if name == "allgather":
        return comm.allgather(mine)
    if name == "alltoall":
        return comm.alltoall(many)
    # Strings and lists join in order, so an order that is not that of ranks would show.
    mine = thing(kind if kind in ("int", "str", "list") else "str", rank + salt)
    if name == "reduce":
        return comm.reduce(mine, MPI.SUM, root)
    return getattr(comm, name)(mine, MPI.SUM if step["b"] % 2 else lambda x, y: x + y)


def neighbours(comm, step):
    """Neighbourhood collectives, on a communicator that has neighbours."""
    topology = comm.Get_topology()
    if topology == MPI.CART:
        sources = targets = 2 * comm.Get_dim()
    elif topology == MPI.DIST_GRAPH:
        sources, targets, _ = comm.Get_dist_neighbors_count()
    else:
        return comm.allgather(comm.Get_rank())
    rank, count, dtype = comm.Get_rank(), step["count"], step["dtype"]
    if step["b"] % 2:
        mine = thing(step["kind"], rank)
        return [
            comm.neighbor_allgather(mine),
            comm.neighbor_alltoall([thing(step["kind"], rank * 5 + i) for i in range(targets)]),
        ]
    one, each = np.full(sources * count, 77, dtype), np.full(sources * count, 77, dtype)
    call(comm, step, "Neighbor_allgather", numbers(dtype, count, rank), one)
    call(comm, step, "Neighbor_alltoall", numbers(dtype, targets * count, rank * 3), each)
    return [show(one.tobytes()), show(each.tobytes())]


COLLECTIVES = {
    "bcast": bcast, "regular": regular, "varying": varying, "reduction": reduction,
    "object_collective": object_collective, "neighbours": neighbours,
}  # fmt: skip
