"""Section numbers of MPI 4.1: those of the registry of calls, and those in texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pysmpi.mpi.MPI  # noqa: F401
from pysmpi.mpi.calls import PROCEDURES

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "data" / "mpi41_sections.txt"

# The names of mpi4py's classes in the names of MPI's procedures; a method without any is MPI_NAME.
PREFIXES = {
    "Datatype": "type_",
    "Exception": "error_",
    "Intracomm": "comm_",
    "Topocomm": "topo_",
    "Cartcomm": "cart_",
    "Graphcomm": "graph_",
    "Distgraphcomm": "dist_graph_",
    "Prequest": "request_",
}
# Names of mpi4py with another meaning.
OTHERS = {"Message": {"probe", "iprobe", "recv", "irecv"}, "Info": {"get"}}


def sections() -> tuple[set[str], dict[str, str]]:
    """All numbers, and the number of each procedure by its C name in lower case."""
    numbers, procedures = set(), {}
    for line in TABLE.read_text().splitlines():
        if not line.startswith("#"):
            title, _, names = line.partition(": ")
            number = title.split()[0]
            numbers.add(number)
            if re.fullmatch(r"\w+( \w+)*", names):
                procedures.update((name.lower(), number) for name in names.split())
    return numbers, procedures


NUMBERS, DEFINED = sections()


def expected(procedure) -> str | None:
    """The section that defines the procedure of MPI that a call is named after."""
    name = procedure.name.lower()
    owners = [owner.__name__ for owner in procedure.owners]
    if any(name in OTHERS.get(owner, ()) for owner in owners):
        return None
    for prefix in [*(PREFIXES.get(owner, f"{owner.lower()}_") for owner in owners), ""]:
        if prefix + name in DEFINED:
            return DEFINED[prefix + name]
    return None


def test_sections_of_procedures_exist():
    assert {one.section for one in PROCEDURES if one.section} <= NUMBERS


def test_procedures_name_the_section_that_defines_them():
    found = [(one, expected(one)) for one in PROCEDURES if one.section]
    wrong = [
        f"{one.name}: {one.section}, not {right}"
        for one, right in found
        if right is not None and one.section != right
    ]
    assert not wrong, "\n".join(wrong)
    assert sum(right is not None for _, right in found) > 400


CITED = re.compile(
    r"MPI\s+4\.1,\s+(?:section|chapter)s?\s+"
    r"((?:(?:,\s+|\s+and\s+|\s+to\s+)?\d+(?:\.\d+)*(?:\s+\([^)]*\))?)+)"
)


def cited(text: str) -> list[str]:
    """The section numbers in a text that it gives as those of MPI 4.1."""
    found = []
    for match in CITED.finditer(re.sub(r"\n\s*(#|\")?", " ", text)):
        found += re.findall(r"\d+(?:\.\d+)*", re.sub(r"\([^)]*\)", "", match[1]))
    return found


def test_citations_are_found():
    text = "MPI 4.1, sections 3.2.7 (a, b), 3.7.2 and\n    2.3 (aliasing); MPI 4.1, chapter 9."
    assert cited(text) == ["3.2.7", "3.7.2", "2.3", "9"]


@pytest.mark.parametrize("room", ["pysmpi", "docs"])
def test_cited_sections_exist(room):
    paths = [*(ROOT / room).rglob("*.py"), *(ROOT / room).rglob("*.md")]
    found = [(path, number) for path in paths for number in cited(path.read_text())]
    unknown = [f"{path}: {number}" for path, number in found if number not in NUMBERS]
    assert not unknown, "\n".join(unknown)
    assert len(found) > 20
