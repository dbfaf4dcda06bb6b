"""Times of input and output: the simulated disk, sieving, two-phase access, atomic mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated import simulate

from pysmpi.errors import UsageError
from pysmpi.mpi import MPI
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.files.access import interleave
from pysmpi.mpi.files.disks import DISKS, Disk, Disks, DiskStep, disk_options
from pysmpi.mpi.files.views import Pieces
from pysmpi.platform.config import Settings, parse

RDWR = MPI.MODE_RDWR | MPI.MODE_CREATE
SPEED = 1e9  # of the default disk, bytes/s


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


def timed(nprocs: int, path: Path, access: Callable[[Any, int], Any], **disk: Any) -> list[float]:
    """The simulated seconds of an access to a fresh file in each rank."""

    def main(rank: Rank) -> float:
        if disk:
            settings = parse(f"disk/{key.replace('_', '-')}:{value}" for key, value in disk.items())
            DISKS.put(rank.universe, Disks(disk_options(Settings(settings))))
        world = MPI.COMM_WORLD
        file = MPI.File.Open(world, path, RDWR)
        world.Barrier()
        begun = rank.now()
        access(file, world.Get_rank())
        seconds = rank.now() - begun
        file.Close()
        return seconds

    return simulate(nprocs, main)


def test_bandwidth_and_latency(path):
    data = bytes(10_000_000)
    (seconds,) = timed(1, path, lambda file, me: file.Write(data))
    assert seconds == pytest.approx(1e-4 + 1e7 / SPEED)
    (seconds,) = timed(
        1, path, lambda file, me: file.Write(data), write_bandwidth="500MBps", latency="1ms"
    )
    assert seconds == pytest.approx(1e-3 + 1e7 / 5e8)


def test_ranks_share_the_file_system_of_the_machine_but_not_the_disks_of_hosts(path):
    data = bytes(10_000_000)

    def write(file: Any, me: int) -> None:
        file.Write_at(me * len(data), data)

    together = timed(4, path, write)
    assert together == pytest.approx([1e-4 + 4e7 / SPEED] * 4, rel=1e-3)
    # Two ranks a host.
    apart = timed(4, path, write, scope="host")
    assert apart == pytest.approx([1e-4 + 2e7 / SPEED] * 4, rel=1e-3)


def test_reads_and_writes_together_have_the_larger_bandwidth(path):
    path.write_bytes(bytes(10_000_000))
    room = bytearray(10_000_000)

    def access(file: Any, me: int) -> None:
        if me:
            file.Read_at(0, room)
        else:
            file.Write_at(0, bytes(10_000_000))

    alone = timed(2, path, access, read_bandwidth="2GBps", write_bandwidth="1GBps")
    # Half of 2 GB/s each, until one of them is done.
    assert alone == pytest.approx([1e-4 + 1e-2] * 2, rel=1e-3)


def test_empty_accesses_take_no_time(path):
    assert timed(1, path, lambda file, me: file.Write(b"")) == [0.0]


def test_a_write_whose_conversion_fails_takes_no_time_and_writes_nothing(path):
    def fail(*arguments: Any) -> None:
        raise ValueError("mine")

    def write(file: Any, me: int) -> None:
        MPI.Register_datarep("fails", None, fail, lambda datatype: datatype.extent)
        file.Set_view(0, MPI.BYTE, MPI.BYTE, "fails")
        with pytest.raises(MPI.Exception) as caught:
            file.Write(bytes(10_000_000))
        assert caught.value.Get_error_class() == MPI.ERR_CONVERSION

    assert timed(1, path, write) == [0.0]
    assert path.read_bytes() == b""


def test_scattered_pieces_are_sieved_where_that_is_faster():
    disk = Disk(1e9, 1e9, 1e-4)
    near = Pieces(np.arange(0, 8000, 8), np.full(1000, 4))
    far = Pieces(np.arange(2) * 10**9, np.full(2, 4))
    assert disk.steps(near, False) == [DiskStep(False, 1e-4, 7996)]
    assert disk.steps(near, True) == [DiskStep(False, 1e-4, 7996), DiskStep(True, 1e-4, 7996)]
    assert disk.steps(far, True) == [DiskStep(True, 2e-4, 8)]
    assert disk.steps(near, False, "disable") == [DiskStep(False, pytest.approx(0.1), 4000)]
    assert disk.steps(far, False, "enable") == [DiskStep(False, 1e-4, 10**9 + 4)]


def test_interleaved_accesses_are_exchanged():
    apart = {0: (0, 10, 10, "automatic"), 1: (10, 20, 10, "automatic")}
    mixed = {0: (0, 15, 8, "automatic"), 1: (5, 20, 8, "automatic")}
    idle = {0: (0, 10, 10, "automatic"), 1: (0, 0, 0, "automatic"), 2: (10, 20, 2, "automatic")}
    assert interleave(apart) == interleave(idle) == 0
    assert interleave(mixed) == 4
    assert interleave({rank: (*value[:3], "disable") for rank, value in mixed.items()}) == 0
    assert interleave({rank: (*value[:3], "enable") for rank, value in apart.items()}) == 5


def test_two_phase_access_beats_single_ones(path):
    """Columns of a matrix: each rank has many short pieces between those of the others."""
    nprocs, rows = 4, 500

    def write(collective: bool) -> Callable[[Any, int], None]:
        def access(file: Any, me: int) -> None:
            column = MPI.DOUBLE.Create_vector(rows, 64, 64 * nprocs).Commit()
            file.Set_view(512 * me, MPI.DOUBLE, column)
            data = np.full(rows * 64, me, "d")
            (file.Write_all if collective else file.Write)(data)

        return access

    assert max(timed(nprocs, path, write(True))) < max(timed(nprocs, path, write(False)))


def test_collective_access_waits_for_the_latest(path):
    def main(rank: Rank) -> float:
        world = MPI.COMM_WORLD
        file = MPI.File.Open(world, path, RDWR)
        world.Barrier()
        begun = rank.now()
        if world.Get_rank() == 2:
            rank.sleep(1.0)
        file.Write_at_all(world.Get_rank(), b"a")
        return rank.now() - begun

    assert min(simulate(3, main)) > 1.0


def test_background_access_overlaps_with_other_work(path):
    def access(file: Any, me: int) -> None:
        request = file.Iwrite_at(0, bytes(10_000_000))
        current().sleep(0.0095)
        request.Wait()

    (seconds,) = timed(1, path, access)
    assert seconds == pytest.approx(1e-4 + 1e-2)


@pytest.mark.parametrize("atomic", [False, True])
def test_in_atomic_mode_conflicting_accesses_take_turns(path, atomic):
    """Two write the same place, a third one beside it."""

    def access(file: Any, me: int) -> None:
        file.Set_atomicity(atomic)
        file.Write_at(me // 2 * (10 << 20), bytes(10 << 20))

    units = [seconds * SPEED / (10 << 20) for seconds in sorted(timed(3, path, access))]
    assert units == pytest.approx([2, 2, 3] if atomic else [3, 3, 3], rel=0.05)


def test_atomic_writes_do_not_mix(path):
    def main(rank: Rank) -> None:
        me = MPI.COMM_WORLD.Get_rank()
        file = MPI.File.Open(MPI.COMM_WORLD, path, RDWR)
        assert file.atomicity is False
        file.atomicity = True
        assert file.Get_atomicity() is True
        filetype = MPI.BYTE.Create_vector(50, 1, 2).Commit()
        file.Set_view(0, MPI.BYTE, filetype)
        for _ in range(3):
            file.Write_at(0, bytes([me + 1]) * 50)
        file.Close()

    simulate(3, main)
    assert len(set(path.read_bytes()[::2])) == 1


@pytest.mark.parametrize(
    "setting", ["disk/scope:rack", "disk/latency:-1", "disk/read-bandwidth:0",
                "disk/write-bandwidth:fast"]
)  # fmt: skip
def test_options_that_are_refused(setting):
    with pytest.raises(UsageError, match=setting.split(":")[0]):
        disk_options(Settings(parse([setting])))
