"""Tables 1 and 2: the transitions of the cache coherence protocols."""

from __future__ import annotations

from pysmpi.memory.coherence import LineTransfer, protocol
from pysmpi.studies.framework import FITTED, FigureRow, StudyResult, study

# State of the requester and of the other cache; states afterwards; source of the data.
LOADS = [
    ("S", "I", "S", "I", "hit"), ("E", "I", "E", "I", "hit"), ("M", "I", "M", "I", "hit"),
    ("I", "I", "E", "I", "memory"), ("I", "S", "S", "S", "memory"),
    ("I", "E", "S", "S", "memory with lookup"), ("I", "M", "E", "I", "cache"),
]  # fmt: skip
STORES = [
    ("E", "I", "M", "I", "hit"), ("M", "I", "M", "I", "hit"), ("I", "I", "M", "I", "memory"),
    ("I", "S", "M", "I", "memory with invalidation"),
    ("S", "S", "M", "I", "memory with invalidation"),
    ("I", "E", "M", "I", "memory with invalidation"), ("I", "M", "M", "I", "cache"),
]  # fmt: skip


def transfer_name(transfer: LineTransfer) -> str:
    """A LineTransfer in the words of the tables."""
    if transfer.hit:
        return "hit"
    if transfer.source != "memory":
        return str(transfer.source)
    if transfer.lookup:
        return "memory with lookup"
    return "memory with invalidation" if transfer.invalidated else "memory"


@study(
    "Tables 1 and 2, the protocol for loads and stores",
    "Each line of the tables is a transition of the described protocol",
)
def run(quick: bool) -> StudyResult:
    """Every line of both tables for protocol A, and the line in which B differs."""
    rows = []
    for operation, table in (("load", LOADS), ("store", STORES)):
        for own, other, own_after, other_after, source in table:
            name = "FAME-A"
            states, transfer = getattr(protocol(name), "read" if operation == "load" else "write")(
                (own, other), 0
            )
            found = f"{'/'.join(states)}, {transfer_name(transfer)}"
            paper = f"{own_after}/{other_after}, {source}"
            rows.append(
                FigureRow(
                    f"{operation} in {own}, other in {other}, A",
                    paper,
                    found,
                    FITTED,
                    found == paper,
                )
            )
    for name, operation, paper in (
        ("FAME-B", "read", "load of a modified line: both S (section 4.2)"),
        ("FAME-B-store", "write", "store to a modified line: both S (table 2)"),
    ):
        states, transfer = getattr(protocol(name), operation)(("I", "M"), 0)
        rows.append(
            FigureRow(f"{name}", paper, f"{'/'.join(states)}, {transfer_name(transfer)}", FITTED,
                states == ("S", "S"))
        )  # fmt: skip
    return StudyResult(
        rows,
        remark="The text of table 1 places a modified line in E after a load under protocol A; the "
        "paper describes protocol B in two ways, which are two protocols here.",
    )
