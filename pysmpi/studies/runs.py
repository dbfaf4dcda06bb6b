"""Simulations that studies share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pysmpi
from pysmpi.platform.model import Platform

MODELS = ("hybrid", "fluid", "loggps")
Times = dict[str, dict[int, float]]


@dataclass
class Spread:
    """The place of the cases of a grid: here one after the other, or as a sweep on several cores.

    `workers` are processes of this computer, `scheduler` is the address of a Dask scheduler.
    """

    workers: int = 1
    scheduler: str | None = None


SPREAD = Spread()


def simulate(
    program: Callable[..., Any],
    ranks: int,
    *args: Any,
    platform: str | Platform = "graphene",
    **options: Any,
) -> Any:
    """The return value of rank 0 of a program, with no time for its own computation."""
    options = {"compute": "none", "selector": "ompi", **options}
    return pysmpi.run(program, ranks, args=args, platform=platform, **options).returns[0]


def grid(
    program: Callable[..., float],
    ranks: Sequence[int],
    *args: Any,
    platform: str = "graphene",
    models: Sequence[str] = MODELS,
    selector: str = "ompi",
    map_by: str = "core",
    **options: Any,
) -> Times:
    """The return values of rank 0 of a program, by the model and the number of ranks."""
    if SPREAD.workers == 1 and SPREAD.scheduler is None:
        return {
            model: {
                count: simulate(
                    program,
                    count,
                    *args,
                    platform=platform,
                    model=model,
                    selector=selector,
                    map_by=map_by,
                    **options,
                )
                for count in ranks
            }
            for model in models
        }
    table = pysmpi.sweep(
        program,
        platforms=[platform],
        models=list(models),
        ranks=list(ranks),
        arguments=[args],
        selectors=[selector],
        placements=[map_by],
        workers=None if SPREAD.scheduler else SPREAD.workers,
        scheduler=SPREAD.scheduler,
        compute="none",
        **options,
    )
    found: Times = {model: {} for model in models}
    for row in table:
        if row["exit_status"] != 0:
            raise RuntimeError(f"{row['model']}, {row['ranks']} ranks: {row['error']}")
        found[row["model"]][row["ranks"]] = row["value"]
    return {model: dict(sorted(times.items())) for model, times in found.items()}


def pingpong(sizes: tuple[int, ...], partner: int) -> list[float]:
    """Seconds one way of messages of some sizes between rank 0 and `partner`."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = []
    for size in sizes:
        comm.Barrier()
        if comm.rank in (0, partner):
            data, other = np.zeros(size, "b"), partner - comm.rank
            begin = MPI.Wtime()
            for _ in range(3):
                if comm.rank == 0:
                    comm.Send(data, other)
                    comm.Recv(data, other)
                else:
                    comm.Recv(data, other)
                    comm.Send(data, other)
            found.append((MPI.Wtime() - begin) / 6)
    return found


def one_way(
    platform: str, model: str, sizes: tuple[int, ...], partner: int, **cfg: str
) -> list[float]:
    """Seconds of messages between core 0 and core `partner` of a node, with a memory model."""
    settings = {f"memory/{name}": value for name, value in cfg.items()}
    found: list[float] = simulate(
        pingpong, partner + 1, sizes, partner, platform=platform, memory_model=model,
        map_by="core", cfg={"smpi/wtime": "0", **settings},
    )  # fmt: skip
    return found


def speedup(times: dict[int, float]) -> dict[int, float]:
    """Speed-up relative to the smallest number of ranks, at which it is that number."""
    least = min(times)
    return {ranks: least * times[least] / seconds for ranks, seconds in times.items()}
