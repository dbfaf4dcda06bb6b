"""A parameter study: ranks take cases, and each appends its results to one table, a plain file.

The error: the rank that has the first case writes the head of the table, and no rank waits for it.
It is usually the first to run.
"""

from __future__ import annotations

import csv
import os
import sys
from dataclasses import astuple, dataclass, fields

from mpi4py import MPI


@dataclass
class Row:
    """The results of one case."""

    case: int
    rank: int
    energy: float
    steps: int


def simulate(case: int) -> tuple[float, int]:
    """Relax an oscillator until it rests; its energy, and the steps that it took."""
    place, speed, damping = 1.0, 0.0, 0.5 + 0.1 * case
    steps = 0
    while place * place + speed * speed > 1e-2:
        speed -= 0.1 * (place + damping * speed)
        place += 0.1 * speed
        steps += 1
    return 0.5 * (place * place + speed * speed), steps


class Table:
    """A file of rows, to which all ranks append."""

    def __init__(self, path: str) -> None:
        self.path = path

    def head(self) -> None:
        with open(self.path, "a", newline="") as stream:
            csv.writer(stream).writerow([one.name for one in fields(Row)])

    def append(self, row: Row) -> None:
        with open(self.path, "a", newline="") as stream:
            csv.writer(stream).writerow(astuple(row))

    def read(self) -> list[dict[str, str]]:
        with open(self.path, newline="") as stream:
            return list(csv.DictReader(stream))


def main() -> None:
    comm = MPI.COMM_WORLD
    cases = 2 * comm.size
    table = Table(sys.argv[1])
    if comm.rank == 0:
        table.head()
    for case in range(comm.rank, cases, comm.size):
        table.append(Row(case, comm.rank, *simulate(case)))
    comm.Barrier()
    if comm.rank == 0:
        rows = table.read()
        os.remove(table.path)
        assert len(rows) == cases and "case" in rows[0], f"the first row is {rows[0]}"
        assert sorted(int(row["case"]) for row in rows) == list(range(cases))


main()
