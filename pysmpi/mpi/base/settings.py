"""Settings of a run that the MPI layer reads, with SimGrid's defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CallSettings:
    """What calls cost (s of simulated time), and how they do what MPI leaves open.

    The options of `--cfg` have the same names, with `smpi/` before them.
    """

    wtime: float = 1e-8  # of a look at the clock
    test: float = 1e-4  # of Test and its relatives, when they find nothing
    iprobe: float = 1e-4  # of Iprobe, when it finds nothing
    grow_injected_times: bool = True  # whether tests in vain cost more and more
    init: float = 0.0  # of Init
    barrier_finalization: bool = False  # whether Finalize is a barrier
    reduction_order: str = "rank"  # in which reductions combine: by rank, or as the "algorithm"
