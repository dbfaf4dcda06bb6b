"""What simulating a message inside a node costs, beside one between nodes.

    python benchmarks/inside_a_node.py

Eight ranks run the same program on the cores of one described node (`multicore-cluster`, by core),
on eight such nodes (by node), and on eight hosts of `graphene`, which has no descriptions, so that
nobody follows its caches. Processor seconds a message from the first to the last one; the fastest
of some repeats, taken in turn. Wanted: inside a node at most what it costs between nodes.
"""

from __future__ import annotations

import sys
from resource import RUSAGE_SELF, getrusage

from side_by_side import TOP, parser, run, table, write_json

sys.path.insert(0, str(TOP))

import pysmpi  # noqa: E402

RANKS = 8
PLACES = {
    "inside": ("multicore-cluster", "core"),
    "between": ("multicore-cluster", "node"),
    "graphene": ("graphene", "node"),
}


def clock() -> float:
    """Processor seconds of this computer; `time` tells ranks theirs."""
    used = getrusage(RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ring(nbytes: int, count: int):
    """`count` messages of each rank to the next."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    out, into = np.zeros(nbytes, "b"), np.zeros(nbytes, "b")
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    begun = clock()
    for _ in range(count):
        comm.Sendrecv(out, after, 0, into, before)
    return begun, clock()


def pingpong(nbytes: int, count: int):
    """Half of the ranks send to the other half and back."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    out, into = np.zeros(nbytes, "b"), np.zeros(nbytes, "b")
    peer = comm.rank ^ 1
    begun = clock()
    for _ in range(count // 2):
        if comm.rank < peer:
            comm.Send(out, peer)
            comm.Recv(into, peer)
        else:
            comm.Recv(into, peer)
            comm.Send(out, peer)
    return begun, clock()


def allreduce(nbytes: int, count: int):
    """Recursive doubling: three messages a rank and call."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    out, into = np.zeros(nbytes // 8), np.zeros(nbytes // 8)
    begun = clock()
    for _ in range(count // 3):
        comm.Allreduce(out, into)
    return begun, clock()


CASES = [
    (ring, 1000, 4000),
    (ring, 100_000, 2000),
    (pingpong, 1000, 4000),
    (pingpong, 100_000, 2000),
    (allreduce, 1000, 3000),
    (allreduce, 100_000, 1500),
]


def seconds(program, place: str, nbytes: int, count: int) -> float:
    """Processor seconds a message of one run, without its start and end."""
    platform, map_by = PLACES[place]
    run = pysmpi.run(program, RANKS, args=(nbytes, count), platform=platform, map_by=map_by,
                     compute="none", coll={"allreduce": "rdb"})  # fmt: skip
    begun, ended = zip(*run.returns)
    return (max(ended) - min(begun)) / (count * RANKS)


def main() -> int:
    """Measure all cases and print the table."""
    chosen = parser("messages inside a node beside those between nodes", repeats=5).parse_args()
    lines, records, missed = [], [], False
    for program, nbytes, count in CASES:
        best = dict.fromkeys(PLACES, float("inf"))
        for _ in range(chosen.repeats):
            for place in PLACES:
                best[place] = min(best[place], seconds(program, place, nbytes, count))
        ratio = best["inside"] / best["between"]
        missed |= ratio > 1.25
        lines.append((program.__name__, f"{nbytes:,}",
                      *(f"{best[place] * 1e6:.2f}" for place in PLACES), f"{ratio:.2f}",
                      f"{best['inside'] / best['graphene']:.2f}"))  # fmt: skip
        records.append({"program": program.__name__, "bytes": nbytes, "seconds": best})
    heads = ("program", "bytes", "inside us", "between us", "graphene us", "ratio to between",
             "ratio to graphene")  # fmt: skip
    print(table(heads, lines))
    write_json(chosen.json, "messages inside a node", records)
    return 1 if missed else 0


if __name__ == "__main__":
    run(main)
