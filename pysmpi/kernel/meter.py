"""The parts of a simulation between which the wall time of a run is divided."""

from typing import Final

from mypy_extensions import mypyc_attr

START: Final = 0  # before the ranks run, and after them
PROGRAM: Final = 1  # the code of the ranks
MPI: Final = 2  # MPI calls, up to the kernel
SWITCHES: Final = 3  # from one rank to another
KERNEL: Final = 4  # matching, protocols, schedules, the event queue
SOLVER: Final = 5  # fair sharing
LISTENERS: Final = 6  # traces and other listeners
PARTS: Final = ("start and end", "program", "MPI layer", "switches of ranks", "kernel", "solver",
                "listeners")  # fmt: skip


@mypyc_attr(allow_interpreted_subclasses=True)
class Meter:
    """Notified when another part of the simulation begins to work."""

    def enter(self, part: int) -> int:
        """A part begins to work; return the one that ends."""
        raise RuntimeError("a meter must define enter")
