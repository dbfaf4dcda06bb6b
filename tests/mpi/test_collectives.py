"""Collective calls: one body for all operations, forms and algorithms, against numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from forms import FORMS
from forms import perform as make
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulated import Deadlock, simulate

from pysmpi.collectives import registry
from pysmpi.collectives.selection import Selection
from pysmpi.mpi.base.constants import ERR_COMM, ERR_OP, ERR_ROOT, ERR_TRUNCATE
from pysmpi.mpi.base.exceptions import Exception as MpiError
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.buffers.memory import IN_PLACE
from pysmpi.mpi.communicators.intracomm import COMM_WORLD
from pysmpi.mpi.datatypes.datatypes import PREDEFINED as TYPES
from pysmpi.mpi.operators.operators import OP_NULL, Op
from pysmpi.mpi.operators.operators import PREDEFINED as OPS

GARBAGE = 99
DOUBLE = TYPES["DOUBLE"]


@dataclass
class Case:
    """One call: the common arguments of all ranks, and the arguments of each rank."""

    size: int
    count: int
    root: int
    in_place: bool
    dtype: str
    form: str
    op: Any
    counts: list[int]
    delays: list[float]

    def data(self, rank: int, count: int) -> np.ndarray:
        """The contribution of a rank: small, so that no product overflows."""
        return (np.arange(count) * 7 + rank * 3 + 1).astype(self.dtype) % 5

    def all_data(self, count: int) -> list[np.ndarray]:
        """The contributions of all."""
        return [self.data(rank, count) for rank in range(self.size)]

    def empty(self, count: int) -> np.ndarray:
        """A buffer to receive in."""
        return np.full(count, GARBAGE, self.dtype)

    def displacements(self) -> list[int]:
        """The beginnings of blocks of `counts`, with a gap of one before each."""
        starts, at = [], 0
        for count in self.counts:
            starts.append(at + 1)
            at += count + 1
        return starts

    def fold(self, items: list[np.ndarray]) -> np.ndarray:
        """The items combined in order."""
        result = items[0]
        for item in items[1:]:
            result = self.op.combine(result, item)
        return result


@dataclass(frozen=True)
class Reducer:
    """An operation of MPI and its effect on arrays."""

    name: str
    op: Any
    combine: Any


def multiply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Products of 2 by 2 matrices modulo 251: associative, not commutative."""
    a, b = x.reshape(-1, 2, 2), y.reshape(-1, 2, 2)
    return (a @ b % 251).astype(x.dtype).reshape(-1)


def _matrix_function(inbuf: Any, inoutbuf: Any, datatype: Any) -> None:
    dtype = {"MPI_INT": "i4", "MPI_LONG": "i8", "MPI_DOUBLE": "f8", "MPI_INT64_T": "i8"}
    kind = dtype.get(datatype.Get_name(), "i8")
    a, b = np.frombuffer(inbuf, kind), np.frombuffer(inoutbuf, kind)
    b[:] = multiply(a, b)


REDUCERS = (
    Reducer("sum", OPS["SUM"], lambda x, y: x + y),
    Reducer("max", OPS["MAX"], np.maximum),
    Reducer("matrices", None, multiply),
)


def perform(case: Case, name: str, *arguments: Any) -> None:
    """Make a call in the form of a case, once: some calls change their arguments."""
    make(COMM_WORLD, case.form, name, *arguments, starts=1)


def spoil(buffer: np.ndarray) -> None:
    """The program uses its buffer for something else as soon as it may."""
    buffer[...] = GARBAGE


# Each function makes one call and returns (the result of the rank, the expected result).


def bcast(case: Case, me: int) -> Any:
    buffer = case.data(me, case.count) if me == case.root else case.empty(case.count)
    perform(case, "Bcast", buffer, case.root)
    got = buffer.copy()
    spoil(buffer)
    return got, case.data(case.root, case.count)


def gather(case: Case, me: int) -> Any:
    blocks = case.all_data(case.count)
    send = blocks[me].copy()
    receive = None
    if me == case.root:
        receive = case.empty(case.size * case.count)
        if case.in_place:
            receive[me * case.count : (me + 1) * case.count] = send
    given_send = IN_PLACE if case.in_place and me == case.root else send
    perform(case, "Gather", given_send, receive, case.root)
    spoil(send)
    return (receive, np.concatenate(blocks)) if me == case.root else (None, None)


