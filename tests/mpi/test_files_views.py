"""File views against a naive model, which lists the file position of every byte of the stream."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulated import simulate

from pysmpi.mpi import MPI
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.files.storage import Storage
from pysmpi.mpi.files.views import Pieces, View

common = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def filetypes(draw, etype=MPI.BYTE):
    """A filetype of runs of etypes with gaps between, in file order; with its (offsets, extent)."""
    size = etype.Get_size()
    lengths, displacements, at = [], [], draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 12))):
        length = draw(st.integers(0, 4))
        lengths.append(length)
        displacements.append(at)
        at += length + draw(st.integers(0, 3))
    if not any(lengths):
        lengths[0] = 1
        at += 4
    extent = (at + draw(st.integers(0, 3))) * size
    datatype = etype.Create_indexed(lengths, displacements).Create_resized(0, extent).Commit()
    offsets = [
        (displacement + i) * size + byte
        for length, displacement in zip(lengths, displacements)
        for i in range(length)
        for byte in range(size)
    ]
    return datatype, offsets, extent


def naive(disp: int, offsets: list[int], extent: int) -> Iterator[int]:
    """The file position of each byte of the stream."""
    copy = 0
    while True:
        for offset in offsets:
            yield disp + copy * extent + offset
        copy += 1


@common
@given(filetypes(), st.integers(0, 20), st.integers(0, 60), st.integers(0, 60))
def test_pieces_are_those_of_the_model(filetype, disp, position, nbytes):
    datatype, offsets, extent = filetype
    view = View(disp, 1, datatype._live().layout)
    pieces = view.pieces(position, nbytes)
    found = [at + i for at, n in pieces.each() for i in range(n)] if nbytes else []
    expected = list(islice(naive(disp, offsets, extent), position, position + nbytes))
    assert found == expected
    assert pieces.nbytes == nbytes
    if nbytes:
        assert (pieces.low, pieces.high) == (min(expected), max(expected) + 1)
        assert view.offset_of(position) == expected[0]


@common
@given(filetypes(MPI.SHORT), st.integers(0, 20), st.integers(0, 150))
def test_end_of_file_is_the_first_etype_after_it(filetype, disp, size):
    datatype, offsets, extent = filetype
    view = View(disp, 2, datatype._live().layout)
    begins = islice(naive(disp, offsets, extent), 0, None, 2)
    expected = next(i for i, begin in enumerate(begins) if begin >= size)
    assert view.position_after(size) == 2 * expected


@common
@given(
    filetypes(MPI.SHORT),
    st.integers(0, 9),
    st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 30)), max_size=8),
)
def test_reads_and_writes_are_those_of_the_model(tmp_path, filetype, disp, accesses):
    datatype, offsets, extent = filetype
    path = tmp_path / "data"
    path.write_bytes(bytes(range(100)))
    model = bytearray(range(100))

    def main(rank: Rank) -> None:
        file = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_RDWR)
        file.Set_view(disp, MPI.SHORT, datatype)
        fill = 100
        for write, offset, count in accesses:
            where = list(islice(naive(disp, offsets, extent), 2 * offset, 2 * (offset + count)))
            status = MPI.Status()
            if write:
                data = bytes((fill + i) % 256 for i in range(2 * count))
                fill += 7
                file.Write_at(offset, [data, MPI.SHORT], status)
                if where:
                    model.extend(bytes(max(0, where[-1] + 1 - len(model))))
                for position, byte in zip(where, data):
                    model[position] = byte
                assert status.Get_count(MPI.SHORT) == count
            else:
                room = bytearray(2 * count)
                file.Read_at(offset, [room, MPI.SHORT], status)
                expected = bytes(model[position] for position in where if position < len(model))
                assert status.Get_count() == len(expected)
                assert room[: len(expected)] == expected
        file.Close()

    simulate(1, main)
    assert path.read_bytes() == bytes(model)


@common
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=40),
    st.integers(1, 64),
)
def test_windows_read_and_write_what_single_runs_do(tmp_path, runs, window):
    """The two ways to access scattered pieces."""
    offsets, lengths, at = [], [], 0
    for gap, length in runs:
        offsets.append(at + gap)
        lengths.append(length)
        at += gap + length
    pieces = Pieces(np.array(offsets), np.array(lengths))
    path = tmp_path / "data"
    path.write_bytes(bytes(i % 251 for i in range(at // 2)))
    storage = Storage(str(path), MPI.MODE_RDWR)
    import pysmpi.mpi.files.storage as module

    kept, module.WINDOW = module.WINDOW, window
    try:
        one, other = bytearray(pieces.nbytes), bytearray(pieces.nbytes)
        got = storage._read_each(pieces, memoryview(one))
        assert storage._read_windows(pieces, memoryview(other)) == got
        assert one[:got] == other[:got]
        data = bytes(i % 253 for i in range(pieces.nbytes))
        storage.write(pieces, memoryview(data))
        assert storage.read(pieces, memoryview(one)) == pieces.nbytes
        assert one == data
        assert storage.size() == max(at // 2, pieces.high)
    finally:
        module.WINDOW = kept
        storage.close()


@settings(common, max_examples=25)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.booleans(), st.booleans())
def test_distributed_blocks_make_the_whole(
    tmp_path, nprocs, block, rounds, collective, nonblocking
):
    """Every rank writes its blocks of a cyclic distribution; together they fill the file."""
    path = tmp_path / "data"

    def main(rank: Rank) -> list[int]:
        me = MPI.COMM_WORLD.Get_rank()
        filetype = MPI.INT.Create_vector(1, block, block).Create_resized(0, 4 * block * nprocs)
        file = MPI.File.Open(MPI.COMM_WORLD, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
        file.Set_view(4 * block * me, MPI.INT, filetype.Commit())
        data = np.arange(block * rounds, dtype="i") + 1000 * me
        name = "Iwrite" if nonblocking else "Write"
        made = getattr(file, name + ("_all" if collective else ""))(data)
        if nonblocking:
            made.Wait()
        MPI.COMM_WORLD.Barrier()
        back = np.zeros_like(data)
        file.Seek(0)
        (file.Read_all if collective else file.Read)(back)
        assert (back == data).all()
        file.Set_view(0, MPI.INT)
        whole = np.zeros(block * rounds * nprocs, "i")
        file.Read_at_all(0, whole)
        file.Close()
        return whole.tolist()

    expected = [
        1000 * me + block * turn + i
        for turn in range(rounds)
        for me in range(nprocs)
        for i in range(block)
    ]
    assert simulate(nprocs, main) == [expected] * nprocs


def representable(draw_types=("INT", "LONG", "DOUBLE", "SHORT", "WCHAR", "FLOAT")):
    """Structures of predefined datatypes."""
    return st.lists(st.tuples(st.sampled_from(draw_types), st.integers(1, 3)), min_size=1,
                    max_size=4)  # fmt: skip


@settings(common, max_examples=40)
@given(representable(), st.integers(1, 4), st.integers(0, 2))
def test_external32_is_what_packing_makes(tmp_path: Path, members, count, at):
    path = tmp_path / "data"

    def main(rank: Rank) -> None:
        lengths = [n for _, n in members]
        types = [getattr(MPI, name) for name, _ in members]
        places = np.cumsum([0] + [n * t.Get_extent()[1] for n, t in zip(lengths, types)])
        struct = MPI.Datatype.Create_struct(lengths, places[:-1].tolist(), types)
        struct = struct.Create_resized(0, int(places[-1])).Commit()
        data = bytearray(i % 50 for i in range(count * struct.extent))
        packed = bytearray(struct.Pack_external_size("external32", count))
        struct.Pack_external("external32", data, packed, 0)
        file = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
        file.Set_size(0)
        etype = MPI.Datatype.Create_struct([1], [0], [MPI.BYTE]).Commit()
        file.Set_view(at, etype, etype, "external32")
        file.Write([data, count, struct])
        assert file.Get_size() == at + len(packed)
        back, status = bytearray(len(data)), MPI.Status()
        file.Seek(0)
        file.Read([back, count, struct], status)
        assert status.Get_count(struct) == count
        again = bytearray(len(packed))
        struct.Pack_external("external32", back, again, 0)
        assert again == packed
        file.Close()

    simulate(1, main)
    assert len(path.read_bytes()) > at


def test_sizes_in_external32():
    def main(rank: Rank) -> list[int]:
        file = MPI.File.Open(MPI.COMM_SELF, "/dev/null", MPI.MODE_RDWR)
        file.Set_view(0, MPI.LONG, MPI.LONG, "external32")
        vector = MPI.LONG.Create_vector(2, 1, 3).Commit()
        bytewise = MPI.LONG.Create_hvector(2, 1, 100).Commit()
        found = [file.Get_type_extent(t) for t in (MPI.LONG, MPI.INT, vector, bytewise)]
        found.append(file.Get_byte_offset(3))
        file.Close()
        return found

    assert simulate(1, main) == [[4, 4, 16, 104, 12]]


def test_a_cut_off_read_of_external32_stores_what_is_there(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0]))

    def main(rank: Rank) -> tuple[list[int], int, int]:
        file = MPI.File.Open(MPI.COMM_SELF, path)
        file.Set_view(0, MPI.LONG, MPI.LONG, "external32")
        data, status = np.full(5, -1, "l"), MPI.Status()
        file.Read(data, status)
        position = file.Get_position()
        file.Close()
        return data.tolist(), status.Get_count(MPI.LONG), position

    assert simulate(1, main) == [([1, 2, 3, -1, -1], 3, 3)]
