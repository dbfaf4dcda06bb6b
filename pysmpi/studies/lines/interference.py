"""Figure 7: two writers and a reader that polls, in three orders."""

from __future__ import annotations

from pysmpi.memory.coherence import protocol
from pysmpi.studies.framework import FigureRow, StudyResult, study
from pysmpi.studies.lines.model import costs, ns

# The threads that access the line, in order: threads 0 and 1 write, thread 2 reads.
ORDERS = {
    "a: both write, then the read": ("w0", "w1", "r2"),
    "b: a read between the writes": ("w0", "r2", "w1", "r2"),
    "c: a read first as well": ("r2", "w0", "r2", "w1", "r2"),
}
PRINTED = {"a": 2, "b": 3, "c": 4}


def reads(order: tuple[str, ...]) -> tuple[int, int]:
    """(lines from memory, lines from other caches) of accesses to a line that no cache has."""
    table = protocol("GOLS")
    states: tuple[str, ...] = ("I", "I", "I")
    memory = remote = 0
    for access in order:
        change = table.write if access[0] == "w" else table.read
        states, transfer = change(states, int(access[1]))
        if not transfer.hit:
            memory += transfer.source == "memory"
            remote += transfer.source != "memory"
    return memory, remote


@study(
    "Figure 7, interference of two writers and a polling reader",
    "The cost is R_I + 2 R_R, R_I + 3 R_R or R_I + 4 R_R, by the order of the accesses",
)
def run(quick: bool) -> StudyResult:
    """The transfers that the protocol of the Xeon Phi makes in each order."""
    model, rows = costs(), []
    for name, order in ORDERS.items():
        memory, remote = reads(order)
        found = f"{'R_I' if memory == 1 else f'{memory} R_I'} + {remote} R_R"
        cost = memory * model.R_I + remote * model.R_R
        rows.append(
            FigureRow(name, f"R_I + {PRINTED[name[0]]} R_R", f"{found} = {ns(cost):.0f} ns",
                holds=(memory, remote) == (1, PRINTED[name[0]]))
        )  # fmt: skip
    return StudyResult(rows)
