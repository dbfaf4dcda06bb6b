"""Figures 1, 7 and 11: states of the shared buffer in a transfer."""

from __future__ import annotations

from pysmpi.memory.coherence import protocol
from studies.framework import Result, Row, study

# Name of the step, what the sender (0) or the receiver (1) does, states before and after.
STEPS = (
    ("step 2, store hit shared (figure 11)", "write", 0, ("S", "S"), ("M", "I")),
    ("step 3, load miss modified (figure 7)", "read", 1, ("M", "I"), ("S", "S")),
)


@study(
    "Figures 1, 7 and 11, cache states of the shared buffer under MESI",
    "The sender's store makes the shared buffer Modified, the receiver's load makes both copies "
    "Shared and writes the data back",
)
def run(quick: bool) -> Result:
    """Both steps, by the table of the protocol."""
    rows = []
    for name, operation, cache, before, after in STEPS:
        states, transfer = getattr(protocol("MESI"), operation)(before, cache)
        rows.append(
            Row(name, f"{'/'.join(before)} to {'/'.join(after)}",
                f"{'/'.join(before)} to {'/'.join(states)}", holds=tuple(states) == after)
        )  # fmt: skip
        if operation == "read":
            back = transfer.write_back is not None
            rows.append(Row("... with a write-back to memory", "yes", str(back), holds=back))
    states, transfer = protocol("MOESI").read(("M", "I"), 1)
    found = f"{'/'.join(states)}, write-back: {transfer.write_back is not None}"
    rows.append(
        Row("step 3 under MOESI (section IV-E)", "O/S, no write-back", found,
            holds=found == "O/S, write-back: False")
    )  # fmt: skip
    return Result(rows)
