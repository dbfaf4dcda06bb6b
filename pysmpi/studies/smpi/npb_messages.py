"""The messages of NPB's LU and CG, with a time for the computation between them.

A rank computes by letting simulated time pass.  The patterns and sizes are those of apps/npb_lu.py
and apps/npb_cg.py.
"""

from __future__ import annotations

import math

LU_UNKNOWNS = 5
CG_STEPS = 25


def lu(edge: int, iterations: int, rate: float) -> float:
    """Seconds of an iteration of LU on a cube of `edge` points; `rate` in operations a second."""
    from time import sleep

    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    columns = math.isqrt(size)
    while size % columns:
        columns -= 1
    rows = size // columns
    column, row = divmod(rank, rows)
    none = MPI.PROC_NULL
    north = rank - 1 if row > 0 else none
    south = rank + 1 if row < rows - 1 else none
    west = rank - rows if column > 0 else none
    east = rank + rows if column < columns - 1 else none

    def share(parts: int, index: int) -> int:
        return edge // parts + (index < edge % parts)

    nx, ny = share(rows, row), share(columns, column)
    operations = 1984.77 * edge**3 - 10923.3 * edge**2 + 27770.9 * edge - 144010.0
    mine = operations * (nx * ny / edge**2) / rate
    # NPB's operation counts: about three quarters of an iteration are sweeps.
    plane, rest = 0.75 * mine / (2 * (edge - 2)), 0.25 * mine
    edge_x, edge_y = np.zeros(LU_UNKNOWNS * ny), np.zeros(LU_UNKNOWNS * nx)
    halo_x, halo_y = np.zeros(10 * ny * edge), np.zeros(10 * nx * edge)
    comm.Barrier()
    begin = MPI.Wtime()
    for _ in range(iterations):
        for before, after in (((north, west), (south, east)), ((south, east), (north, west))):
            for _ in range(edge - 2):
                if before[0] != none:
                    comm.Recv(edge_x, before[0])
                if before[1] != none:
                    comm.Recv(edge_y, before[1])
                sleep(plane)
                if after[0] != none:
                    comm.Send(edge_x, after[0])
                if after[1] != none:
                    comm.Send(edge_y, after[1])
        for low, high, halo in ((north, south, halo_x), (west, east, halo_y)):
            for source, target in ((low, high), (high, low)):
                request = comm.Irecv(np.empty_like(halo), source) if source != none else None
                if target != none:
                    comm.Send(halo, target)
                if request is not None:
                    request.Wait()
        sleep(rest)
    slowest: float = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)
    return slowest / iterations


def cg(order: int, nonzeros: int, iterations: int, rate: float) -> float:
    """Seconds of an outer iteration of CG; `nonzeros` are those of a random vector.

    `rate` is in operations a second; with 0 computation takes no time.
    """
    from time import sleep

    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    height = 1 << (size.bit_length() - 1) // 2
    width = size // height
    row, column = divmod(rank, width)
    if width == height:
        transposed = rank % height * height + rank // height
    else:
        transposed = 2 * (rank // 2 % height * height + rank // 2 // height) + rank % 2
    partners = [
        row * width + (column ^ 1 << bit) for bit in reversed(range(width.bit_length() - 1))
    ]
    received, given = np.zeros(order // width), np.zeros(order // width)
    per_row = nonzeros * (nonzeros + 1)
    step = 2.0 * order * (5.0 + per_row) / size / rate if rate else 0.0

    def exchange(count: int, partner: int, tag: int) -> None:
        request = comm.Irecv(received[:count], partner, tag)
        comm.Send(given[:count], partner, tag)
        request.Wait()

    def sum_row(count: int) -> None:
        for tag, partner in enumerate(partners, 1):
            exchange(count, partner, tag)

    def hand_over() -> None:
        for tag in range(len(partners), 0, -1):
            exchange(len(given), partners[tag - 1], tag)
        exchange(len(given), transposed, 1)

    comm.Barrier()
    begin = MPI.Wtime()
    for _ in range(iterations):
        sum_row(1)
        for _ in range(CG_STEPS):
            sleep(step)
            hand_over()
            sum_row(1)
            sum_row(1)
        sleep(step)
        hand_over()
        sum_row(1)
        sum_row(2)
    slowest: float = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)
    return slowest / iterations