def gatherv(case: Case, me: int) -> Any:
    blocks = [case.data(rank, case.counts[rank]) for rank in range(case.size)]
    starts = case.displacements()
    send = blocks[me].copy()
    receive = expected = None
    if me == case.root:
        total = sum(case.counts) + case.size + 1
        receive, expected = case.empty(total), case.empty(total)
        for rank, start in enumerate(starts):
            expected[start : start + case.counts[rank]] = blocks[rank]
        if case.in_place:
            receive[starts[me] : starts[me] + case.counts[me]] = send
        receive_spec = [receive, (case.counts, starts)]
    else:
        receive_spec = None
    given_send = IN_PLACE if case.in_place and me == case.root else send
    perform(case, "Gatherv", given_send, receive_spec, case.root)
    spoil(send)
    return receive, expected


def scatter(case: Case, me: int) -> Any:
    whole = case.data(case.root, case.size * case.count)
    mine = whole[me * case.count : (me + 1) * case.count].copy()
    send = whole.copy() if me == case.root else None
    receive = case.empty(case.count)
    if case.in_place and me == case.root:
        perform(case, "Scatter", send, IN_PLACE, case.root)
        receive = mine
    else:
        perform(case, "Scatter", send, receive, case.root)
    if send is not None:
        spoil(send)
    return receive, mine


def scatterv(case: Case, me: int) -> Any:
    starts = case.displacements()
    whole = case.data(case.root, sum(case.counts) + case.size + 1)
    mine = whole[starts[me] : starts[me] + case.counts[me]].copy()
    send = whole.copy()
    spec = [send, (case.counts, starts)] if me == case.root else None
    receive = case.empty(case.counts[me])
    if case.in_place and me == case.root:
        perform(case, "Scatterv", spec, IN_PLACE, case.root)
        receive = mine
    else:
        perform(case, "Scatterv", spec, receive, case.root)
    spoil(send)
    return receive, mine


def allgather(case: Case, me: int) -> Any:
    blocks = case.all_data(case.count)
    send = blocks[me].copy()
    receive = case.empty(case.size * case.count)
    if case.in_place:
        receive[me * case.count : (me + 1) * case.count] = send
    perform(case, "Allgather", IN_PLACE if case.in_place else send, receive)
    spoil(send)
    got = receive.copy()
    spoil(receive)
    return got, np.concatenate(blocks)


def allgatherv(case: Case, me: int) -> Any:
    blocks = [case.data(rank, case.counts[rank]) for rank in range(case.size)]
    gaps = case.count % 2
    starts = case.displacements() if gaps else list(np.cumsum([0, *case.counts[:-1]]))
    total = sum(case.counts) + (case.size + 1) * gaps
    receive, expected = case.empty(total), case.empty(total)
    for rank, start in enumerate(starts):
        expected[start : start + case.counts[rank]] = blocks[rank]
    send = blocks[me].copy()
    if case.in_place:
        receive[starts[me] : starts[me] + case.counts[me]] = send
    spec = [receive, (case.counts, starts)]
    perform(case, "Allgatherv", IN_PLACE if case.in_place else send, spec)
    spoil(send)
    got = receive.copy()
    spoil(receive)
    return got, expected


def alltoall(case: Case, me: int) -> Any:
    wholes = case.all_data(case.size * case.count)
    send = wholes[me].copy()
    receive = send.copy() if case.in_place else case.empty(case.size * case.count)
    perform(case, "Alltoall", IN_PLACE if case.in_place else send, receive)
    spoil(send)
    got = receive.copy()
    spoil(receive)
    blocks = [whole.reshape(case.size, case.count)[me] for whole in wholes]
    return got, np.concatenate(blocks)


def _pair_counts(case: Case) -> np.ndarray:
    """The counts from each rank to each: symmetric, as IN_PLACE needs it."""
    counts = np.array(case.counts)
    return (counts[:, None] + counts[None, :]) % 7


def alltoallv(case: Case, me: int) -> Any:
    return _alltoall_of_counts(case, me, "Alltoallv")


def alltoallw(case: Case, me: int) -> Any:
    return _alltoall_of_counts(case, me, "Alltoallw")


