"""Collective calls by data: every rank does the cases in a list and keeps what it gets.

    collective_cases.py CASES.json RESULTS.pickle

runs under any MPI; rank 0 writes the results of all ranks. `perform` is also called by tests.
"""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
from collective_choices import OWN, PAIRS, REDUCING, blocks, data, table_of
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


def perform(comm, case):
    """Do one case; what this rank has in its receive buffer afterwards."""
    rank, size = comm.Get_rank(), comm.Get_size()
    op, count, root = case["op"], case["count"], case["root"] % size
    here, in_place = rank == root, case["in_place"]
    counts = [case["counts"][i % len(case["counts"])] for i in range(size)]
    starts, total = blocks(counts)
    empty = lambda n: np.full(n, 9, case["dtype"])  # noqa: E731
    whole, mine = size * count, data(case, rank, count)
    place = MPI.IN_PLACE
    if op == "barrier":
        call(comm, case, "Barrier")
        return empty(0)
    if op == "bcast":
        got = mine if here else empty(count)
        call(comm, case, "Bcast", got, root)
        return got
    if op in ("gather", "allgather", "alltoall"):
        everybody = op != "gather"
        got = empty(whole) if everybody or here else None
        send = data(case, rank, whole) if op == "alltoall" else mine
        if in_place and (everybody or here):
            if op == "alltoall":
                got[:] = send
            else:
                got[rank * count : (rank + 1) * count] = mine
            send = place
        call(comm, case, op.capitalize(), send, got, *(() if everybody else (root,)))
        return empty(0) if got is None else got
    if op in ("gatherv", "allgatherv"):
        everybody = op == "allgatherv"
        send = data(case, rank, counts[rank])
        got = empty(total) if everybody or here else None
        if in_place and got is not None:
            got[starts[rank] : starts[rank] + counts[rank]] = send
            send = place
        kind = MPI.Datatype.fromcode(case["dtype"])
        target = None if got is None else [got, counts, starts, kind]
        call(comm, case, op.capitalize(), send, target, *(() if everybody else (root,)))
        return empty(0) if got is None else got
    if op == "scatter":
        got = empty(count)
        target = place if in_place and here else got
        call(comm, case, "Scatter", data(case, rank, whole) if here else None, target, root)
        return got
    if op == "scatterv":
        got = empty(counts[rank])
        kind = MPI.Datatype.fromcode(case["dtype"])
        source = [data(case, rank, total), counts, starts, kind] if here else None
        target = place if in_place and here else got
        call(comm, case, "Scatterv", source, target, root)
        return got
    if op in ("alltoallv", "alltoallw"):
        return _alltoall_of_counts(comm, case, op, rank, size)
    return _reduction(comm, case, op, rank, size, root)


def _alltoall_of_counts(comm, case, op, rank, size):
    table = table_of(case, size)
    sent, taken = table[rank], [table[i][rank] for i in range(size)]
    send_starts, send_total = blocks(sent)
    starts, total = blocks(taken)
    send = data(case, rank, send_total)
    got = np.full(total, 9, case["dtype"])
    if case["in_place"]:
        got[:] = send
    kind = MPI.Datatype.fromcode(case["dtype"])
    if op == "alltoallw":
        width = got.itemsize
        source = [send, sent, [at * width for at in send_starts], [kind] * size]
        target = [got, taken, [at * width for at in starts], [kind] * size]
    else:
        source, target = [send, sent, send_starts, kind], [got, taken, starts, kind]
    call(comm, case, op.capitalize(), MPI.IN_PLACE if case["in_place"] else source, target)
    return got


def _reduction(comm, case, op, rank, size, root):
    count = case["count"]
    paired = case["operator"] in (*PAIRS, OWN)
    if paired:
        count *= 2
        case = {**case, "pair": MPI.INT_INT}
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
    """The results of all cases that have as many ranks as there are, or fewer."""
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
