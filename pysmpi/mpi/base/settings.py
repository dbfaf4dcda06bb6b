"""Settings of a run that the MPI layer reads, with SimGrid's defaults."""

from __future__ import annotations

from pysmpi.python.records import record


@record
class CallSettings:
    """The costs of calls (s of simulated time), and their behaviour where MPI leaves a choice.

    The options of `--cfg` have the same names with the prefix `smpi/`.
    """

    wtime: float = 1e-8  # of a look at the clock
    test: float = 1e-4  # of Test and similar calls, if they fail
    iprobe: float = 1e-4  # of Iprobe, if it finds no message
    grow_injected_times: bool = True  # whether repeated failed tests cost more
    init: float = 0.0  # of Init
    barrier_finalization: bool = False  # whether Finalize is a barrier
    reduction_order: str = "rank"  # of combining in reductions: by rank, or as the "algorithm"