def _alltoall_of_counts(case: Case, me: int, name: str) -> Any:
    counts = _pair_counts(case)
    starts = np.cumsum(counts, axis=1) - counts
    send = case.data(me, counts[me].sum())
    total = counts[:, me].sum()
    receive = send.copy() if case.in_place else case.empty(total)
    begin = np.cumsum(counts[:, me]) - counts[:, me]
    if name == "Alltoallv":
        send_spec: Any = [send, (counts[me].tolist(), starts[me].tolist())]
        receive_spec: Any = [receive, (counts[:, me].tolist(), begin.tolist())]
    else:
        size = np.dtype(case.dtype).itemsize
        kind = {"i4": "INT", "i8": "LONG", "f8": "DOUBLE"}[case.dtype]
        types = [TYPES[kind]] * case.size
        send_spec = [send, (counts[me].tolist(), (starts[me] * size).tolist()), types]
        receive_spec = [receive, (counts[:, me].tolist(), (begin * size).tolist()), types]
    perform(case, name, IN_PLACE if case.in_place else send_spec, receive_spec)
    expected = []
    for rank in range(case.size):
        whole = case.data(rank, counts[rank].sum())
        start = starts[rank, me]
        expected.append(whole[start : start + counts[rank, me]])
    spoil(send)
    got = receive.copy()
    spoil(receive)
    return got, np.concatenate(expected)


def _operation(case: Case) -> Any:
    """The operation; a user's function is made by each rank."""
    return case.op.op or Op.Create(_matrix_function, False)


def _reduction_count(case: Case) -> int:
    """A count that the matrices of the user's function fill."""
    return case.count * 4


def reduce(case: Case, me: int) -> Any:
    count = _reduction_count(case)
    items = case.all_data(count)
    send = items[me].copy()
    receive = None
    if me == case.root:
        receive = send.copy() if case.in_place else case.empty(count)
    given_send = IN_PLACE if case.in_place and me == case.root else send
    perform(case, "Reduce", given_send, receive, _operation(case), case.root)
    spoil(send)
    return (receive, case.fold(items)) if me == case.root else (None, None)


def allreduce(case: Case, me: int) -> Any:
    count = _reduction_count(case)
    items = case.all_data(count)
    send = items[me].copy()
    receive = send.copy() if case.in_place else case.empty(count)
    perform(case, "Allreduce", IN_PLACE if case.in_place else send, receive, _operation(case))
    spoil(send)
    got = receive.copy()
    spoil(receive)
    return got, case.fold(items)


def reduce_scatter_block(case: Case, me: int) -> Any:
    count = _reduction_count(case)
    items = case.all_data(count * case.size)
    send = items[me].copy()
    op = _operation(case)
    if case.in_place:
        perform(case, "Reduce_scatter_block", IN_PLACE, send, op)
        receive = send[:count].copy()
    else:
        receive = case.empty(count)
        perform(case, "Reduce_scatter_block", send, receive, op)
    spoil(send)
    return receive, case.fold(items)[me * count : (me + 1) * count]


def reduce_scatter(case: Case, me: int) -> Any:
    counts = [count * 4 for count in case.counts]
    items = case.all_data(sum(counts))
    send = items[me].copy()
    op = _operation(case)
    start = sum(counts[:me])
    if case.in_place:
        perform(case, "Reduce_scatter", IN_PLACE, send, counts, op)
        receive = send[: counts[me]].copy()
    else:
        receive = case.empty(counts[me])
        perform(case, "Reduce_scatter", send, receive, None if case.count % 2 else counts, op)
    spoil(send)
    return receive, case.fold(items)[start : start + counts[me]]


def scan(case: Case, me: int) -> Any:
    return _scanned(case, me, "Scan")


def exscan(case: Case, me: int) -> Any:
    return _scanned(case, me, "Exscan")


def _scanned(case: Case, me: int, name: str) -> Any:
    count = _reduction_count(case)
    items = case.all_data(count)
    send = items[me].copy()
    receive = send.copy() if case.in_place else case.empty(count)
    perform(case, name, IN_PLACE if case.in_place else send, receive, _operation(case))
    spoil(send)
    got = receive.copy()
    spoil(receive)
    if name == "Scan":
        return got, case.fold(items[: me + 1])
    return (got, case.fold(items[:me])) if me else (None, None)


