"""The experiments of the paper: messages and broadcasts with strides, on its machine.

Messages of 1, 4 and 16 KiB with strides of 8, 64 and 512 bytes between elements of 4 bytes:
overhead and latency inside a node and between nodes. Then linear and binomial broadcasts of 64
ranks on 8 nodes as the simulator runs them, and as log_3P and 2log_{2,3}P predict them from the
costs of single messages: once with half of a message's cost for its sender, as the paper has it,
and once with the sender's part as it is measured ("send").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import pysmpi
from pysmpi.memory.middleware import (
    Cost,
    binomial_2log,
    binomial_log_3p,
    linear_2log,
    linear_log_3p,
)

MACHINE, NODES, RANKS = "multicore-cluster", 8, 64
SIZES, STRIDES, ELEMENT = (1024, 4096, 16384), (8, 64, 512), 4
CostFigures = dict[str, float]


def buffer(size: int, stride: int) -> Any:
    """A message of `size` bytes in elements `stride` bytes apart; 0: contiguous."""
    import numpy as np
    from mpi4py import MPI

    if not stride:
        return np.zeros(size, "b")
    count = size // ELEMENT
    vector = MPI.INT.Create_vector(count, 1, stride // ELEMENT).Commit()
    return [np.zeros(count * stride // ELEMENT, "i"), 1, vector]


def messages(size: int, stride: int, peer: int) -> tuple[float, float, float]:
    """Seconds of a message one way, of its send, and of a receive that comes late."""
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, buffer(size, stride)
    way = send = receive = 0.0
    for _ in range(4):
        begin = MPI.Wtime()
        if comm.rank == 0:
            comm.Send(data, peer)
            send = MPI.Wtime() - begin
            comm.Recv(data, peer)
            way = (MPI.Wtime() - begin) / 2
        elif comm.rank == peer:
            comm.Recv(data, 0)
            comm.Send(data, 0)
        comm.Barrier()
    if comm.rank == 0:
        comm.Send(data, peer)
    comm.Barrier()
    if comm.rank == peer:
        from time import sleep

        sleep(0.1)
        begin = MPI.Wtime()
        comm.Recv(data, 0)
        receive = MPI.Wtime() - begin
    return way, send, comm.bcast(receive, peer)


def linear(size: int, stride: int) -> float:
    """Seconds that the root takes for its sends, its own node first."""
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, buffer(size, stride)
    seconds = 0.0
    for _ in range(3):
        comm.Barrier()
        begin = MPI.Wtime()
        if comm.rank == 0:
            for peer in range(1, comm.size):
                comm.Send(data, peer)
        else:
            comm.Recv(data, 0)
        seconds = MPI.Wtime() - begin
    return seconds


def binomial(size: int, stride: int) -> float:
    """Seconds from the root's start until the last rank of the broadcast has its message."""
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, buffer(size, stride)
    seconds = 0.0
    for _ in range(3):
        comm.Barrier()
        begin = MPI.Wtime()
        mask = 1
        while mask < comm.size and not comm.rank & mask:
            mask <<= 1
        if comm.rank:
            comm.Recv(data, comm.rank - mask)
        mask >>= 1
        while mask:
            comm.Send(data, comm.rank + mask)
            mask >>= 1
        end = MPI.Wtime()
        seconds = comm.allreduce(end, MPI.MAX) - comm.bcast(begin)
    return seconds


def broadcast(size: int, stride: int) -> tuple[float, float]:
    """Seconds of a Bcast from its start at the root to its end there, and at the last rank."""
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, buffer(size, stride)
    root = last = 0.0
    for _ in range(2):
        comm.Barrier()
        begin = MPI.Wtime()
        comm.Bcast(data)
        end = MPI.Wtime()
        root = end - begin
        last = comm.allreduce(end, MPI.MAX) - comm.bcast(begin)
    return root, last


