"""Figures 1, 7 and 11: states of the shared buffer in a transfer."""

from __future__ import annotations

from pysmpi.memory.coherence import protocol
from pysmpi.memory.transfer.caches import Block
from pysmpi.memory.transfer.kinds import access_of
from pysmpi.memory.transfer.library import read_library
from pysmpi.memory.transfer.pipeline import pipelined
from pysmpi.memory.transfer.room import Room
from pysmpi.platform.config import Settings
from pysmpi.studies.framework import FigureRow, StudyResult, study
from pysmpi.studies.shared_memory.transfers import KIB, XEON, described

# Name of the step, the access of the sender (0) or the receiver (1), states before and after.
STEPS = (
    ("step 2, store hit shared (figure 11)", "write", 0, ("S", "S"), ("M", "I")),
    ("step 3, load miss modified (figure 7)", "read", 1, ("M", "I"), ("S", "S")),
)


@study(
    "Figures 1, 7 and 11, tables I and II, cache states of the shared buffer under MESI",
    "The sender's store makes the shared buffer Modified, the receiver's load makes both copies "
    "Shared and writes the data back",
)
def run(quick: bool) -> StudyResult:
    """Both steps, by the table of the protocol."""
    rows = []
    for name, operation, cache, before, after in STEPS:
        states, transfer = getattr(protocol("MESI"), operation)(before, cache)
        rows.append(
            FigureRow(name, f"{'/'.join(before)} to {'/'.join(after)}",
                f"{'/'.join(before)} to {'/'.join(states)}", holds=tuple(states) == after)
        )  # fmt: skip
        if operation == "read":
            back = transfer.write_back is not None
            rows.append(FigureRow("... with a write-back to memory", "yes", str(back), holds=back))
    states, transfer = protocol("MOESI").read(("M", "I"), 1)
    found = f"{'/'.join(states)}, write-back: {transfer.write_back is not None}"
    rows.append(
        FigureRow("step 3 under MOESI (section IV-E)", "O/S, no write-back", found,
            holds=found == "O/S, write-back: False")
    )  # fmt: skip
    return StudyResult([*rows, *steps(), *accesses()])


def steps() -> list[FigureRow]:
    """Table I: three chunks take four steps, in two of which both cores copy."""
    chunk = 32 * KIB
    found = pipelined(3 * chunk, chunk, chunk, 1 / chunk, 1 / chunk)
    both = 2 * 3 - found
    return [
        FigureRow(
            "table I: steps of three chunks", "4", f"{found:.0f}", holds=round(found, 9) == 4
        ),
        FigureRow(
            "table I: steps in which both cores copy", "2", f"{both:.0f}", holds=round(both, 9) == 2
        ),
    ]


def accesses() -> list[FigureRow]:
    """Table II: the accesses of a message whose buffers are in the caches, or in memory."""
    rows = []
    for where, expected in (("recently used", ("LHM", "SHS", "LMM", "SHM")),
                            ("otherwise", ("LMI", "SHS", "LMM", "SMI"))):  # fmt: skip
        used = where == "recently used"
        found = tuple(access_of(kind) for kind in transfer_kinds(used))
        rows.append(
            FigureRow(f"table II: accesses of steps 1 to 4, buffers {where}", ", ".join(expected),
                ", ".join(found), holds=found == expected)
        )  # fmt: skip
    return rows


def transfer_kinds(used: bool) -> tuple[int, int, int, int]:
    """Kinds of the four accesses of a message on the Xeon, `used`: its buffers are in caches."""
    node = described(XEON)
    settings = Settings({}, {"memory/first-send": "memory"})
    room = Room(node, protocol("MESI"), read_library(settings), None)
    sender, receiver, size = 0, 1, 32 * KIB
    pool = room.pool(sender, receiver)
    out, into = Block(0, size, 0), Block(0, size, 0)
    for _ in range(2):  # the second message finds the shared buffers as the first has left them
        room.store(pool, sender, receiver, size)
        room.load(pool, receiver, sender)
    if used:
        room.caches.access(sender, out, True)
        room.caches.access(receiver, into, True)
    return (
        room.caches.access(sender, out, False),
        room.store(pool, sender, receiver, size),
        room.load(pool, receiver, sender),
        room.caches.access(receiver, into, True),
    )
