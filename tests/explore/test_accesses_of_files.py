"""Ranks that read and write the same bytes of a file without an order between them."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysmpi.explore.events import exchangeable
from pysmpi.mpi import MPI
from pysmpi.mpi.files.access import MEASURE
from tests.explore.test_systematic import explore

INT = 4


def opened(path: str, alone: bool = False) -> MPI.File:
    """A new file, open in all ranks."""
    comm = MPI.COMM_WORLD
    if comm.rank == 0 and os.path.exists(path):
        os.remove(path)
    comm.Barrier()
    mode = MPI.MODE_RDWR | MPI.MODE_CREATE
    return MPI.File.Open(MPI.COMM_SELF if alone else comm, path, mode)


def write(file: MPI.File, place: int) -> None:
    file.Write_at(INT * place, np.full(1, MPI.COMM_WORLD.rank + 1, "i"))


def read(file: MPI.File, place: int) -> int:
    data = np.zeros(1, "i")
    file.Read_at(INT * place, data)
    return int(data[0])


def counted(file: MPI.File, place: int) -> int:
    status = MPI.Status()
    file.Read_at(INT * place, np.zeros(1, "i"), status)
    return status.Get_count(MPI.INT)


def contents(path: str) -> list[int]:
    MPI.COMM_WORLD.Barrier()
    return np.fromfile(path, "i").tolist() if MPI.COMM_WORLD.rank == 0 else []


def own_parts(path: str) -> Any:
    file = opened(path)
    for part in range(3):
        write(file, MPI.COMM_WORLD.rank + part * MPI.COMM_WORLD.size)
    return contents(path)


def same_bytes(path: str) -> Any:
    write(opened(path), 0)
    return contents(path)


def own_files(path: str) -> Any:
    write(opened(path, alone=True), 0)
    return contents(path)


def first_reads(path: str) -> Any:
    file = opened(path)
    return write(file, 0) if MPI.COMM_WORLD.rank else read(file, 0)


def first_reads_the_end(path: str) -> Any:
    file = opened(path)
    return write(file, 5) if MPI.COMM_WORLD.rank else counted(file, 0)


def all_read(path: str) -> Any:
    file = opened(path)
    return read(file, 0), read(file, 1)


def own_pointers(path: str) -> Any:
    file = opened(path)
    data = np.full(1, MPI.COMM_WORLD.rank + 1, "i")
    file.Iwrite(data).Wait()
    return contents(path)


def first_asks(path: str) -> Any:
    file = opened(path)
    return write(file, 1) if MPI.COMM_WORLD.rank else file.Get_size()


def first_seeks(path: str) -> Any:
    file = opened(path)
    if MPI.COMM_WORLD.rank:
        return write(file, 1)
    file.Seek(0, MPI.SEEK_END)
    return file.Get_position()


@pytest.mark.parametrize(
    ("program", "ranks", "results"),
    [
        (own_parts, 3, 1), (same_bytes, 2, 2), (same_bytes, 3, 3), (own_files, 2, 2),
        (first_reads, 2, 2), (first_reads_the_end, 2, 2), (all_read, 3, 1), (own_pointers, 3, 3),
        (first_asks, 2, 2), (first_seeks, 2, 2),
    ],
)  # fmt: skip
def test_every_order_is_tried(
    program: Callable[[str], Any], ranks: int, results: int, tmp_path: Path
) -> None:
    found = explore(program, ranks, [str(tmp_path / "data")])
    assert found.complete
    assert len(found.results) == results
    if results == 1:
        assert found.executions == 1


def test_accesses_without_common_bytes_can_be_exchanged() -> None:
    ranges = [(0, 4, 0), (4, 8, 4), (2, 6, 2), (8, 12, 0)]
    for one, other in product(ranges, repeat=2):
        first, second = ("writes {} {} {} 0".format(*each) for each in (one, other))
        apart = one[1] <= other[0] or other[1] <= one[0]
        assert exchangeable(first, second) == apart
        assert exchangeable(f"reads {one[0]} {one[1]} {one[0]} 1", f"reads {other[0]} 99 0 1")
        sees = other[2] < one[1] and one[0] < other[1]
        reading = f"reads {one[0]} {one[1]} {one[0]} 1"
        assert exchangeable(reading, second) == exchangeable(second, reading) == (not sees)
    longer = "writes 8 12 8 1"
    assert not exchangeable(MEASURE, longer) and exchangeable(MEASURE, "writes 8 12 8 0")
    assert not exchangeable("", "") and exchangeable("add", "add")
