"""Runs whose data is wrong: right times, or a word about it.

Twelve programs let their data decide which calls they make, and one does not. Each runs with folded
arrays and without the data of messages, alone and beside a twin.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.mpi import calls
from pysmpi.shadow.decisions import decisions
from pysmpi.shadow.estimate import Estimate, StoppingRule
from pysmpi.shadow.twin import _Watch

HEAD = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
n, rows = 192, 192 // size
random = np.random.default_rng(rank)
matrix = random.random((rows, n))
matrix[np.arange(rows), rank * rows + np.arange(rows)] += 0.7 * n
b = random.random(rows)
diagonal = matrix[np.arange(rows), rank * rows + np.arange(rows)].copy()
x, mine = np.zeros(n), np.zeros(rows)
"""

PROGRAMS = {
    "residual": """
steps = 0
while steps < 120:
    r = b - matrix @ x
    mine += r / diagonal
    comm.Allgather(mine, x)
    steps += 1
    if comm.allreduce(float(r @ r)) < 1e-16:
        break
""",
    "residual in a buffer": """
total = np.ones(1)
steps = 0
while total[0] > 1e-16 and steps < 120:
    r = b - matrix @ x
    mine += r / diagonal
    comm.Allgather(mine, x)
    comm.Allreduce(np.array([r @ r]), total)
    steps += 1
""",
    "dot product": """
def dot(one, other):
    return comm.allreduce(float(one @ other))
def solve():
    steps = 0
    while True:
        r = b - matrix @ x
        mine[:] = mine + r / diagonal
        comm.Allgather(mine, x)
        steps += 1
        rho = dot(r, r)
        if rho < 1e-16 or steps == 120:
            return steps
solve()
""",
    "method of a class": """
class Solver:
    def __init__(self):
        self.error = 1.0
        self.steps = 0
    def step(self):
        global mine
        r = b - matrix @ x
        mine = mine + r / diagonal
        comm.Allgather(mine, x)
        self.error = np.sqrt(comm.allreduce(float(r @ r), op=MPI.SUM))
        self.steps += 1
solver = Solver()
while solver.error > 1e-8 and solver.steps < 120:
    solver.step()
""",
    "largest change": """
change = 1.0
for step in range(120):
    r = b - matrix @ x
    mine += r / diagonal
    comm.Allgather(mine, x)
    change = comm.allreduce(float(abs(r).max()), op=MPI.MAX)
    converged = change < 1e-8
    if converged:
        break
""",
    "flag of all": """
for step in range(120):
    r = b - matrix @ x
    mine += r / diagonal
    comm.Allgather(mine, x)
    if comm.allreduce(bool(abs(r).max() < 1e-8), op=MPI.LAND):
        break
""",
    "root decides": """
go, steps = np.ones(1, "i"), 0
while go[0] and steps < 120:
    r = b - matrix @ x
    mine += r / diagonal
    comm.Allgather(mine, x)
    total = comm.reduce(float(r @ r))
    if rank == 0:
        go[0] = total > 1e-16
    comm.Bcast(go)
    steps += 1
""",
    "time step": """
field, now, steps = random.random(4000) + 1.0, 0.0, 0
while now < 1.0 and steps < 400:
    fastest = comm.allreduce(float(field.max()), op=MPI.MAX)
    now += min(1.0, 0.05 / max(fastest, 1e-3))
    field *= 0.98
    comm.Barrier()
    steps += 1
""",
    "sample sort": """
keys = np.sort(random.gamma(1.0 + rank, size=4000))
picks = keys[::500].copy()
everywhere = np.empty(len(picks) * size)
comm.Allgather(picks, everywhere)
pivots = np.sort(everywhere)[len(picks) * np.arange(1, size)]
out = np.diff(np.concatenate([[0], np.searchsorted(keys, pivots), [4000]])).astype("i")
into = np.empty(size, "i")
comm.Alltoall(out, into)
got = np.empty(max(0, int(into.sum())) if into.sum() < 100000 else 1)
comm.Alltoallv([keys, out], [got, into])
""",
    "pivots": """
panel = random.random((64, 64))
for column in range(20):
    best = np.array([abs(panel[:, column]).max(), rank])
    every = np.empty(2 * size)
    comm.Allgather(best, every)
    owner = int(every[1::2][np.argmax(every[::2])]) % size
    if owner != 0:
        comm.Bcast(panel[0], owner)
    panel[:, column] *= 0.5
""",
    "bisection": """
low, high, steps = 0.0, 64.0, 0
weights = random.random(4000)
while high - low > 1e-6 and steps < 60:
    middle = 0.5 * (low + high)
    above = comm.allreduce(float((weights > middle).sum()))
    if above > 100.0:
        low = middle
        comm.Barrier()
    else:
        high = middle
    steps += 1
""",
    "refinement": """
cells = random.random(2000)
for level in range(4):
    marked = int((cells > 0.5 + 0.1 * rank).sum())
    counts = np.empty(size, "i")
    comm.Allgather(np.array([marked], "i"), counts)
    each = int(counts.sum()) // size % 5000
    everywhere = np.empty(each * size)
    comm.Allgather(np.ones(each), everywhere)
    cells = np.concatenate([cells, cells[:marked]])
""",
}
FIXED = """
for step in range(20):
    r = b - matrix @ x
    mine += r / diagonal
    comm.Allgather(mine, x)
    total = comm.allreduce(float(r @ r))
if rank == 0 and total > 1.0:
    print("large")
"""
# Programs whose decisions follow from results of reductions alone.
STEERED = (
    "residual", "residual in a buffer", "dot product", "method of a class", "largest change",
    "flag of all", "time step",
)  # fmt: skip
SHORTCUTS = {"fold": {"fold": "4KiB"}, "data": {"data": "none"}}


