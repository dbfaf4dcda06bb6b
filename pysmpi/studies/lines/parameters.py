"""Tables 1 to 3, figures 1 and 3: states of a line, and the cost of reading one."""

from __future__ import annotations

from pysmpi.memory.coherence import protocol
from pysmpi.platform import load
from pysmpi.studies.framework import FITTED, FigureRow, StudyResult, study
from pysmpi.studies.lines.model import PHI, costs, ns

# Table 1: the cores that have the line, and whether it is modified ("-" of an invalid line).
MESI = {"M": (True, False, True), "E": (True, False, False), "S": (True, True, False)}
# Table 2b, in ns.
LATENCIES = {
    "LHM": 8.6, "LHE": 8.6, "LHS": 8.7, "LMM": 234.7, "LME": 235.8, "LMS": 233.4, "LMI": 277.7,
}  # fmt: skip
# Table 2a: mean and standard deviation in ns, at the adjacent, the middle and the largest distance.
MEASURED = {
    "LMM": ((241.2, 21.7), (234.7, 25.6), (240.1, 10.4)),
    "LME": ((227.4, 20.6), (235.8, 25.5), (237.4, 27.7)),
    "LMS": ((232.0, 10.2), (233.4, 35.0), (233.4, 22.5)),
    "LMI": ((274.3, 25.2), (278.8, 34.4), (284.5, 29.6)),
}
# Table 3: whether several cores own a line in a state of the directory, and whether it is modified.
DIRECTORY = {"GOLS": (True, True), "GS": (True, False)}
# Figure 1: the access of T0 or T1, and the states of the line in both caches before and after.
STEPS = (
    ("T0 writes a line that no cache has", "write", 0, ("I", "I"), ("M", "I")),
    ("T1 reads the line that T0 has modified", "read", 1, ("M", "I"), ("L", "L")),
    ("T1 reads the line that T0 has alone", "read", 1, ("E", "I"), ("S", "S")),
    ("T0 requests the ownership of a shared line", "write", 0, ("S", "S"), ("M", "I")),
    ("T1 requests the ownership of T0's line", "write", 1, ("M", "I"), ("I", "M")),
    ("T0 reads a line that no cache has", "read", 0, ("I", "I"), ("E", "I")),
)


@study(
    "Tables 1 to 3, figures 1 and 3, states of a line and the costs of reading it",
    "A read costs 8.6 ns in the own cache, 235.8 ns from another, 277.7 ns from memory, hardly "
    "depending on the distance; shared lines may be modified (GOLS)",
)
def run(quick: bool) -> StudyResult:
    """The machine's latencies beside the printed ones, and the described protocol."""
    rows = []
    described = protocol("MESI").states
    for letter, (here, others, modified) in MESI.items():
        state = described[letter]
        found = (not state.invalid, not state.exclusive, state.dirty)
        rows.append(
            FigureRow(f"table 1, {letter}: this core, others, modified",
                words(here, others, modified) + (" (text: yes)" if letter == "E" else ""),
                words(*found), FITTED, found == (here, others, modified))
        )  # fmt: skip
    node = load(PHI).hosts[0].node
    assert node is not None
    for access, printed in LATENCIES.items():
        ours = ns(node.latency(access, 0))
        rows.append(
            FigureRow(f"table 2b, {access}: ns", f"{printed}", f"{ours:.1f}", FITTED,
                abs(ours - printed) < 0.05)
        )  # fmt: skip
    for access, distances in MEASURED.items():
        ours = ns(node.latency(access, 0))
        within = all(abs(ours - mean) <= deviation for mean, deviation in distances)
        rows.append(
            FigureRow(f"table 2a, {access}: ns at three distances (deviation)",
                ", ".join(f"{mean} ({deviation})" for mean, deviation in distances),
                f"{ours:.1f} at all", FITTED, within)
        )  # fmt: skip
    simple = costs()
    simplified = ", ".join(f"{ns(cost):.1f}" for cost in (simple.R_L, simple.R_R, simple.R_I))
    rows.append(
        FigureRow("table 2c: R_L, R_R, R_I in ns", "8.6, 235.8, 277.7", simplified, FITTED,
            simplified == "8.6, 235.8, 277.7")
    )  # fmt: skip
    gols = protocol("GOLS")
    for name, printed_owners in DIRECTORY.items():
        letter = next(key for key, value in gols.directory.items() if value == name)
        state = gols.states[letter]
        owners = (not state.exclusive, state.dirty)
        rows.append(
            FigureRow(f"table 3, {name}: several owners, modified", words(*printed_owners),
                words(*owners), FITTED, owners == printed_owners)
        )  # fmt: skip
    for what, operation, cache, before, after in STEPS:
        states, _ = getattr(gols, operation)(before, cache)
        rows.append(
            FigureRow(f"figure 1: {what}", "/".join(after), "/".join(states), holds=states == after)
        )
    return StudyResult(
        rows,
        remark="L is a shared line that is modified, which a core sees as S. The text of table 1 "
        "has E as modified, unlike every MESI. Figure 3 is figure 1 with the three costs of "
        "table 2c.",
    )


def words(*facts: bool) -> str:
    """Yes or no, for each."""
    return ", ".join("yes" if fact else "no" for fact in facts)