def simulate(
    program: Callable[..., Any], ranks: int, map_by: str, *args: int, **options: Any
) -> Any:
    """The return value of rank 0."""
    return pysmpi.run(
        program, ranks, args=args, platform=MACHINE, map_by=map_by, compute="none", **options
    ).returns[0]


def cost(size: int, stride: int, inside: bool, model: str | None = None) -> Cost:
    """The cost of a message as the paper takes it apart, under a model (None: the machine's)."""
    where = "core" if inside else "node"
    way, send, receive = simulate(messages, 2, where, size, 0, 1, model=model)
    network = 0.0 if inside else way - send - receive
    overhead = way - network
    strided, send, _ = simulate(messages, 2, where, size, stride, 1, model=model)
    return Cost(overhead, strided - way, network, send)


def under(model: str, kind: str, size: int, stride: int) -> float:
    """Time of an MPI_Bcast under a model, divided by that of the paper's formula for the model.

    `kind` is "linear" or "binomial", `model` is "log_3P" or "2log_23P".
    """
    near, far = cost(size, stride, True, model), cost(size, stride, False, model)
    algorithm = {"linear": "flattree", "binomial": "binomial_tree"}[kind]
    root, last = simulate(
        broadcast, RANKS, "core", size, stride, model=model, coll={"bcast": algorithm}
    )
    if kind == "linear":
        two = linear_2log(RANKS, NODES, near, far)
        formula = two if model == "2log_23P" else linear_log_3p(RANKS, far)
        return float((root + far.network) / formula)
    two = binomial_2log(RANKS, 3, near, far)
    return float(last / (two if model == "2log_23P" else binomial_log_3p(RANKS, far)))


def compare(sizes: Sequence[int] = SIZES, strides: Sequence[int] = STRIDES) -> list[CostFigures]:
    """All figures of each size and stride."""
    rows = []
    for size in sizes:
        for stride in strides:
            near, far = cost(size, stride, True), cost(size, stride, False)
            inside, between = replace(near, send=None), replace(far, send=None)
            root = simulate(linear, RANKS, "core", size, stride)
            tree = simulate(binomial, RANKS, "core", size, stride)
            rows.append({
                "size": size, "stride": stride,
                "o": inside.overhead, "o'": between.overhead,
                "l": inside.latency, "l'": between.latency, "net": between.network,
                "linear": root + between.network,
                "linear log_3P": linear_log_3p(RANKS, between),
                "linear 2log": linear_2log(RANKS, NODES, inside, between),
                "linear log_3P send": linear_log_3p(RANKS, far),
                "linear 2log send": linear_2log(RANKS, NODES, near, far),
                "binomial": tree,
                "binomial log_3P": binomial_log_3p(RANKS, between),
                "binomial 2log": binomial_2log(RANKS, 3, inside, between),
            })  # fmt: skip
    return rows


def summary(rows: list[CostFigures]) -> dict[str, float]:
    """The figures that the paper states, in percent."""

    def less(
        small: Callable[[CostFigures], float], large: Callable[[CostFigures], float]
    ) -> list[float]:
        return [100 * (1 - small(row) / large(row)) for row in rows]

    def errors(kind: str, model: str) -> list[float]:
        return [100 * (row[f"{kind} {model}"] / row[kind] - 1) for row in rows]

    found = {
        "overhead inside less, mean": mean(less(lambda r: r["o"], lambda r: r["o'"])),
        "latency inside less, largest": max(less(lambda r: r["l"], lambda r: r["l'"])),
        "latency inside less, smallest": min(less(lambda r: r["l"], lambda r: r["l'"])),
        "middleware inside less, mean": mean(
            less(lambda r: r["o"] + r["l"], lambda r: r["o'"] + r["l'"])
        ),
    }
    for model in (
        "linear log_3P", "linear 2log", "linear log_3P send", "linear 2log send",
        "binomial log_3P", "binomial 2log",
    ):  # fmt: skip
        off = [abs(error) for error in errors(*model.split(" ", 1))]
        found[f"{model}, mean error"] = mean(off)
        found[f"{model}, largest error"] = max(off)
    return found
