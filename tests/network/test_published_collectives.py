"""Published tables of Allreduce and Alltoall, with 4 to 128 ranks on each of two or four nodes.

No figure of these tables is in a preset, but those of an Allreduce of 4 bytes and an Alltoall of 1
byte on the first machine, from which the times for a wait and a block in a collective come.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import pysmpi

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "accuracy.md"
MACHINES: dict[str, dict[str, Any]] = {
    machine["name"]: machine
    for machine in yaml.safe_load(Path(__file__).with_name("collectives.yaml").read_text())
}
# The columns of the page: operation, and the sizes (bytes) of which it has the range of errors.
COLUMNS = [
    ("allreduce", (4, 8, 64)),
    ("allreduce", (256, 1024, 4096)),
    ("allreduce", (16384, 65536)),
    ("allreduce", (1 << 20,)),
    ("alltoall", (1, 64)),
    ("alltoall", (1024, 4096, 16384, 131072)),
]
# Columns in which predictions are within a quarter of the published times.
GOOD = {
    "CSD3, 100 Gb/s InfiniBand, Open MPI 3.1.6": (0, 1, 4, 5),
    "CSD3, 50 Gb/s RoCE, Open MPI 3.1.6": (2, 4, 5),
    "Alaska, 100 Gb/s InfiniBand, Open MPI 4.0.3": (0, 1),
    "Alaska, 25 Gb/s RoCE, Open MPI 4.0.3": (0, 1, 5),
    "Alaska, 25 Gb/s RoCE, Intel MPI": (5,),
    "ARCHER2, 100 Gb/s Slingshot, Cray MPICH 8.1.23": (2, 3),
    "Alps, Slingshot-11, Open MPI 5": (4,),
}


def collective(op: str, sizes: list[int]) -> list[float]:
    """Seconds of a collective of each size, after one that warms up."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    times = []
    for size in sizes:
        total = size * comm.size if op == "alltoall" else size
        send, receive = numpy.zeros((2, total), "b")
        for _ in range(2):
            comm.Barrier()
            begin = MPI.Wtime()
            if op == "alltoall":
                comm.Alltoall(send, receive)
            else:
                comm.Allreduce([send, size // 4, MPI.FLOAT], [receive, size // 4, MPI.FLOAT])
            passed = MPI.Wtime() - begin
        times.append(passed)
    return times


def predicted(machine: dict[str, Any], op: str, sizes: list[int], folder: Path) -> dict[int, float]:
    """Microseconds by size, as the mean over ranks."""
    nodes, ranks = machine["nodes"], machine["ranks"]
    config = f"config: {{network/message-rate: {machine['rate']}}}\n" if "rate" in machine else ""
    rails = f"    rails: {machine['rails']}\n" if "rails" in machine else ""
    file, hosts = folder / "machine.yaml", folder / "hosts"
    file.write_text(
        f"name: here\npreset: {machine['preset']}\n{config}clusters:\n  - name: here\n"
        f"    hosts: here-[0-{nodes - 1}]\n    cores: {machine['cores']}\n"
        f"    sockets: {machine['sockets']}\n{rails}    network: "
        f"{{bandwidth: {machine['bandwidth']}, latency: {machine['latency']}}}\n"
    )
    hosts.write_text("".join(f"here-{node}:{ranks}\n" for node in range(nodes)))
    ring = machine.get("ring", 1 << 40) if op == "allreduce" else 1 << 40
    found = {}
    for part, coll in (
        ([size for size in sizes if size < ring], {}),
        ([size for size in sizes if size >= ring], {"allreduce": "lr"}),
    ):
        if part:
            result = pysmpi.run(
                collective, nodes * ranks, args=(op, part), platform=file, hostfile=hosts,
                selector=machine["selector"], coll=coll, compute="none", data="none",
                cfg={"smpi/wtime": "0"},
            )  # fmt: skip
            for size, times in zip(part, zip(*result.returns, strict=True), strict=True):
                found[size] = 1e6 * sum(times) / len(times)
    return found


def errors(machine: dict[str, Any], folder: Path) -> list[list[float]]:
    """The errors of each column of the page; empty if nothing was published."""
    columns: list[list[float]] = [[] for _ in COLUMNS]
    for op in ("allreduce", "alltoall"):
        published = machine.get(op, {})
        sizes = [size for one, some in COLUMNS if one == op for size in some if size in published]
        if not sizes:
            continue
        times = predicted(machine, op, sizes, folder)
        for column, (one, some) in zip(columns, COLUMNS, strict=True):
            if one == op:
                column += [times[size] / published[size] - 1 for size in some if size in published]
    return columns


def cell(column: list[float]) -> str:
    """A range of errors, as the page has it."""
    if not column:
        return ""
    low, high = (round(100 * error) for error in (min(column), max(column)))
    texts = [f"{value:+d}" if value else "0" for value in (low, high)]
    return f"{texts[0]} %" if low == high else f"{texts[0]} to {texts[1]} %"


def row(name: str, columns: list[list[float]]) -> str:
    machine = MACHINES[name]
    cells = " | ".join(cell(column) for column in columns)
    return f"| {name} | {machine['nodes']} x {machine['ranks']} | {cells} |"


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_the_errors_are_those_of_the_page(name: str, tmp_path: Path) -> None:
    columns = errors(MACHINES[name], tmp_path)
    assert row(name, columns) in PAGE.read_text(encoding="utf-8").splitlines()
    for number in GOOD.get(name, ()):
        assert columns[number] and max(map(abs, columns[number])) <= 0.25, COLUMNS[number]


def test_three_machines_are_within_a_quarter() -> None:
    allreduce = [name for name, good in GOOD.items() if {0, 1} <= set(good)]
    alltoall = [name for name, good in GOOD.items() if 5 in good]
    assert len(allreduce) == 3 and len(alltoall) == 4


if __name__ == "__main__":  # prints the rows of the page
    import tempfile

    for each in MACHINES:
        print(row(each, errors(MACHINES[each], Path(tempfile.mkdtemp()))), flush=True)