def barrier(case: Case, me: int) -> Any:
    entered = current().now()
    perform(case, "Barrier")
    left = current().now()
    return np.array(left >= max(case.delays) and left >= entered), np.array(True)


BODIES = {
    body.__name__: body
    for body in (
        barrier, bcast, gather, gatherv, scatter, scatterv, allgather, allgatherv, alltoall,
        alltoallv, alltoallw, reduce, allreduce, reduce_scatter_block, reduce_scatter, scan, exscan,
    )
}  # fmt: skip

ALGORITHMS = [(op, name) for op in BODIES for name in sorted(registry.algorithms_of(op))]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A call by 1 to 9 ranks, some of which come late."""
    size = draw(st.integers(1, 9))
    return Case(
        size=size,
        count=draw(st.sampled_from((0, 1, 2, 5, 33, 700))),
        root=draw(st.integers(0, size - 1)),
        in_place=draw(st.booleans()),
        dtype=draw(st.sampled_from(("i4", "i8", "f8"))),
        form=draw(st.sampled_from(FORMS)),
        op=draw(st.sampled_from(REDUCERS)),
        counts=draw(st.lists(st.sampled_from((0, 1, 3, 40)), min_size=size, max_size=size)),
        delays=draw(st.lists(st.sampled_from((0.0, 1e-6, 1e-3)), min_size=size, max_size=size)),
    )


@pytest.mark.parametrize("op, algorithm", ALGORITHMS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def test_every_rank_gets_its_data(op: str, algorithm: str, case: Case) -> None:
    body = BODIES[op]

    def main(rank: Any) -> Any:
        rank.sleep(case.delays[rank.pid])
        return body(case, rank.pid)

    selection = Selection("default", {op: algorithm})
    for got, expected in simulate(case.size, main, selection):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("selector", ["default", "ompi"])
def test_calls_follow_each_other(selector: str) -> None:
    def main(rank: Any) -> list[Any]:
        me, total = rank.pid, np.zeros(3)
        seen = []
        for turn in range(5):
            part = np.full(3, float(me + turn))
            COMM_WORLD.Allreduce(part, total)
            COMM_WORLD.Bcast(part, turn % 5)
            requests = [COMM_WORLD.Ibarrier(), COMM_WORLD.Iallreduce(IN_PLACE, part)]
            COMM_WORLD.Barrier()
            type(requests[0]).Waitall(requests)
            seen.append((total.tolist(), part.tolist()))
        return seen

    results = simulate(5, main, Selection(selector))
    expected = [([10.0 + 5 * t] * 3, [5.0 * (t % 5 + t)] * 3) for t in range(5)]
    assert all(seen == expected for seen in results)


def test_persistent_calls_start_in_any_order() -> None:
    def main(rank: Any) -> list[float]:
        a, b = np.zeros(1), np.zeros(1)
        mine = np.array([1.0 + rank.pid])
        first = COMM_WORLD.Allreduce_init(mine, a)
        second = COMM_WORLD.Allreduce_init(mine, b, OPS["MAX"])
        order = [first, second] if rank.pid % 2 else [second, first]
        for _ in range(3):
            for request in order:
                request.Start()
            for request in order:
                request.Wait()
        return [a[0], b[0]]

    assert simulate(4, main) == [[10.0, 4.0]] * 4


def test_operations_that_differ_never_meet() -> None:
    def main(rank: Any) -> None:
        if rank.pid == 0:
            COMM_WORLD.Barrier()
        else:
            COMM_WORLD.Allreduce(np.zeros(1), np.zeros(1))

    with pytest.raises(Deadlock):
        simulate(2, main)


def test_roots_that_differ_never_meet() -> None:
    def main(rank: Any) -> None:
        COMM_WORLD.Bcast(np.zeros(1), 1 - rank.pid)

    with pytest.raises(Deadlock):
        simulate(2, main)


def error_of(function: Any, *arguments: Any) -> int:
    """The class of the MPI error that a call raises."""
    with pytest.raises(MpiError) as caught:
        function(*arguments)
    return caught.value.Get_error_class()


def test_too_long_a_message_is_an_error_of_the_receiver() -> None:
    def main(rank: Any) -> Any:
        buffer = np.zeros(4 if rank.pid == 0 else 2)
        if rank.pid == 0:
            COMM_WORLD.Bcast(buffer, 0)
            return None
        return error_of(COMM_WORLD.Bcast, buffer, 0)

    assert simulate(3, main) == [None, ERR_TRUNCATE, ERR_TRUNCATE]


def test_wrong_arguments_are_refused() -> None:
    from pysmpi.mpi.communicators.comm import COMM_NULL

    one = np.zeros(1)
    for root in (-1, -3, 1, 7):
        assert error_of(COMM_WORLD.Bcast, one, root) == ERR_ROOT
        assert error_of(COMM_WORLD.Gather, one, one, root) == ERR_ROOT
        assert error_of(COMM_WORLD.Scatter, one, one, root) == ERR_ROOT
        assert error_of(COMM_WORLD.Reduce, one, one, OPS["SUM"], root) == ERR_ROOT
        assert error_of(COMM_WORLD.bcast, 1, root) == ERR_ROOT
        assert error_of(COMM_WORLD.reduce, 1, OPS["SUM"], root) == ERR_ROOT
    assert error_of(COMM_WORLD.Allreduce, one, one.copy(), OP_NULL) == ERR_OP
    assert error_of(COMM_WORLD.Allreduce, one, one.copy(), OPS["BAND"]) == ERR_OP
    assert error_of(COMM_NULL.Barrier) == ERR_COMM
    assert error_of(COMM_NULL.Bcast, one) == ERR_COMM
    assert error_of(COMM_NULL.Ibcast, one) == ERR_COMM
    assert error_of(COMM_NULL.bcast, 1) == ERR_COMM
    with pytest.raises(TypeError):
        COMM_WORLD.Allreduce(one, one, lambda x, y: x)
    with pytest.raises(TypeError):
        COMM_WORLD.Barrier_init(None)
    with pytest.raises(ValueError):
        COMM_WORLD.Allreduce(np.zeros(2), one)


def test_derived_datatypes_meet_others_of_the_same_signature() -> None:
    def main(rank: Any) -> Any:
        me = rank.pid
        column = DOUBLE.Create_vector(3, 1, 2).Commit()
        matrix = np.arange(6.0).reshape(3, 2) + 10 * me
        received = np.zeros((COMM_WORLD.size, 3))
        COMM_WORLD.Allgather([matrix, 1, column], received)
        spread = np.full((3, 2), -1.0)
        message = [np.arange(3.0), DOUBLE] if me == 0 else [spread, 1, column]
        request = COMM_WORLD.Ibcast(message, 0)
        column.Free()
        request.Wait()
        return received.tolist(), spread[:, 0].tolist()

    rows = [[10.0 * r, 10.0 * r + 2, 10.0 * r + 4] for r in range(3)]
    results = simulate(3, main)
    assert results == [(rows, [-1.0] * 3)] + [(rows, [0.0, 1.0, 2.0])] * 2


def test_blocks_of_derived_datatypes() -> None:
    def main(rank: Any) -> Any:
        me, size = rank.pid, COMM_WORLD.size
        # Elements of one double, two doubles apart.
        spaced = DOUBLE.Create_resized(0, 16).Commit()
        send = np.arange(2.0 * size) + 100 * me
        receive = np.full(2 * size, -1.0)
        COMM_WORLD.Alltoall([send, 1, spaced], [receive, 1, spaced])
        gathered = np.full((size, 2), -1.0)
        COMM_WORLD.Gather([send, 1, DOUBLE], [gathered, 1, spaced], 1)
        COMM_WORLD.Alltoallv([send, [1] * size, spaced], [gathered, [1] * size, DOUBLE])
        spaced.Free()
        return receive.tolist()

    results = simulate(3, main)
    for me, received in enumerate(results):
        assert received == [x for r in range(3) for x in (100.0 * r + 2 * me, -1.0)]


def test_blocking_and_nonblocking_calls_never_meet() -> None:
    def main(rank: Any) -> None:
        if rank.pid == 0:
            COMM_WORLD.Bcast(np.zeros(1))
        else:
            COMM_WORLD.Ibcast(np.zeros(1)).Wait()
        COMM_WORLD.Barrier()

    with pytest.raises(Deadlock):
        simulate(2, main)
