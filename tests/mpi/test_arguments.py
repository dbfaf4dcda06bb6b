"""The buffers that a process gives to a collective or one-sided call."""

from __future__ import annotations

import numpy as np
import pytest

from pysmpi.api import run
from pysmpi.mpi.base import constants as c
from pysmpi.mpi.buffers.memory import IN_PLACE
from pysmpi.mpi.buffers.spellings import EMPTY, reduction
from pysmpi.mpi.collective import arguments as a
from pysmpi.mpi.datatypes import datatypes as d
from pysmpi.mpi.operators.operators import PREDEFINED
from pysmpi.mpi.rma.arguments import WindowTarget, one_sided, single

SUM = PREDEFINED["SUM"]
ROOT, OTHER = 1, 0
BAD = object()


def frozen(n=3):
    array = np.zeros(n)
    array.flags.writeable = False
    return array


def by(me, check, inter=False):
    """Let one of three ranks call `check(comm)`; with `inter`, comm has two ranks, three remote."""
    result = []

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if inter:
            half = comm.Split(comm.rank < 2)
            comm = half.Create_intercomm(0, comm, 2 if comm.rank < 2 else 0)
        if MPI.COMM_WORLD.rank == me:
            check(comm)
            result.append(True)

    run(main, nprocs=5 if inter else 3, compute="none")
    assert result


def test_broadcast_reads_at_the_root_and_writes_elsewhere():
    def at_root(comm):
        assert a.bcast(comm, frozen(), 1).message.count == 3

    def elsewhere(comm):
        with pytest.raises(BufferError):
            a.bcast(comm, frozen(), 1)

    def remote(comm):
        assert a.bcast(comm, frozen(), c.ROOT).message.count == 3
        assert a.bcast(comm, BAD, c.PROC_NULL).message is EMPTY
        with pytest.raises(BufferError):
            a.bcast(comm, frozen(), 2)

    by(ROOT, at_root)
    by(OTHER, elsewhere)
    by(0, remote, inter=True)


def test_gather():
    def at_root(comm):
        for v in (False, True):
            made = a.gather(comm, v, frozen(2), np.zeros(6), 1)
            assert (made.message.count, len(made.blocks), made.blocks.count) == (2, 3, 2)
            for in_place in (IN_PLACE, None):
                assert a.gather(comm, v, in_place, np.zeros(6), 1).call.in_place

    def elsewhere(comm):
        for v in (False, True):
            made = a.gather(comm, v, frozen(2), BAD, 1)
            assert made.message.count == 2 and made.blocks is None

    def remote(comm):
        for v in (False, True):
            made = a.gather(comm, v, BAD, np.zeros(6), c.ROOT)
            assert made.blocks.count == 2 and made.message is EMPTY
            made = a.gather(comm, v, BAD, BAD, c.PROC_NULL)
            assert made.blocks is None and made.message is EMPTY
            assert a.gather(comm, v, frozen(2), BAD, 0).message.count == 2

    by(ROOT, at_root)
    by(OTHER, elsewhere)
    by(0, remote, inter=True)


def test_scatter():
    def at_root(comm):
        for v in (False, True):
            made = a.scatter(comm, v, frozen(6), np.zeros(2), 1)
            assert (made.blocks.count, made.message.count) == (2, 2)
            made = a.scatter(comm, v, frozen(6), IN_PLACE, 1)
            assert made.call.in_place and made.message is None

    def elsewhere(comm):
        for v in (False, True):
            made = a.scatter(comm, v, BAD, np.zeros(2), 1)
            assert made.message.count == 2 and made.blocks is None

    def remote(comm):
        for v in (False, True):
            made = a.scatter(comm, v, frozen(6), BAD, c.ROOT)
            assert made.blocks.count == 2 and made.message is None
            made = a.scatter(comm, v, BAD, BAD, c.PROC_NULL)
            assert made.blocks is None and made.message is None

    by(ROOT, at_root)
    by(OTHER, elsewhere)
    by(0, remote, inter=True)


def test_all_to_all():
    def check(comm):
        for v in (False, True):
            made = a.alltoall(comm, v, frozen(6), np.zeros(6))
            assert made.outgoing.count == made.incoming.count == 2
            made = a.alltoall(comm, v, IN_PLACE, np.zeros(6))
            assert made.outgoing is None and made.call.in_place
            assert a.allgather(comm, v, frozen(2), np.zeros(6)).message.count == 2
            assert a.allgather(comm, v, IN_PLACE, np.zeros(6)).call.in_place
        spec = [np.zeros(3), [d.DOUBLE] * 3]
        assert len(a.alltoallw(comm, spec, spec).outgoing) == 3
        assert a.alltoallw(comm, IN_PLACE, spec).call.in_place

    by(OTHER, check)


