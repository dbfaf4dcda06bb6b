"""The buffers that a process gives to a collective or one-sided call."""

from __future__ import annotations

import numpy as np
import pytest

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.buffers.memory import IN_PLACE
from pysmpi.mpi.buffers.spellings import EMPTY, Blocks
from pysmpi.mpi.collective import arguments as a
from pysmpi.mpi.collective.arguments import RankPosition
from pysmpi.mpi.datatypes import datatypes as d

ROOT, OTHER = RankPosition(1, 3), RankPosition(0, 3)
REMOTE = RankPosition(0, 3, inter=True)
BAD = object()


def frozen(n=3):
    array = np.zeros(n)
    array.flags.writeable = False
    return array


def test_broadcast_reads_at_the_root_and_writes_elsewhere():
    assert a.broadcast(frozen(), 1, ROOT).count == 3
    with pytest.raises(BufferError):
        a.broadcast(frozen(), 1, OTHER)
    assert a.broadcast(frozen(), c.ROOT, REMOTE).count == 3
    assert a.broadcast(BAD, c.PROC_NULL, REMOTE) is EMPTY
    with pytest.raises(BufferError):
        a.broadcast(frozen(), 2, REMOTE)


@pytest.mark.parametrize("v", [False, True])
def test_gather(v):
    buffers = a.gather(v, frozen(2), np.zeros(6), 1, ROOT)
    assert (buffers.send.count, len(buffers.receive), buffers.receive.count) == (2, 3, 2)
    buffers = a.gather(v, frozen(2), BAD, 1, OTHER)
    assert buffers.send.count == 2 and buffers.receive.nbytes == 0
    for in_place in (IN_PLACE, None):
        assert a.gather(v, in_place, np.zeros(6), 1, ROOT).in_place
    assert a.gather(v, BAD, np.zeros(6), c.ROOT, REMOTE).receive.count == 2
    assert a.gather(v, BAD, BAD, c.PROC_NULL, REMOTE).receive.nbytes == 0
    assert a.gather(v, frozen(2), BAD, 0, REMOTE).send.count == 2


@pytest.mark.parametrize("v", [False, True])
def test_scatter(v):
    buffers = a.scatter(v, frozen(6), np.zeros(2), 1, ROOT)
    assert (buffers.send.count, buffers.receive.count) == (2, 2)
    assert a.scatter(v, frozen(6), IN_PLACE, 1, ROOT).in_place
    assert a.scatter(v, BAD, np.zeros(2), 1, OTHER).receive.count == 2
    assert a.scatter(v, frozen(6), BAD, c.ROOT, REMOTE).receive is EMPTY


@pytest.mark.parametrize("v", [False, True])
def test_all_to_all(v):
    buffers = a.alltoall(v, frozen(6), np.zeros(6), OTHER)
    assert isinstance(buffers.send, Blocks) and buffers.send.count == buffers.receive.count == 2
    assert a.alltoall(v, IN_PLACE, np.zeros(6), OTHER).in_place
    assert a.allgather(v, frozen(2), np.zeros(6), OTHER).send.count == 2
    assert a.allgather(v, IN_PLACE, np.zeros(6), OTHER).in_place
    assert len(a.neighbor_alltoall(v, frozen(4), np.zeros(6), 3, 2).send) == 2
    assert len(a.neighbor_allgather(v, frozen(4), np.zeros(6), 3).receive) == 3


def test_alltoallw():
    spec = [np.zeros(3), [d.DOUBLE] * 3]
    assert len(a.alltoallw(spec, spec, OTHER).send) == 3
    assert a.alltoallw(IN_PLACE, spec, OTHER).in_place
    assert len(a.neighbor_alltoallw([np.zeros(2), [d.DOUBLE] * 2], spec, 3, 2).send) == 2


def test_reductions_need_equal_buffers():
    assert a.reduce(frozen(), np.zeros(3), 1, ROOT).receive.count == 3
    assert a.reduce(frozen(), BAD, 1, OTHER).receive is EMPTY
    assert a.reduce(IN_PLACE, np.zeros(3), 1, ROOT).in_place
    assert a.allreduce(IN_PLACE, np.zeros(3), OTHER).in_place
    assert a.scan(IN_PLACE, np.zeros(3)).in_place
    for call in (
        lambda s, r: a.reduce(s, r, 1, ROOT),
        lambda s, r: a.allreduce(s, r, OTHER),
        a.scan,
    ):
        assert call(frozen(), np.zeros(3)).send.count == 3
        with pytest.raises(ValueError):
            call(frozen(), np.zeros(4))
        with pytest.raises(ValueError):
            call(frozen(), np.zeros(3, "i8"))


def test_reduce_scatter():
    assert a.reduce_scatter_block(frozen(6), np.zeros(2), OTHER).receive.count == 2
    assert a.reduce_scatter_block(IN_PLACE, np.zeros(6), OTHER).receive.count == 2
    with pytest.raises(ValueError):
        a.reduce_scatter_block(frozen(6), np.zeros(3), OTHER)
    buffers = a.reduce_scatter(frozen(6), np.zeros(2), OTHER)
    assert a.reduce_scatter_counts(buffers, [2, 3, 1], OTHER) == [2, 3, 1]
    for counts in ([2, 3], [2, 3, 2], [1, 4, 1]):
        with pytest.raises(ValueError):
            a.reduce_scatter_counts(buffers, counts, OTHER)
    in_place = a.reduce_scatter(IN_PLACE, np.zeros(6), OTHER)
    assert a.reduce_scatter_counts(in_place, (1, 2, 3), OTHER) == [1, 2, 3]
    with pytest.raises(ValueError):
        a.reduce_scatter_counts(in_place, [1, 2, 2], OTHER)


def test_one_sided_targets():
    for target, expected in ((None, (0, 3)), (4, (4, 3)), ([4], (4, 3)), ((4, 2), (4, 2))):
        _, found = a.one_sided(frozen(), False, 0, target)
        assert (found.displacement, found.count, found.datatype) == (*expected, d.DOUBLE)
    _, found = a.one_sided(frozen(), False, 0, (4, 2, "i"))
    assert found.datatype == d.INT
    for wrong in ((1, 2, d.INT, 3), {1: 2}):
        with pytest.raises(ValueError):
            a.one_sided(frozen(), False, 0, wrong)
    with pytest.raises(BufferError):
        a.one_sided(frozen(), True, 0, None)
    message, found = a.one_sided([BAD, d.INT], True, c.PROC_NULL, 3)
    assert message is EMPTY and found == a.WindowTarget(3, 0, d.INT)


def test_single_elements():
    one, two = (a.reduction(np.zeros(n), False) for n in (1, 2))
    other = a.reduction(np.zeros(1, "i4"), False)
    a.single({"origin": one, "result": one}, 0)
    a.single({"origin": two}, c.PROC_NULL)
    for wrong in ({"origin": one, "result": two}, {"origin": one, "compare": other}):
        with pytest.raises(ValueError):
            a.single(wrong, 0)
