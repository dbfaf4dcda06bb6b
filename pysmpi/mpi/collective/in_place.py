"""MPI.IN_PLACE that ranks give which are not the root of a call.

Such a rank gives no data, or has no room for any, so an error or a deadlock follows at some rank of
the call. Its report names the argument that caused it.
"""

from __future__ import annotations

from pysmpi import text
from pysmpi.mpi.base.running import called
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.python.frames import CallSite, shorten

# The argument, the name and the line of the call, by number of the call and rank.
InPlaceUse = tuple[str, str, CallSite | None]
USES: StateSlot[Communicator, dict[tuple[int, int], InPlaceUse]] = StateSlot(Communicator, dict)


def note_in_place(communicator: Communicator, me: int, argument: str) -> None:
    """Keep the call in which rank `me`, which is not the root, gives MPI.IN_PLACE."""
    USES.of(communicator)[communicator.begun(me), me] = (argument, *called())


def misplaced(communicator: Communicator, number: int) -> str:
    """The ranks that gave MPI.IN_PLACE in a call without being its root; empty if none did.

    `number` is that of the call, negative for a start of a persistent call.
    """
    uses = USES.peek(communicator)
    if not uses:
        return ""
    if number < 0:
        number = -number >> 32
    ranks: dict[InPlaceUse, list[int]] = {}
    for (in_call, rank), use in uses.items():
        if in_call == number:
            ranks.setdefault(use, []).append(communicator.group[rank])
    said = []
    for (argument, name, site), pids in ranks.items():
        line = "" if site is None else f" at {shorten(site.file)}:{site.line}"
        verb = "gives" if len(pids) == 1 else "give"
        said.append(f"{text.ranks(sorted(pids))} {verb} it as {argument} of {name}{line}")
    if not said:
        return ""
    return "MPI.IN_PLACE is for the root, the other ranks must give their buffers: " + ", ".join(
        said[:4]
    )
