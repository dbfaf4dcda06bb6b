"""The cost of simulating a message inside a node, beside one between nodes.

    python benchmarks/inside_a_node.py

Eight ranks run the same program on the cores of one described node (`multicore-cluster`), on two
such nodes by turns, so that messages share links as they share caches and buses inside, on eight
such nodes, and on eight hosts of `graphene`, which has no descriptions, so that its caches are not
modelled. Processor seconds a message from the first to the last one; the fastest of some repeats,
taken in turn. Wanted: inside a node no more than between nodes, by the geometric means, to 5 %.
"""

from __future__ import annotations

import sys
import tempfile
from math import exp, log
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from side_by_side import TOP, parser, run, table, write_json

sys.path.insert(0, str(TOP))

import pysmpi  # noqa: E402

RANKS = 8
# Platform, mapping, and the hosts to map to.
PLACES = {
    "inside": ("multicore-cluster", "core", ""),
    "two nodes": ("multicore-cluster", "node", "multicore-0:4 multicore-1:4"),
    "a node each": ("multicore-cluster", "node", ""),
    "graphene": ("graphene", "node", ""),
}
OTHERS = [place for place in PLACES if place != "inside"]


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


# The largest wait for their receivers everywhere, those of 100 kB do so inside a node only.
CASES = [
    (ring, 1000, 4000),
    (ring, 100_000, 2000),
    (ring, 1_000_000, 300),
    (pingpong, 1000, 4000),
    (pingpong, 100_000, 2000),
    (pingpong, 1_000_000, 300),
    (allreduce, 1000, 3000),
    (allreduce, 100_000, 1500),
    (allreduce, 1_000_000, 300),
]


def seconds(program, place: str, nbytes: int, count: int, directory: Path) -> float:
    """Processor seconds a message of one run, without its start and end."""
    platform, map_by, hosts = PLACES[place]
    listed = None
    if hosts:
        listed = directory / place
        listed.write_text(hosts.replace(" ", "\n") + "\n")
    run = pysmpi.run(program, RANKS, args=(nbytes, count), platform=platform, map_by=map_by,
                     hostfile=listed, compute="none", coll={"allreduce": "rdb"})  # fmt: skip
    begun, ended = zip(*run.returns)
    return (max(ended) - min(begun)) / (count * RANKS)


def main() -> int:
    """Measure all cases and print the table."""
    chosen = parser("messages inside a node beside those between nodes", repeats=5).parse_args()
    lines, records = [], []
    ratios = {"two nodes": [], "a node each": []}
    with tempfile.TemporaryDirectory() as name:
        for program, nbytes, count in CASES:
            best = dict.fromkeys(PLACES, float("inf"))
            for _ in range(chosen.repeats):
                for place in PLACES:
                    found = seconds(program, place, nbytes, count, Path(name))
                    best[place] = min(best[place], found)
            ratio = {place: best["inside"] / best[place] for place in PLACES}
            for found in ratios:
                ratios[found].append(ratio[found])
            micros = [f"{each * 1e6:.2f}" for each in best.values()]
            shares = [f"{ratio[place]:.2f}" for place in OTHERS]
            lines.append((program.__name__, f"{nbytes:,}", *micros, *shares))
            records.append({"program": program.__name__, "bytes": nbytes, "seconds": best})
    heads = ("program", "bytes", *(f"{place}, us" for place in PLACES),
             *(f"inside / {place}" for place in OTHERS))  # fmt: skip
    print(table(heads, lines))
    means = [exp(sum(map(log, found)) / len(found)) for found in ratios.values()]
    print("geometric means: " + ", ".join(
        f"inside / {place} {mean:.2f}" for place, mean in zip(ratios, means)
    ))  # fmt: skip
    write_json(chosen.json, "messages inside a node", records)
    return 1 if max(means) > 1.05 else 0


if __name__ == "__main__":
    run(main)
