"""Ping-pongs by the reuse of their buffers, and the throughputs of accesses."""

from __future__ import annotations

import pysmpi
from pysmpi.platform import load
from pysmpi.platform.node_description import NodeDescription

XEON, OPTERON = "xeon-e5-2650", "opteron-6272"
KIB, MIB = 1 << 10, 1 << 20
BARE = {"memory/overhead": "0", "memory/chunk-overhead": "0", "memory/eager": "0",
        "memory/overlap": "1", "smpi/wtime": "0"}  # fmt: skip


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


def speed(
    platform: str,
    peer: int,
    size: int,
    send: str = "reused",
    receive: str = "reused",
    **cfg: str,
) -> float:
    """GB/s of a ping-pong between core 0 and core `peer`."""
    seconds: float = pysmpi.run(
        pingpong, peer + 1, args=(size, peer, send, receive), platform=platform, map_by="core",
        compute="none", cfg=cfg,
    ).returns[0]  # fmt: skip
    return size / seconds / 1e9


def rate(machine: str, access: str, distance: int, size: int) -> float:
    """GB/s of an access; distance -1 is the own cache, 0 the nearest level."""
    return float(described(machine).throughput(access, distance, size)) / 1e9


def described(machine: str) -> NodeDescription:
    """The description of the nodes of a machine."""
    node = load(machine).hosts[0].node
    assert node is not None
    return node
