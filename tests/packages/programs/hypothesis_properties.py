"""Properties of MPI's own results, drawn by hypothesis: the same examples in each rank."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, find, given, settings, target
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from mpi4py import MPI

comm = MPI.COMM_WORLD
CHECKED = settings(
    derandomize=True, database=None, deadline=None, max_examples=30,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
seen = []


@CHECKED
@given(
    hnp.arrays(np.int64, st.integers(1, 20), elements=st.integers(-1000, 1000)), st.integers(0, 3)
)
def broadcast(values: np.ndarray, root: int) -> None:
    mine = values * (comm.rank == root)
    comm.Bcast(mine, root % comm.size)
    assert (mine == values).all()
    total = np.empty_like(values)
    comm.Allreduce(values + comm.rank, total)
    assert (total == values * comm.size + comm.size * (comm.size - 1) // 2).all()
    seen.append(int(values.sum()))
    target(float(len(values)))


broadcast()
print(comm.rank, len(seen), sum(seen))


@CHECKED
@given(st.recursive(st.none() | st.text("abc", max_size=3), lambda s: st.lists(s, max_size=3)))
def objects(value: object) -> None:
    assert comm.allgather(value) == [value] * comm.size


objects()


@CHECKED
@given(st.lists(st.integers()))
def wrong(values: list[int]) -> None:
    assert sum(values) < 100 + comm.rank


try:
    wrong()
except AssertionError as error:
    print(comm.rank, "falsified", [note for note in error.__notes__ if "values" in note])
print(comm.rank, find(st.integers(), lambda n: n > 10 * comm.rank, settings=CHECKED))


class Stack(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model: list[int] = []

    @rule(value=st.integers(0, 9))
    def push(self, value: int) -> None:
        self.model.append(value)
        assert self.model[-1] == value


run_state_machine_as_test(Stack, settings=CHECKED)
print(comm.rank, "stack held", comm.allreduce(len(seen)))
