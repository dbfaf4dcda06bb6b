"""The figures of Putigny, Ruelle and Goglin (2014) on their machines, simulated.

    python benchmarks/buffer_reuse.py

Ping-pong throughput (GB/s one way): beside the sequential and the parallel limit without overheads
(figure 4), by the side that reuses its buffer (figure 6), and by the direction in which shared
buffers are reused (figure 14).
"""

from __future__ import annotations

import sys

from side_by_side import TOP, parser, run, table, write_json

sys.path.insert(0, str(TOP))

import pysmpi  # noqa: E402
from pysmpi.memory.transfer.pipeline import parallel, sequential  # noqa: E402
from pysmpi.platform import load  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
BARE = {"memory/overhead": "0", "memory/chunk-overhead": "0", "memory/eager": "0",
        "memory/overlap": "1", "smpi/wtime": "0"}  # fmt: skip
CASES = [("reused", "reused"), ("other", "reused"), ("reused", "other"), ("other", "other")]


def pingpong(size: int, peer: int, send: str, receive: str) -> float:
    """Seconds one way; buffers that are not reused lie in 64 MiB that were written before."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    out, into = np.zeros(64 * MIB, "b"), np.zeros(64 * MIB, "b")
    seconds = 0.0
    for step in range(4):
        place = 16 * MIB * step
        a = out[:size] if send == "reused" else out[place : place + size]
        b = into[:size] if receive == "reused" else into[place : place + size]
        pysmpi.touch(out, write=True)
        comm.Barrier()
        for data, how in ((a, send), (b, receive)):
            if how == "reused":
                pysmpi.touch(data, write=True)
        comm.Barrier()
        begin = MPI.Wtime()
        if comm.rank == 0:
            comm.Send(a, peer)
            comm.Recv(b, peer)
        elif comm.rank == peer:
            comm.Recv(b, 0)
            comm.Send(a, 0)
        seconds = (MPI.Wtime() - begin) / 2
    return seconds


def speed(platform, peer, size, send="reused", receive="reused", **cfg) -> float:
    """GB/s of a ping-pong between core 0 and core `peer`."""
    seconds = pysmpi.run(
        pingpong, peer + 1, args=(size, peer, send, receive), platform=platform, map_by="core",
        compute="none", cfg=cfg,
    ).returns[0]  # fmt: skip
    return size / seconds / 1e9


def limits() -> list[tuple[str, ...]]:
    """Figure 4: inside a socket of the Xeon, chunks of 32 KiB."""
    node = load("xeon-e5-2650").hosts[0].node
    rows = []
    for size in (8 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 512 * KIB, 2 * MIB, 4 * MIB):
        send = 1 / min(node.throughput("LHM", -1, size), node.throughput("SHS", 0, size))
        receive = 1 / min(node.throughput("LMM", 0, size), node.throughput("SHM", -1, size))
        simulated = speed("xeon-e5-2650", 1, size, **BARE)
        rows.append((f"{size // KIB} KiB", f"{size / sequential(size, send, receive) / 1e9:.2f}",
                     f"{simulated:.2f}", f"{size / parallel(size, send, receive) / 1e9:.2f}",
                     f"{speed('xeon-e5-2650', 1, size):.2f}"))  # fmt: skip
    return rows


def reuse() -> list[tuple[str, ...]]:
    """Figure 6."""
    rows = []
    for peer in (1, 8):
        for size in (64 * KIB, 256 * KIB, MIB):
            found = [speed("xeon-e5-2650", peer, size, *case) for case in CASES]
            where = "same socket" if peer < 8 else "other socket"
            rows.append((where, f"{size // KIB} KiB", *(f"{value:.2f}" for value in found)))
    return rows


def direction() -> list[tuple[str, ...]]:
    """Figure 14."""
    places = [("opteron-6272", 2, "same die"), ("opteron-6272", 16, "other socket"),
              ("xeon-e5-2650", 1, "same socket")]  # fmt: skip
    rows = []
    for platform, peer, where in places:
        gains = []
        for size in (16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB):
            same = speed(platform, peer, size, **{"memory/pool": "sender"})
            turned = speed(platform, peer, size, **{"memory/pool": "pair"})
            gains.append(f"{100 * (turned / same - 1):+.1f} %")
        rows.append((platform, where, *gains))
    return rows


def main() -> int:
    """Print the tables."""
    chosen = parser("shared-memory transfers of the paper", repeats=1).parse_args()
    found = {"limits": limits(), "reuse": reuse(), "direction": direction()}
    print("Xeon E5-2650, one socket, GB/s; the last column with the library's overheads")
    print(table(("size", "sequential", "simulated", "parallel", "Open MPI"), found["limits"]))
    print("\nXeon E5-2650, GB/s, by whose buffer is reused")
    print(table(("cores", "size", "both", "receiver's", "sender's", "none"), found["reuse"]))
    print("\nGain of reusing shared buffers in alternating direction")
    print(table(("machine", "cores", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"),
                found["direction"]))  # fmt: skip
    write_json(chosen.json, "buffer reuse", [found])
    return 0


if __name__ == "__main__":
    run(main)
