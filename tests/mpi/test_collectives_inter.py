"""Collective calls between the two groups of an intercommunicator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from forms import FORMS, perform
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import simulate

from pysmpi.collectives.selection import Selection
from pysmpi.mpi.base.constants import ERR_ROOT, PROC_NULL, ROOT
from pysmpi.mpi.base.exceptions import Exception as MpiError
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.memory import IN_PLACE
from pysmpi.mpi.communicators.comm import Comm
from pysmpi.mpi.datatypes.datatypes import PREDEFINED as TYPES
from pysmpi.mpi.groups.communicator import Communicator, connect, new_communicator
from pysmpi.mpi.operators.operators import PREDEFINED as OPS
from pysmpi.mpi.processes import environment

SIDES: StateSlot[Universe, tuple[Communicator, Communicator]] = StateSlot(Universe)


def two_groups(rank: Any, low: int) -> tuple[Any, int, int, int]:
    """An intercommunicator of the first `low` ranks and the others.

    Returns it, with the rank in the own group and the sizes of both groups.
    """
    universe = rank.universe
    made = SIDES.peek(universe)
    if made is None:
        size = rank.world.size
        made = new_communicator(universe, range(low)), new_communicator(universe, range(low, size))
        connect(*made)
        SIDES.put(universe, made)
    mine = made[0] if rank.pid < low else made[1]
    return Comm._wrap(mine), mine.rank_of(rank.pid), mine.size, mine.remote.size


def data(pid: int, count: int) -> np.ndarray:
    """The contribution of a process."""
    return np.arange(count) + 1000 * pid


sizes = st.tuples(st.integers(1, 4), st.integers(1, 4))
counts = st.sampled_from((0, 1, 3, 700))


@settings(max_examples=25, deadline=None)
@given(sizes, counts, st.data(), st.sampled_from(FORMS), st.booleans())
def test_rooted(groups: Any, count: int, draw: Any, form: str, from_low: bool) -> None:
    low, high = groups
    root = draw.draw(st.integers(0, (low if from_low else high) - 1))
    delays = draw.draw(st.lists(st.sampled_from((0.0, 1e-4)), min_size=8, max_size=8))

    def main(rank: Any) -> None:
        comm, me, size, remote = two_groups(rank, low)
        rank.sleep(delays[rank.pid])
        first_remote = 0 if rank.pid >= low else low
        with_root = (rank.pid < low) == from_low
        where = (ROOT if me == root else PROC_NULL) if with_root else root
        here = where == ROOT
        idle = where == PROC_NULL
        root_pid = first_remote + root if not with_root else -1
        mine = data(rank.pid, count)

        buffer = mine.copy() if with_root else np.full(count, -1)
        perform(comm, form, "Bcast", buffer, where)
        if not with_root:
            np.testing.assert_array_equal(buffer, data(root_pid, count))

        for name in ("Gather", "Gatherv"):
            send = mine.copy()
            receive = np.full(count * remote, -1) if here else None
            perform(comm, form, name, None if with_root else send, receive, where)
            send[:] = -5
            if here:
                pids = range(first_remote, first_remote + remote)
                expected = np.concatenate([data(pid, count) for pid in pids])
                np.testing.assert_array_equal(receive, expected)

        for name in ("Scatter", "Scatterv"):
            send = data(rank.pid, count * remote) if here else None
            got = np.full(count, -1)
            perform(comm, form, name, send, None if with_root else got, where)
            if send is not None:
                send[:] = -5
            if not with_root:
                whole = data(root_pid, count * size)
                np.testing.assert_array_equal(got, whole[me * count : (me + 1) * count])

        total = np.full(count, -1)
        send = mine.copy()
        if with_root:
            perform(comm, form, "Reduce", None, None if idle else total, OPS["SUM"], where)
        else:
            perform(comm, form, "Reduce", send, None, OPS["SUM"], where)
            send[:] = -5
        if here:
            pids = range(first_remote, first_remote + remote)
            np.testing.assert_array_equal(total, sum(data(pid, count) for pid in pids))

    simulate(low + high, main)


@settings(max_examples=25, deadline=None)
@given(sizes, counts, st.data(), st.sampled_from(FORMS))
def test_all_to_all(groups: Any, count: int, draw: Any, form: str) -> None:
    low, high = groups
    delays = draw.draw(st.lists(st.sampled_from((0.0, 1e-4)), min_size=8, max_size=8))

    def main(rank: Any) -> None:
        comm, me, size, remote = two_groups(rank, low)
        rank.sleep(delays[rank.pid])
        first_remote = 0 if rank.pid >= low else low
        pids = range(first_remote, first_remote + remote)
        perform(comm, form, "Barrier")
        assert rank.now() >= max(delays[: low + high])

        for name in ("Allgather", "Allgatherv"):
            send = data(rank.pid, count)
            receive = np.full(count * remote, -1)
            perform(comm, form, name, send, receive)
            send[:] = -5
            expected = np.concatenate([data(pid, count) for pid in pids])
            np.testing.assert_array_equal(receive, expected)

        for name in ("Alltoall", "Alltoallv", "Alltoallw"):
            send = data(rank.pid, count * remote)
            receive = np.full(count * remote, -1)
            specs: list[Any] = [send, receive]
            if name == "Alltoallw":
                steps = [i * count * 8 for i in range(remote)]
                types = [TYPES["LONG"]] * remote
                specs = [[b, ([count] * remote, steps), types] for b in specs]
            perform(comm, form, name, *specs)
            send[:] = -5
            expected = np.concatenate(
                [data(pid, count * size)[me * count : (me + 1) * count] for pid in pids]
            )
            np.testing.assert_array_equal(receive, expected)

        total = np.full(count, -1)
        send = data(rank.pid, count)
        perform(comm, form, "Allreduce", send, total)
        send[:] = -5
        np.testing.assert_array_equal(total, sum(data(pid, count) for pid in pids))

        # Both groups contribute vectors of one length, which each cuts in its own way.
        length = count * size * remote
        part = count * remote
        for name in ("Reduce_scatter_block", "Reduce_scatter"):
            send = data(rank.pid, length)
            receive = np.full(part, -1)
            more = [[part] * size] if name == "Reduce_scatter" else []
            perform(comm, form, name, send, receive, *more)
            send[:] = -5
            whole = sum(data(pid, length) for pid in pids)
            np.testing.assert_array_equal(receive, whole[me * part : (me + 1) * part])

    simulate(low + high, main)


def join(x: str, y: str) -> str:
    """Not commutative."""
    return x + y


@settings(max_examples=15, deadline=None)
@given(sizes, st.data(), st.booleans(), st.booleans())
def test_objects(groups: Any, draw: Any, from_low: bool, fast: bool) -> None:
    low, high = groups
    root = draw.draw(st.integers(0, (low if from_low else high) - 1))

    def main(rank: Any) -> None:
        environment.of_rank().options.fast_reduce = fast
        comm, me, size, remote = two_groups(rank, low)
        first_remote = 0 if rank.pid >= low else low
        pids = range(first_remote, first_remote + remote)
        with_root = (rank.pid < low) == from_low
        where = (ROOT if me == root else PROC_NULL) if with_root else root
        here = where == ROOT
        mine = f"<{rank.pid}>"
        theirs = [f"<{pid}>" for pid in pids]
        comm.barrier()
        root_text = None if with_root else f"<{first_remote + root}>"
        assert comm.bcast(mine, where) == root_text
        assert comm.gather(mine, where) == (theirs if here else None)
        items = [f"for {i}" for i in range(remote)] if here else None
        assert comm.scatter(items, where) == (None if with_root else f"for {me}")
        assert comm.allgather(mine) == theirs
        assert comm.alltoall([f"{mine}{i}" for i in range(remote)]) == [
            f"{text}{me}" for text in theirs
        ]
        assert comm.allreduce(mine, join) == "".join(theirs)
        assert comm.reduce(mine, join, where) == ("".join(theirs) if here else None)

    simulate(low + high, main, Selection("ompi"))


def test_wrong_arguments_are_refused() -> None:
    def main(rank: Any) -> None:
        comm, *_ = two_groups(rank, 1)
        one = np.zeros(1)
        for root in (-2, 3, 1):
            with pytest.raises(MpiError) as caught:
                comm.Bcast(one, root)
            assert caught.value.Get_error_class() == ERR_ROOT
        with pytest.raises(ValueError):
            comm.Allreduce(IN_PLACE, one)
        with pytest.raises(TypeError):
            comm.Allgather(None, one)

    simulate(2, main)
