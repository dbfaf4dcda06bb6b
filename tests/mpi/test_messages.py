"""The spellings of a message, and moving its data."""

from __future__ import annotations

import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import simulate

from pysmpi.mpi import MPI
from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.buffers import memory as b
from pysmpi.mpi.buffers import spellings as m
from pysmpi.mpi.buffers.contiguous import contiguous
from pysmpi.mpi.datatypes import datatypes as d

DOUBLE, INT = d.DOUBLE, d.INT


def values():
    return np.arange(10.0)


@pytest.mark.parametrize(
    "spell, count, first",
    [
        (lambda a: a, 10, 0),
        (lambda a: [a, DOUBLE], 10, 0),
        (lambda a: (a, DOUBLE), 10, 0),
        (lambda a: [a, "d"], 10, 0),
        (lambda a: [a, None], 10, 0),
        (lambda a: [a, 4], 4, 0),
        (lambda a: [a, (4, 3)], 4, 3),
        (lambda a: [a, (None, 3)], 7, 3),
        (lambda a: [a, [4, None]], 4, 0),
        (lambda a: [a, 4, DOUBLE], 4, 0),
        (lambda a: [a, None, "f8"], 10, 0),
        (lambda a: [a, (4, 3), DOUBLE], 4, 3),
        (lambda a: [a, 4, 3, DOUBLE], 4, 3),
        (lambda a: [a, 0, 3, DOUBLE], 0, 3),
        (lambda a: [memoryview(a), DOUBLE], 10, 0),
        (lambda a: [array.array("d", a), 4], 4, 0),
        (lambda a: a.reshape(2, 5), 10, 0),
        (
            lambda a: [
                b.BOTTOM,
                4,
                DOUBLE.Create_hindexed([1], [b.Get_address(a)]).Create_resized(0, 8).Commit(),
            ],
            4,
            0,
        ),
    ],
)
def test_spellings(spell, count, first):
    a = values()
    message = m.send(spell(a))
    assert message.count == count
    assert np.array_equal(np.frombuffer(message.pack(), "d"), a[first : first + count])
    assert message.nbytes == 8 * count == len(message.snapshot())


@pytest.mark.parametrize(
    "spec, error",
    [
        (lambda a: [a, 1, 0, "d", None], ValueError),
        (lambda a: [a], ValueError),
        (lambda a: [a, (1, 2, 3)], ValueError),
        (lambda a: [a, (1, 2, 3), DOUBLE], ValueError),
        (lambda a: [a, "nonsense"], KeyError),
        (lambda a: [a, -1], ValueError),
        (lambda a: [a, 0, -1, "d"], ValueError),
        (lambda a: [a, 0, 11, "d"], ValueError),
        (lambda a: [None, 1, "d"], ValueError),
        (lambda a: [a, None, d.DATATYPE_NULL], ValueError),
        (lambda a: [a, 0, 1, d.DATATYPE_NULL], ValueError),
        (lambda a: [a, None, INT.Create_resized(0, -4).Commit()], ValueError),
        (lambda a: [a[:3], None, INT.Create_contiguous(4).Commit()], ValueError),
        (lambda a: 3, TypeError),
        (lambda a: None, TypeError),
        (lambda a: [[1, 2], 2, "d"], TypeError),
        (lambda a: [a, 1.5], TypeError),
        (lambda a: a[::2], BufferError),
        (lambda a: a.astype(">f8"), BufferError),
        (lambda a: np.zeros(2, "i4,f8"), KeyError),
    ],
)
def test_refusals(spec, error):
    with pytest.raises(error):
        m.send(spec(values()))


KINDS = st.sampled_from(
    (
        lambda: DOUBLE,
        lambda: INT,
        lambda: DOUBLE.Create_contiguous(3).Commit(),
        lambda: DOUBLE.Create_vector(2, 1, 3).Commit(),
        lambda: DOUBLE.Create_vector(2, 1, -3).Commit(),
        lambda: DOUBLE.Create_resized(-8, 24).Commit(),
        lambda: DOUBLE.Create_resized(0, -8).Commit(),
        lambda: DOUBLE.Create_vector(2, 1, 3),  # not committed
        lambda: DOUBLE.Create_contiguous(0).Commit(),
        lambda: DOUBLE.Create_hindexed([1, 2], [16, 0]).Commit(),
        lambda: d.DATATYPE_NULL,
        lambda: "d",
    )
)
COUNTS = st.one_of(
    st.none(), st.integers(-1, 12), st.booleans(), st.tuples(st.integers(0, 5), st.integers(0, 5))
)