def simulate(path: str, **options: object) -> pysmpi.Result:
    chosen = {"compute": 1e-6, "check": False, **options}
    return pysmpi.run(path, 4, **chosen)


def told(result: pysmpi.Result) -> bool:
    """Whether a run says that its time may be wrong."""
    if result.twin is not None and "may decide otherwise" in result.twin:
        return True
    return bool(result.exit_status) or any(
        "decides by its data" in one or "calls are not those of" in one for one in result.remarks
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_data_that_decides(name: str, write) -> None:
    path = write("program.py", HEAD + PROGRAMS[name])
    full = simulate(path)
    assert full.exit_status == 0, full.error
    for options in SHORTCUTS.values():
        alone = simulate(path, **options)
        right = abs(alone.seconds / full.seconds - 1.0) <= 0.05
        assert right or told(alone), (options, alone.seconds, full.seconds, alone.remarks)
        for twin in ("2", "all"):
            guided = simulate(path, twin=twin, **options)
            right = abs(guided.seconds / full.seconds - 1.0) <= 0.05
            assert right or told(guided), (options, twin, guided.seconds, full.seconds)
            if guided.twin is not None and twin == "all":
                assert right, (options, twin, guided.seconds, full.seconds, guided.twin)
            if name in STEERED:
                assert right, (options, twin, guided.seconds, full.seconds, guided.remarks)
                assert guided.twin is not None and "come from it" in guided.twin


def test_a_program_that_does_not_depend_on_its_data(write) -> None:
    path = write("program.py", HEAD + FIXED)
    full = simulate(path)
    for options in SHORTCUTS.values():
        alone = simulate(path, **options)
        assert alone.seconds == full.seconds
        assert not told(alone), alone.remarks
        guided = simulate(path, twin="2", **options)
        assert guided.seconds == full.seconds
        assert guided.twin is not None and "come from it" not in guided.twin
    assert simulate(path).remarks == []


def test_the_first_difference_is_named_and_decides(write) -> None:
    path = write("program.py", HEAD + PROGRAMS["sample sort"])
    full = simulate(path)
    where = f"call 3 of rank 0 is Alltoallv at {path}"
    reported = simulate(path, data="none", twin="all")
    assert reported.twin is None
    stopped = simulate(path, fold="4KiB", twin="all", on_divergence="stop")
    assert stopped.exit_status == 1
    assert stopped.error is not None and where in stopped.error, stopped.error
    assert "in full" in stopped.error
    whole = simulate(path, fold="4KiB", twin="all", on_divergence="full")
    assert whole.exit_status == 0
    assert whole.seconds == full.seconds
    assert any("ran once more in full" in one for one in whole.remarks), whole.remarks
    assert whole.folding is None


def test_a_twin_with_a_limit_is_a_prefix(write) -> None:
    text = HEAD + "import time\nfor step in range(6):\n    comm.Barrier()\n    wait()\n"
    text = text.replace("for step", "wait = lambda: [i for i in range(300000)]\nfor step")
    path = write("program.py", text)
    guided = simulate(path, data="none", twin="2:30ms")
    assert guided.exit_status == 0
    assert guided.twin is not None and "the first " in guided.twin, guided.twin


def test_the_times_that_a_program_measures_are_its_own(write) -> None:
    text = HEAD + (
        "begin = MPI.Wtime()\n"
        "for step in range(5):\n    comm.Barrier()\n"
        "took = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)\n"
        "print('took', took)\n"
    )
    path = write("program.py", text)
    assert decisions(path) == []


def test_output_of_a_twin_is_not_seen(write, capfd) -> None:
    path = write("program.py", HEAD + "print('rank', rank, flush=True)\ncomm.Barrier()\n")
    simulate(path, data="none", twin="2")
    assert sorted(capfd.readouterr().out.split("\n")) == ["", *(f"rank {r}" for r in range(4))]


@pytest.mark.parametrize("text", ["0", "5", "some", "2:", "2:x", "2:-1s"])
def test_wrong_twins(text: str, write) -> None:
    path = write("program.py", HEAD)
    with pytest.raises(UsageError, match="--twin"):
        simulate(path, data="none", twin=text)
    with pytest.raises(UsageError, match="expected --fold, --data or --sample"):
        simulate(path, twin="2")


def test_the_flow_of_values_between_files(write) -> None:
    write("solver.py", "def norm(comm, r):\n    return comm.allreduce(r)\n")
    path = write(
        "program.py",
        "from solver import norm\n"
        "error = 1.0\n"
        "while error > 0.1:\n    error = norm(comm, error)\n"
        "print(error if error > 0.5 else 0)\n",
    )
    (only,) = decisions(path)
    assert only.line == 3
    assert [(one.line, one.call) for one in only.sources] == [(2, "allreduce")]


# Samples


def estimate(values: list[float]) -> Estimate:
    made = Estimate()
    for value in values:
        made.add(value, StoppingRule(warmup=0))
    return made


def test_trends_of_measures() -> None:
    random = np.random.default_rng(1)
    rising = [1.0 + step // 4 for step in range(12)]
    assert estimate([one + 0.01 * random.random() for one in rising]).trend > 0.5
    assert estimate([1.0 / one for one in rising]).trend < -0.2
    slow = [1.0 + 0.004 * step for step in range(30)]
    assert estimate(slow).trend == pytest.approx(0.08, abs=0.03)
    assert estimate([1.0, 2.0, 3.0]).trend is None  # too few
    assert estimate([1.0] * 30).trend is None
    chance = sum(
        estimate(list(1.0 + 0.1 * random.standard_normal(30))).trend is not None for _ in range(400)
    )
    assert chance <= 4
    assert estimate([1.0] * 10 + [9.0] + [1.0] * 10).trend is None  # one disturbance


DRIFT = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
class Cells:
    def __init__(self):
        self.x = np.ones(4000)
        self.passes = np.full(1, 4.0)
    def step(self):
        self.x[:] = np.sin(self.x) + 0.5 * self.x
        burn(int(50_000 * self.passes[0]))
        self.passes[0] *= 1.15
cells = Cells()
for step in range(40):
    cells.step()
    comm.Barrier()
"""


@pytest.mark.usefixtures("burn")
@pytest.mark.parametrize("sample", ["__main__:Cells.step:iters=8", "__main__:Cells.step", "auto"])
def test_work_that_grows_is_not_skipped(sample: str, write, tmp_path) -> None:
    path = write("program.py", DRIFT)
    report = tmp_path / "report.json"
    result = simulate(path, sample=sample, compute="native", report=report)
    figures = json.loads(report.read_text())["shadow"]
    if sample == "auto":
        assert figures["sampled"] == []
        (left,) = [one for one in figures["not_sampled"] if "Cells.step" in one["place"]]
        assert "longer" in left["reason"] or "was called" in left["reason"]
    else:
        (point,) = figures["sampled"]
        assert point["trend"] is not None and point["trend"] > 0.2, point
        assert point["skipped"] <= 0.2 * (point["ran"] + point["skipped"])
    assert result.exit_status == 0


def test_auto_leaves_solvers_that_converge_alone(write) -> None:
    path = write(
        "program.py",
        """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
n = 300
matrix = np.diag(np.linspace(1.0, 50.0, n)) + 0.1
def times(vector, out):
    for _ in range(20):
        np.matmul(matrix, vector, out=out)
b = np.ones(n)
x, r, p, q = np.zeros(n), b.copy(), b.copy(), np.empty(n)
rho = comm.allreduce(float(r @ r))
for step in range(60):
    times(p, q)
    alpha = rho / comm.allreduce(float(p @ q))
    x += alpha * p
    r -= alpha * q
    before, rho = rho, comm.allreduce(float(r @ r))
    p = r + rho / before * p
print(abs(matrix @ x - b).max() < 1e-6)
""",
    )
    result = pysmpi.run(path, 2, sample="auto", check=False)
    assert result.exit_status == 0
    assert result.shadow is not None
    assert "__main__:times" not in [one["place"] for one in result.shadow["sampled"]]


@pytest.mark.parametrize("end", ["run_ended", "close"])
def test_calls_are_as_before_after_the_end_of_a_watch(end: str) -> None:
    """`close` ends one whose run has failed before its end."""

    def functions() -> list[object]:
        return [calls._inside(boundary).cell_contents for boundary in calls._by_boundary]

    before = functions()
    watch = _Watch(2, True)
    watch.attach(SimpleNamespace(simulation=SimpleNamespace(universe=None)))
    watch.ranks_ready(None)
    try:
        assert functions() != before
    finally:
        getattr(watch, end)(None)
    assert functions() == before
