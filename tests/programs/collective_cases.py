"""Collective calls by data: every rank does the cases in a list and keeps its results.

    collective_cases.py CASES.json RESULTS.pickle

runs under any MPI; rank 0 writes the results of all ranks. `perform` is also called by tests.
"""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
from collective_choices import (
    EXTENTS,
    NEIGHBOR,
    OWN,
    PAIR_TYPES,
    PAIRS,
    REDUCING,
    blocks,
    data,
    edges,
    table_of,
)
from mpi4py import MPI


def compose(first, second, datatype):
    """Maps of 64-bit integers, one behind the other; the result goes to `second`."""
    x = np.frombuffer(first, "i8").reshape(-1, 2)
    y = np.frombuffer(second, "i8").reshape(-1, 2)
    y[:] = np.stack((x[:, 0] * y[:, 0], x[:, 0] * y[:, 1] + x[:, 1]), axis=1)


def spec(case, array, *counts):
    """A buffer as the case's datatype has it: its elements, or pairs of them."""
    if case["operator"] in (*PAIRS, OWN) and case["op"] in REDUCING:
        return [array, len(array) // 2, case["pair"]]
    return [array, *counts] if counts else array


def call(comm, case, name, *arguments):
    """Make the call in the case's form."""
    form = case["form"]
    if form == "blocking":
        getattr(comm, name)(*arguments)
    elif form == "nonblocking":
        getattr(comm, f"I{name[0].lower()}{name[1:]}")(*arguments).Wait()
    else:
        request = getattr(comm, f"{name}_init")(*arguments)
        # In place, a second call would begin with the result of the first.
        for _ in range(1 if case["in_place"] else 2):
            request.Start()
            request.Wait()
        request.Free()


class Shape:
    """A datatype of the case: `extent` elements of an array for each of its own."""

    def __init__(self, case, name):
        basic = MPI.Datatype.fromcode(case["dtype"])
        self.extent = EXTENTS[name]
        self.plain = name == "plain"
        self.derived = []
        if name == "contiguous":
            self.derived = [basic.Create_contiguous(2)]
        elif name == "backward":
            self.derived = [basic.Create_indexed([1, 1], [2, 0])]
        elif not self.plain:
            self.derived = [basic.Create_vector(2, 1, 2)]
        if name == "resized":
            self.derived.append(self.derived[0].Create_resized(0, 5 * basic.size))
        self.type = self.derived[-1].Commit() if self.derived else basic

    def spec(self, array, *counts):
        """A buffer of elements of the datatype; without counts, the whole array."""
        if counts:
            return [array, *counts, self.type]
        return array if self.plain else [array, len(array) // self.extent, self.type]

    def blocks(self, array, size):
        """A buffer of as many equal blocks of elements."""
        if self.plain:
            return array
        return [array, len(array) // self.extent // max(size, 1), self.type]

    def free(self):
        """The program is done with it."""
        for derived in self.derived:
            derived.Free()


def perform(comm, case):
    """Do one case; return the contents of the receive buffer afterwards."""
    if case["op"] == "barrier":
        call(comm, case, "Barrier")
        return np.full(0, 9, case["dtype"])
    if case["op"] in REDUCING:
        return _reduction(comm, case)
    sending, receiving = case.get("shapes", ("plain", "plain"))
    out, into = Shape(case, receiving if case["in_place"] else sending), Shape(case, receiving)
    try:
        if case["op"] in NEIGHBOR:
            return _neighbors(comm, case, out, into)
        if case["op"] in ("alltoallv", "alltoallw"):
            return _alltoall_of_counts(comm, case, out, into)
        return _move(comm, case, out, into)
    finally:
        out.free()
        into.free()


def _move(comm, case, out, into):
    rank, size = comm.Get_rank(), comm.Get_size()
    op, count, root = case["op"], case["count"], case["root"] % size
    here, in_place = rank == root, case["in_place"]
    counts = [case["counts"][i % len(case["counts"])] for i in range(size)]
    starts, total = blocks(counts)
    whole = size * count
    empty = lambda n: np.full(n * into.extent, 9, case["dtype"])  # noqa: E731
    brought = lambda n: data(case, rank, n * out.extent)  # noqa: E731
    if op == "bcast":
        got = brought(count) if here else empty(count)
        call(comm, case, "Bcast", (out if here else into).spec(got), root)
        return got
    if op in ("gather", "allgather", "alltoall"):
        takes = op != "gather" or here
        got = empty(whole) if takes else None
        mine = brought(whole if op == "alltoall" else count)
        send = out.blocks(mine, size) if op == "alltoall" else out.spec(mine)
        if in_place and takes:
            at = 0 if op == "alltoall" else rank * len(mine)
            got[at : at + len(mine)] = mine
            send = MPI.IN_PLACE
        target = into.blocks(got, size) if takes else None
        call(comm, case, op.capitalize(), send, target, *((root,) if op == "gather" else ()))
        return got if takes else empty(0)
    if op in ("gatherv", "allgatherv"):
        takes = op == "allgatherv" or here
        mine = brought(counts[rank])
        got = empty(total) if takes else None
        send = out.spec(mine)
        if in_place and takes:
            at = starts[rank] * into.extent
            got[at : at + len(mine)] = mine
            send = MPI.IN_PLACE
        target = into.spec(got, counts, starts) if takes else None
        call(comm, case, op.capitalize(), send, target, *((root,) if op == "gatherv" else ()))
        return got if takes else empty(0)
    got = empty(count if op == "scatter" else counts[rank])
    target = MPI.IN_PLACE if in_place and here else into.spec(got)
    source = None
    if here and op == "scatter":
        source = out.blocks(brought(whole), size)
    elif here:
        source = out.spec(brought(total), counts, starts)
    call(comm, case, op.capitalize(), source, target, root)
    return got


def _counted(op, shape, array, counts, starts):
    """The buffer of a v form, or of a w form."""
    if not op.endswith("w"):
        return shape.spec(array, counts, starts)
    width = array.itemsize * shape.extent
    return [array, counts, [at * width for at in starts], [shape.type] * len(counts)]


def _alltoall_of_counts(comm, case, out, into):
    rank, size, op = comm.Get_rank(), comm.Get_size(), case["op"]
    table = table_of(case, size)
    sent, taken = table[rank], [table[i][rank] for i in range(size)]
    send_starts, send_total = blocks(sent)
    starts, total = blocks(taken)
    send = data(case, rank, send_total * out.extent)
    got = np.full(total * into.extent, 9, case["dtype"])
    source = _counted(op, out, send, sent, send_starts)
    if case["in_place"]:
        got[:] = send
        source = MPI.IN_PLACE
    call(comm, case, op.capitalize(), source, _counted(op, into, got, taken, starts))
    return got


def _neighbors(comm, case, out, into):
    rank, size, op, count = comm.Get_rank(), comm.Get_size(), case["op"], case["count"]
    if case["topology"] == "ring":
        topology = comm.Create_cart([size], [True])
    elif case["topology"] == "grid":
        topology = comm.Create_cart(MPI.Compute_dims(size, 2), [True, False])
    else:
        known = edges(case, size)
        topology = comm.Create_dist_graph_adjacent(
            [i for i, j in known if j == rank], [j for i, j in known if i == rank]
        )
    sources, targets = topology.inoutedges
    of_edge = lambda i, j: case["counts"][(i * 5 + j * 3) % len(case["counts"])]  # noqa: E731
    empty = lambda n: np.full(n * into.extent, 9, case["dtype"])  # noqa: E731
    brought = lambda n: data(case, rank, n * out.extent)  # noqa: E731
    if op == "neighbor_allgather":
        got = empty(len(sources) * count)
        buffers = out.spec(brought(count)), into.blocks(got, len(sources))
    elif op == "neighbor_alltoall":
        got = empty(len(sources) * count)
        mine = brought(len(targets) * count)
        buffers = out.blocks(mine, len(targets)), into.blocks(got, len(sources))
    else:
        own = [case["counts"][i % len(case["counts"])] for i in range(size)]
        gathers = op == "neighbor_allgatherv"
        taken = [own[i] if gathers else of_edge(i, rank) for i in sources]
        starts, total = blocks(taken)
        got = empty(total)
        if gathers:
            source = out.spec(brought(own[rank]))
        else:
            sent = [of_edge(rank, j) for j in targets]
            send_starts, send_total = blocks(sent)
            source = _counted(op, out, brought(send_total), sent, send_starts)
        buffers = source, _counted(op, into, got, taken, starts)
    call(topology, case, op.capitalize(), *buffers)
    topology.Free()
    return got


def _reduction(comm, case):
    rank, size, op, count = comm.Get_rank(), comm.Get_size(), case["op"], case["count"]
    root = case["root"] % size
    paired = case["operator"] in (*PAIRS, OWN)
    if paired:
        count *= 2
        case = {**case, "pair": getattr(MPI, PAIR_TYPES.get(case["dtype"], "INT_INT"))}
    own = case["operator"] == OWN
    if own:
        case["pair"] = MPI.INT64_T.Create_contiguous(2).Commit()
    operator = MPI.Op.Create(compose, commute=False) if own else getattr(MPI, case["operator"])
    length = count * size if op == "reduce_scatter_block" else count
    counts = [n * (1 + paired) for n in (case["counts"] * size)[:size]]
    if op == "reduce_scatter":
        length = sum(counts)
    mine = data(case, rank, length)
    got = np.full(length, 9, case["dtype"])
    rooted = op == "reduce"
    send = spec(case, mine)
    if paired and op == "reduce_scatter_block":
        send = [mine, count // 2, case["pair"]]
    if case["in_place"] and (not rooted or rank == root):
        got[:] = mine
        send = MPI.IN_PLACE
    target = None if rooted and rank != root else spec(case, got)
    if op == "reduce_scatter_block":
        short = got if send is MPI.IN_PLACE else got[:count]
        # Counts are those of one block on both sides.
        target = [short, count // 2, case["pair"]] if paired else short
        call(comm, case, "Reduce_scatter_block", send, target, operator)
        got = got[:count]
    elif op == "reduce_scatter":
        units = [n // (1 + paired) for n in counts]
        short = got if send is MPI.IN_PLACE else got[: counts[rank]]
        call(comm, case, "Reduce_scatter", send, spec(case, short), units, operator)
        got = got[: counts[rank]]
    elif rooted:
        call(comm, case, "Reduce", send, target, operator, root)
        got = got if rank == root else got[:0]
    else:
        call(comm, case, op.capitalize(), send, target, operator)
        if op == "exscan" and rank == 0:
            got = got[:0]
    if own:
        operator.Free()
        case["pair"].Free()
    return got


def results(cases, world=None):
    """The results of all cases for this number of ranks, or fewer."""
    world = world or MPI.COMM_WORLD
    found = []
    for number, case in enumerate(cases):
        size = min(case.get("size", world.Get_size()), world.Get_size())
        comm = world.Split(0 if world.Get_rank() < size else MPI.UNDEFINED)
        if comm != MPI.COMM_NULL:
            found.append((number, perform(comm, case)))
            comm.Free()
    return found


if __name__ == "__main__":
    with open(sys.argv[1]) as stream:
        todo = json.load(stream)
    mine = [(number, array.tobytes()) for number, array in results(todo)]
    everything = MPI.COMM_WORLD.gather(mine)
    if MPI.COMM_WORLD.Get_rank() == 0:
        with open(sys.argv[2], "wb") as stream:
            pickle.dump(everything, stream)