@given(KINDS, COUNTS, st.booleans(), st.integers(0, 12), st.booleans())
def test_the_short_path_gives_the_message_of_the_general_one(kind, count, whole, size, writable):
    array = np.arange(float(size))
    datatype = kind()
    spec = [array, datatype] if whole else [array, count, datatype]
    short = contiguous(spec, writable)
    if short is None:
        return
    general = m._parse(spec, writable)
    assert (short.count, short.nbytes, short.origin) == (
        general.count,
        general.nbytes,
        general.origin,
    )
    assert short.datatype is general.datatype is datatype
    assert bytes(short.pack()) == bytes(general.pack())
    assert (short.data is None) == (general.data is None)
    array += 1  # both are the memory of the program
    assert bytes(short.pack()) == bytes(general.pack())


@pytest.mark.parametrize(
    "kind",
    [
        DOUBLE,
        DOUBLE.Create_contiguous(2).Commit(),
        DOUBLE.Create_vector(2, 1, 3).Commit(),
    ],
)
def test_the_common_spellings_take_the_short_path(kind):
    assert contiguous([values(), 2, kind], True) is not None


def mpi_error(call):
    with pytest.raises(MPIException) as caught:
        call()
    return caught.value.Get_error_class()


def test_errors_of_mpi():
    a = values()
    assert mpi_error(lambda: m.send([a, 1, d.DATATYPE_NULL])) == c.ERR_TYPE
    assert mpi_error(lambda: m.send([a, 1, DOUBLE.Create_vector(2, 1, 2)])) == c.ERR_TYPE
    assert mpi_error(lambda: m.send([a, 11, DOUBLE])) == c.ERR_BUFFER
    vector = DOUBLE.Create_vector(4, 1, 3).Commit()
    assert m.send([a, 1, vector]).nbytes == 32
    assert mpi_error(lambda: m.send([a, 2, vector])) == c.ERR_BUFFER
    with pytest.raises(BufferError):
        m.receive(b"abc")


def test_messages_may_reach_into_the_array_that_a_slice_belongs_to():
    a = values()
    assert np.array_equal(np.frombuffer(m.send([a[4:5], 3, DOUBLE]).pack(), "d"), [4, 5, 6])
    back = DOUBLE.Create_vector(3, 1, -2).Commit()
    assert np.array_equal(np.frombuffer(m.send([a[5:6], 1, back]).pack(), "d"), [5, 3, 1])
    with pytest.raises(MPIException):
        m.send([a[8:], 3, DOUBLE])


def test_a_receive_may_promise_more_room_than_there_is():
    a = np.zeros(4)
    message = m.receive([a, 100, DOUBLE])
    assert message.nbytes == 32
    assert m.copy_message(m.send(np.ones(2)), message) == 16
    assert np.array_equal(a, [1, 1, 0, 0])


def test_proc_null_messages_are_not_looked_at():
    assert m.send(object(), c.PROC_NULL).nbytes == 0
    assert m.receive(object(), c.PROC_NULL).count == 0


def test_data_of_a_message_is_the_memory_of_the_program():
    a, target = values(), np.zeros(10)
    message = m.send(a)
    a[0] = 42
    m.copy_message(message, m.receive(target))
    assert target[0] == 42
    kept = message.snapshot()
    a[0] = 1
    assert np.frombuffer(kept, "d")[0] == 42


layouts = st.sampled_from(
    (
        lambda: DOUBLE,
        lambda: DOUBLE.Create_vector(2, 1, 2),
        lambda: DOUBLE.Create_contiguous(2),
        lambda: DOUBLE.Create_indexed([1, 2], [3, 0]),
        lambda: DOUBLE.Create_resized(0, 24),
        lambda: DOUBLE.Create_subarray([2, 2], [2, 1], [0, 1]),
        lambda: DOUBLE.Create_indexed_block(1, [0, 3, 4, 7, 9, 11, 20, 22, 23]),
    )
)