def test_reductions_need_equal_buffers():
    def check_pairs(calls):
        for call in calls:
            assert call(frozen(), np.zeros(3)).message.count == 3
            with pytest.raises(ValueError):
                call(frozen(), np.zeros(4))
            with pytest.raises(ValueError):
                call(frozen(), np.zeros(3, "i8"))

    def at_root(comm):
        assert a.reduce(comm, frozen(), np.zeros(3), SUM, 1).target.count == 3
        assert a.reduce(comm, IN_PLACE, np.zeros(3), SUM, 1).call.in_place
        check_pairs([lambda s, r: a.reduce(comm, s, r, SUM, 1)])

    def elsewhere(comm):
        assert a.reduce(comm, frozen(), BAD, SUM, 1).target is None
        for made in (
            a.allreduce(comm, IN_PLACE, np.zeros(3), SUM),
            a.scan(comm, IN_PLACE, np.zeros(3), SUM, False),
        ):
            assert made.call.in_place and made.message is made.target
        check_pairs(
            [
                lambda s, r: a.allreduce(comm, s, r, SUM),
                lambda s, r: a.scan(comm, s, r, SUM, True),
            ]
        )

    def remote(comm):
        made = a.reduce(comm, BAD, np.zeros(3), SUM, c.ROOT)
        assert made.message is None and made.target.count == 3
        made = a.reduce(comm, BAD, BAD, SUM, c.PROC_NULL)
        assert made.message is None and made.target is None
        assert a.reduce(comm, frozen(), BAD, SUM, 0).target is None

    by(ROOT, at_root)
    by(OTHER, elsewhere)
    by(0, remote, inter=True)


def test_reduce_scatter():
    def check(comm):
        made = a.reduce_scatter_block(comm, frozen(6), np.zeros(2), SUM)
        assert (made.target.count, made.start, made.stop) == (2, 0, 16)
        made = a.reduce_scatter_block(comm, IN_PLACE, np.zeros(6), SUM)
        assert (made.target.count, made.call.count) == (6, 2)
        with pytest.raises(ValueError):
            a.reduce_scatter_block(comm, frozen(6), np.zeros(3), SUM)
        made = a.reduce_scatter(comm, frozen(6), np.zeros(2), [2, 3, 1], SUM)
        assert (made.call.recv_counts, made.start, made.stop) == ((2, 3, 1), 0, 16)
        for counts in ([2, 3], [2, 3, 2], [1, 4, 1]):
            with pytest.raises(ValueError):
                a.reduce_scatter(comm, frozen(6), np.zeros(2), counts, SUM)
        made = a.reduce_scatter(comm, IN_PLACE, np.zeros(6), (1, 2, 3), SUM)
        assert made.call.recv_counts == (1, 2, 3) and made.call.in_place
        with pytest.raises(ValueError):
            a.reduce_scatter(comm, IN_PLACE, np.zeros(6), [1, 2, 2], SUM)

    by(OTHER, check)


def test_one_sided_targets():
    for target, expected in ((None, (0, 3)), (4, (4, 3)), ([4], (4, 3)), ((4, 2), (4, 2))):
        _, region = one_sided(frozen(), False, 0, target)
        assert (region.displacement, region.count, region.datatype) == (*expected, d.DOUBLE)
    _, region = one_sided(frozen(), False, 0, (4, 2, "i"))
    assert region.datatype == d.INT
    for wrong in ((1, 2, d.INT, 3), {1: 2}):
        with pytest.raises(ValueError):
            one_sided(frozen(), False, 0, wrong)
    with pytest.raises(BufferError):
        one_sided(frozen(), True, 0, None)
    message, region = one_sided([BAD, d.INT], True, c.PROC_NULL, 3)
    assert message is EMPTY and region == WindowTarget(3, 0, d.INT)


def test_single_elements():
    one, two = (reduction(np.zeros(n), False) for n in (1, 2))
    other = reduction(np.zeros(1, "i4"), False)
    single({"origin": one, "result": one}, 0)
    single({"origin": two}, c.PROC_NULL)
    for wrong in ({"origin": one, "result": two}, {"origin": one, "compare": other}):
        with pytest.raises(ValueError):
            single(wrong, 0)