@settings(deadline=None)
@given(layouts, layouts, st.integers(0, 5), st.integers(0, 5))
def test_copies_go_through_both_layouts(source, target, n, k):
    source, target = source().Dup().Commit(), target().Dup().Commit()
    memory = np.arange(200.0)
    room = np.full(200, -1.0)
    sent, received = m.send([memory, n, source]), m.receive([room, k, target])
    moved = m.copy_message(sent, received)
    assert moved == min(n * source.size, k * target.size)
    stream = np.frombuffer(bytes(sent.pack()), "d")[: moved // 8]
    layout = target._live().layout
    where = layout.plan(k).positions()[:moved:8] // 8 if k else np.array([], int)
    expected = np.full(200, -1.0)
    expected[where] = stream
    assert np.array_equal(room, expected)


@pytest.mark.parametrize("first", [0, 1, 4, 5, 8])
def test_a_column_is_copied_to_a_column_as_through_a_stream(first):
    column = DOUBLE.Create_vector(3, 1, 4).Commit()
    direct, through = np.arange(20.0), np.arange(20.0)
    moved = m.copy_message(m.send([direct, 1, column]), m.receive([direct[first:], 1, column]))
    m.receive([through[first:], 1, column]).unpack(bytes(m.send([through, 1, column]).pack()))
    assert moved == 24
    assert np.array_equal(direct, through)
    assert list(direct[first : first + 9 : 4]) == [0, 4, 8]


def test_blocks_of_equal_size():
    a = np.arange(12, dtype="i4")
    blocks = m.equal_blocks(a, True, 4)
    assert (blocks.count, blocks.nbytes, len(blocks)) == (3, 12, 4)
    assert bytes(blocks.block(2).pack()) == a[6:9].tobytes()
    assert m.equal_blocks([a, 2, INT], False, 4).block(3).pack().tolist() == list(a[6:8].tobytes())
    pair = INT.Create_vector(2, 1, 2).Create_resized(0, 12).Commit()
    spread = m.equal_blocks([a, 1, pair], False, 4)
    assert np.array_equal(np.frombuffer(spread.block(1).pack(), "i4"), [3, 5])
    with pytest.raises(ValueError):
        m.equal_blocks(a, False, 5)
    assert m.equal_blocks(object(), False, 3, c.PROC_NULL).nbytes == 0


@pytest.mark.parametrize(
    "spec, counts, displacements",
    [
        (lambda a: a, [4, 3, 3], [0, 4, 7]),
        (lambda a: [a, [1, 2, 3]], [1, 2, 3], [0, 1, 3]),
        (lambda a: [a, ([1, 2, 3], [5, 0, 2])], [1, 2, 3], [5, 0, 2]),
        (lambda a: [a, [1, 2, 3], [5, 0, 2], DOUBLE], [1, 2, 3], [5, 0, 2]),
        (lambda a: [a, 2], [2, 2, 2], [0, 2, 4]),
        (lambda a: [a, (2, 3), "d"], [2, 2, 2], [0, 3, 6]),
        (lambda a: [a, np.array([1, 2, 3]), None, DOUBLE], [1, 2, 3], [0, 1, 3]),
    ],
)
def test_vectors(spec, counts, displacements):
    a = values()
    blocks = m.vector(spec(a), False, 3)
    assert list(blocks.counts) == counts
    for i, (n, at) in enumerate(zip(counts, displacements)):
        assert np.array_equal(np.frombuffer(blocks.block(i).pack(), "d"), a[at : at + n])


def test_wrong_vectors():
    a = values()
    with pytest.raises(ValueError):
        m.vector([a, [1, 2], DOUBLE], False, 3)
    with pytest.raises(ValueError):
        m.vector([a, 1, 2, DOUBLE, 3], False, 3)
    assert mpi_error(lambda: m.vector([a, [1, -2, 3]], False, 3)) == c.ERR_COUNT
    assert mpi_error(lambda: m.vector([a, [4, 4, 4]], False, 3).block(2)) == c.ERR_BUFFER


def test_blocks_of_different_types():
    a = np.arange(4, dtype="i4")
    blocks = m.vector_w([a, ([1, 2], [8, 0]), [INT, INT]], True, 2)
    assert bytes(blocks.block(0).pack()) == a[2:3].tobytes()
    assert blocks.sizes() == [4, 8]
    whole = INT.Create_contiguous(4).Commit()
    assert m.vector_w([a, [whole, whole]], False, 2).block(1).nbytes == 16
    with pytest.raises(ValueError):
        m.vector_w([b.BOTTOM, [INT]], False, 1)
    with pytest.raises(TypeError):
        m.vector_w([a, ["i"]], False, 1)
    with pytest.raises(ValueError):
        m.vector_w([a, [1], [0], [INT], 3], False, 1)


def test_data_is_saved_only_if_the_sender_continues_before_the_match():
    saved = []

    def main(rank):
        engine = rank.engine
        if rank.index == 0:
            usual = engine.keep

            def keep(send):
                saved.append(send.tag)
                usual(send)

            engine.keep = keep
        comm = MPI.COMM_WORLD
        other = 1 - rank.index
        out, into = np.full(10, rank.index), np.empty(10, int)
        comm.Sendrecv(out, other, 1, into, other, 1)
        assert into.tolist() == [other] * 10
        if rank.index == 0:
            comm.Send(out, 1, 2)  # rank 1 receives this much later
            out[:] = 77
            comm.Barrier()
        else:
            comm.Barrier()
            comm.Recv(into, 0, 2)
            assert into.tolist() == [0] * 10

    simulate(2, main)
    assert saved == [2]
