"""Sampling whole programs: executed and skipped calls, their charges, refusals."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pysmpi
from pysmpi.errors import UsageError

PROGRAM = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
calls = 0

def work(a, out):
    global calls
    calls += 1
    np.matmul(a, a, out=out)
    return out

class Solver:
    def __init__(self, n):
        self.field = np.full(n, float(comm.rank))
        self.steps = 0
    def step(self):
        self.steps += 1
        self.field += 1.0
    def exchange(self):
        self.steps += 1
        comm.allreduce(self.field)

def main():
    a = np.full((60, 60), 1.0 + comm.rank)
    out = np.zeros_like(a)
    solver = Solver(4)
    for _ in range(20):
        work(a, out)
        solver.step()
        comm.barrier()
    for _ in range(10):
        solver.exchange()
    print(comm.rank, calls, out[0, 0], solver.steps, solver.field[0], flush=True)

main()
"""


@pytest.fixture
def outcome(write, capfd) -> Callable[..., tuple[pysmpi.Result, list[str]]]:
    """Run a program; its result and the lines that it printed."""

    def run(text: str, nprocs: int = 2, **options) -> tuple[pysmpi.Result, list[str]]:
        path = write("program.py", text)
        capfd.readouterr()
        options.setdefault("compute", "none")
        result = pysmpi.run(path, nprocs, **options)
        return result, sorted(capfd.readouterr().out.splitlines())

    return run


def test_nothing_is_sampled_by_itself(outcome):
    result, lines = outcome(PROGRAM)
    assert result.shadow is None
    assert lines == ["0 20 60.0 30 20.0", "1 20 240.0 30 21.0"]


def test_a_function_is_skipped_and_leaves_what_it_left(outcome):
    plain, _ = outcome(PROGRAM)
    result, lines = outcome(PROGRAM, sample=["__main__:work:iters=4"])
    assert lines == ["0 5 60.0 30 20.0", "1 5 240.0 30 21.0"]
    (point,) = result.shadow["sampled"]
    assert (point["ran"], point["skipped"], point["kinds"]) == (10, 30, 2)
    assert result.seconds == plain.seconds and result.messages == plain.messages


def test_ranks_can_measure_together(outcome):
    _, lines = outcome(PROGRAM, sample=["__main__:work:iters=5,scope=global"])
    assert sum(int(line.split()[1]) for line in lines) == 6
    assert {line.split()[2] for line in lines} <= {"60.0", "240.0"}


def test_methods_write_the_arrays_of_their_object(outcome):
    _, lines = outcome(PROGRAM, sample=["__main__:Solver.step:iters=2"])
    assert [line.split()[3:] for line in lines] == [["13", "3.0"], ["13", "4.0"]]


def test_a_class_is_its_constructor(outcome):
    result, lines = outcome(PROGRAM, 4, sample=["__main__:Solver:iters=1,scope=global"])
    assert result.shadow["sampled"][0]["skipped"] == 2
    # Ranks that skipped it share the array of rank 1.
    assert float(lines[1].split()[4]) == 61.0 == float(lines[3].split()[4])


def test_time_is_charged_as_measured(outcome, burn):
    text = """
    import sys
    from mpi4py import MPI
    def work(n):
        burn(n)
    for _ in range(40):
        work(1_500_000)
        MPI.COMM_WORLD.barrier()
    """
    whole, _ = outcome(text, 1, compute="native")
    sampled, _ = outcome(text, 1, compute="native", sample=["__main__:work:iters=10"])
    point = sampled.shadow["sampled"][0]
    # After 8 and 12 skipped passes, one warms the caches and one is measured.
    assert (point["ran"], point["skipped"]) == (15, 25)
    assert sampled.seconds == pytest.approx(whole.seconds, rel=1e-9)
    assert whole.seconds > 40 * 1.5e-3
    assert point["charged_seconds"] == pytest.approx(25 * 1.5e-3)
    assert point["saved_seconds"] == pytest.approx(25 * 1.5e-3)


def test_ranks_skip_the_same_passes_that_communicate(outcome, burn):
    text = """
    import numpy as np
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    ran = 0
    def step(number):
        global ran
        ran += 1
        # The time rises on rank 0, which does not wait for rank 1.
        burn(100_000 * number if comm.rank == 0 else 20_000_000)
        if comm.rank == 0:
            comm.Send(np.zeros(1), 1)
        else:
            comm.Recv(np.zeros(1), 0)
    for number in range(40):
        step(number)
    print(ran)
    """
    sample = ["__main__:step:scope=collective,iters=8"]
    result, lines = outcome(text, 2, compute="native", sample=sample)
    assert lines[0] == lines[1]
    assert result.exit_status == 0
    assert not result.unreceived


@pytest.mark.parametrize("compute", ["none", "3us", "file"])
def test_time_that_is_not_measured_does_not_depend_on_sampling(outcome, compute, tmp_path):
    if compute == "file":
        compute = str(tmp_path / "blocks")
        outcome(PROGRAM, compute="native", record_compute=compute)
    plain, _ = outcome(PROGRAM, compute=compute)
    sampled, _ = outcome(PROGRAM, compute=compute, sample=["__main__:work", "__main__:Solver.step"])
    assert sampled.shadow["sampled"][0]["skipped"] > 20
    assert sampled.seconds == plain.seconds


@pytest.mark.parametrize(("charge", "expected"), [("mean", 5.0), ("median", 3.0)])
def test_measures_late_in_the_run_count_as_much(outcome, charge, expected):
    text = """
    import time
    from mpi4py import MPI
    done = []
    def step():
        time.sleep(0.001 * (11 if len(done) == 2 else 1 + len(done) * 2))
        done.append(1)
    for _ in range(10):
        step()
    """
    options = f"scope=collective,warmup=0,iters=2,every=4,charge={charge}"
    result, _ = outcome(text, 2, compute="none", sample=[f"__main__:step:{options}"])
    point = result.shadow["sampled"][0]
    # Passes 1, 2 and 6 ran and took 1, 3 and 11 ms; so did the tenth, 7 ms.
    assert (point["ran"], point["skipped"]) == (4 * 2, 6 * 2)
    assert result.seconds == pytest.approx(1e-3 * (1 + 3 + 11 + 7 + 6 * expected), rel=1e-3)


def test_draws_repeat_with_the_seed(outcome):
    results = [
        outcome(PROGRAM, sample=["__main__:work:iters=4,charge=draw"], compute="2us")[0].seconds
        for _ in range(2)
    ]
    assert results[0] == results[1]


def test_what_communicates_is_refused(outcome):
    with pytest.raises(pysmpi.ProgramError, match="cannot be sampled, since it communicates") as e:
        outcome(PROGRAM, sample=["__main__:Solver.exchange"])
    assert e.value.exit_status == 2
    assert "program.py:22 in Solver.exchange" in str(e.value)


def test_a_program_cannot_hide_that_it_communicates(outcome):
    text = """
    from mpi4py import MPI
    def talk():
        MPI.COMM_WORLD.barrier()
    for _ in range(3):
        try:
            talk()
        except Exception:
            pass
    """
    with pytest.raises(pysmpi.ProgramError, match="__main__:talk"):
        outcome(text, sample=["__main__:talk"])


def test_all_ranks_can_pass_by_what_communicates(outcome):
    plain, _ = outcome(PROGRAM)
    result, lines = outcome(PROGRAM, sample=["__main__:Solver.exchange:scope=collective,iters=2"])
    point = result.shadow["sampled"][0]
    assert (point["ran"], point["skipped"]) == (6, 14)
    assert result.messages < plain.messages
    assert result.seconds == pytest.approx(plain.seconds, rel=1e-3)


def test_collective_passes_play_back_recorded_compute(outcome, tmp_path):
    blocks = str(tmp_path / "blocks")
    outcome(PROGRAM, compute="native", record_compute=blocks)
    recording = Path(blocks)
    recording.write_text(re.sub(r"(?m)^(\d+) \d+$", r"\1 100000", recording.read_text()))
    plain, _ = outcome(PROGRAM, compute=blocks)
    sample = ["__main__:Solver.exchange:scope=collective,iters=7"]
    result, _ = outcome(PROGRAM, compute=blocks, sample=sample)
    assert result.shadow["sampled"][0]["skipped"] == 4
    assert result.seconds == pytest.approx(plain.seconds, rel=1e-3)
    with pytest.raises(UsageError, match="cannot be recorded"):
        outcome(PROGRAM, compute="native", record_compute=blocks, sample=sample)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("__main__:wrok", "close to it are work"),
        ("numpy:matmull", "no matmull in module numpy"),
        ("mpi4py.MPI:Get_version", "cannot replace"),
        ("numpy:ndarray.sum", "cannot replace a method of a compiled class"),
    ],
)
def test_functions_that_are_not_there(outcome, text, part):
    with pytest.raises((UsageError, pysmpi.ProgramError), match=part) as caught:
        outcome(PROGRAM, sample=[text])
    assert caught.value.exit_status == 2


def test_functions_of_libraries(outcome):
    import scipy.fft

    text = """
    import numpy as np, scipy.fft
    from scipy.fft import fftn
    a = np.ones((8, 8))
    for _ in range(9):
        b = fftn(a)
        np.matmul(a, a)
    b[:] = 0.0
    print(scipy.fft.fftn(a)[0, 0].real, np.matmul.nin)
    """
    before = np.matmul, scipy.fft.fftn
    result, lines = outcome(text, sample=["scipy.fft:fftn:iters=2", "numpy:matmul:iters=3"])
    assert [point["ran"] for point in result.shadow["sampled"]] == [6, 8]
    assert lines == ["64.0 2"] * 2
    assert (np.matmul, scipy.fft.fftn) == before


def test_modules_of_the_program(outcome, write):
    write("physics.py", "n = 0\ndef f(x):\n    global n\n    n += 1\n    return x\n")
    text = """
    import physics
    for i in range(9):
        physics.f(1.0)
    print(physics.n)
    """
    result, lines = outcome(text, sample=["physics:f:iters=2", "nowhere:f"])
    assert lines == ["3", "3"]
    assert result.shadow["not_loaded"] == ["nowhere:f"]


def test_functions_of_the_caller():
    def main() -> int:
        return sum(helper() for _ in range(6))

    result = pysmpi.run(main, 2, compute="none", sample=[f"{__name__}:helper:iters=1"])
    assert result.shadow["sampled"][0]["skipped"] == 8
    assert _helped == [1] * 4


_helped: list[int] = []


def helper() -> int:
    _helped.append(1)
    return 3


ANNOTATED = """
import pysmpi
from mpi4py import MPI

done = []

@pysmpi.sample(iters=2)
def f(x):
    done.append("f")
    return x

class C:
    @pysmpi.sample(iters=2)
    def m(self, x):
        done.append("m")
        return self, x

def program():
    c = C()
    for i in range(6):
        assert f(3) == 3
        assert c.m(i)[0] is c
        for k in pysmpi.sample(range(10), iters=3, name="loop"):
            done.append("l")
        with pysmpi.sample(iters=4, warmup=0) as block:
            done.append("b")
            done.append("c")
        with pysmpi.sample(iters=1, warmup=0): done.append("d")
        done.append("e")
    return {letter: done.count(letter) for letter in "fmlbcde"}

print(program())
"""


def test_annotations(outcome):
    result, lines = outcome(ANNOTATED)
    assert lines == [str({"f": 3, "m": 6, "l": 4, "b": 4, "c": 4, "d": 1, "e": 6})] * 2
    loop = next(point for point in result.shadow["sampled"] if point["place"] == "loop")
    assert (loop["ran"], loop["skipped"]) == (8, 2 * (60 - 4))


def test_annotations_can_be_turned_off(outcome):
    result, lines = outcome(ANNOTATED, sample=["none"])
    whole = {"f": 6, "m": 6, "l": 60, "b": 6, "c": 6, "d": 6, "e": 6}
    assert lines == [str(whole)] * 2
    assert result.shadow is None


def test_annotations_are_nothing_outside_a_run():
    heavy = "'mpi4py', 'numpy', 'greenlet', 'pysmpi.kernel', 'pysmpi.mpi', 'pysmpi.job'"
    code = (
        "import sys, pysmpi\n"
        + ANNOTATED.replace("from mpi4py import MPI", "")
        + f"\nassert not set(sys.modules) & {{{heavy}}}, sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "'l': 60" in done.stdout


def test_passes_are_measured_again_now_and_then(outcome):
    text = """
    import pysmpi
    from mpi4py import MPI
    loop, calls = [], []
    for i in pysmpi.sample(range(30), iters=2, warmup=0, every=5):
        loop.append(i)
    def f(i):
        calls.append(int(i))
        MPI.COMM_WORLD.barrier()
    for i in range(23):
        f(float(i))
    print(loop, calls)
    """
    sample = ["__main__:f:scope=collective,iters=1,every=10"]
    result, lines = outcome(text, sample=sample, compute="3us")
    assert lines == ["[0, 1, 6, 11, 16, 21, 26] [0, 1, 11, 21]"] * 2
    assert sorted(point["skipped"] for point in result.shadow["sampled"]) == [2 * 19, 2 * 23]


def test_blocks_that_end_early(outcome):
    text = """
    import sys, pysmpi
    from mpi4py import MPI
    def until(n):
        for i in pysmpi.sample(range(5), iters=2):
            if i == n:
                return i
        return None
    found = [until(0), until(1), until(4), until(4)]
    try:
        with pysmpi.sample(iters=1):
            raise KeyError("mine")
    except KeyError:
        found.append("raised")
    MPI.COMM_WORLD.barrier()
    print(found, sys.gettrace())
    """
    _, lines = outcome(text)
    assert lines == ["[0, 1, None, None, 'raised'] None"] * 2


def test_blocks_that_communicate_are_refused(outcome):
    text = """
    import pysmpi
    from mpi4py import MPI
    with pysmpi.sample():
        MPI.COMM_WORLD.barrier()
    """
    with pytest.raises(pysmpi.ProgramError, match=r"program.py:4: cannot be sampled"):
        outcome(text)


def test_looking_at_the_clock_is_allowed(outcome):
    text = """
    import time, pysmpi
    from mpi4py import MPI
    n = 0
    for _ in pysmpi.sample(range(30), iters=3):
        n += 1
        assert time.perf_counter() <= MPI.Wtime()
    MPI.COMM_WORLD.barrier()
    print(n)
    """
    assert outcome(text, compute="native")[1] == ["8", "8"]
    assert outcome(text)[1] == ["4", "4"]


ONCE = """
import numpy as np
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
ran = []

def table(n):
    ran.append(n)
    return {"data": np.arange(float(n)), "list": [n]}

first, second, third = table(1000), table(7), table(1000)
first["list"].append(rank)
assert third["list"] == [1000]
try:
    first["data"][0] = 5.0
except ValueError:
    print("read-only", end=" ")
print(len(ran), first["data"].sum())
"""


def test_a_function_runs_once_for_all_ranks(outcome):
    result, lines = outcome(ONCE, 4, once=["__main__:table"])
    assert lines == ["read-only 0 499500.0"] * 3 + ["read-only 3 499500.0"]
    (one,) = result.shadow["once"]
    assert (one["ran"], one["shared"]) == (3, 9)


def test_a_function_that_runs_once_is_charged_to_all(outcome, burn):
    text = """
    from mpi4py import MPI
    def slow():
        burn(10_000_000)
        return [1]
    slow()
    MPI.COMM_WORLD.barrier()
    """
    result, _ = outcome(text, 4, compute="native", once=["__main__:slow"])
    assert result.shadow["once"][0]["ran"] == 1
    assert [rank["compute_seconds"] for rank in result.ranks] == [pytest.approx(0.01)] * 4


def test_what_differs_between_ranks_is_found_out(outcome):
    text = """
    from mpi4py import MPI
    def mine():
        return MPI.COMM_WORLD.rank
    mine()
    """
    with pytest.raises(pysmpi.ProgramError, match="gives a different result on rank 1"):
        outcome(text, once=["__main__:mine:iters=2"])


def test_files_are_read_once(outcome, tmp_path):
    np.save(tmp_path / "table.npy", np.arange(30_000.0))
    (tmp_path / "notes.txt").write_text("hello")
    text = f"""
    import numpy as np, pathlib
    from mpi4py import MPI
    table = np.load({str(tmp_path / "table.npy")!r})
    table[0] = MPI.COMM_WORLD.rank + 1.0
    MPI.COMM_WORLD.barrier()
    print(table[0], table[-1], pathlib.Path({str(tmp_path / "notes.txt")!r}).read_text())
    """
    result, lines = outcome(text, 3, once=["files"])
    assert lines == [f"{rank}.0 29999.0 hello" for rank in (1, 2, 3)]
    assert {one["place"]: (one["ran"], one["shared"]) for one in result.shadow["once"]} == {
        "numpy:load": (1, 2),
        "pathlib:Path.read_text": (1, 2),
    }


AUTO = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
calls = dict.fromkeys(["kernel", "norm", "step", "tiny", "count"], 0)

def kernel(a, out):
    calls["kernel"] += 1
    burn(400_000)
    np.copyto(out, np.cos(a) + np.sin(a))

def norm(a):
    calls["norm"] += 1
    burn(100_000)
    return float(np.sqrt(np.cos(a) ** 2).sum())

def step(a, out):
    calls["step"] += 1
    kernel(a, out)
    comm.Barrier()

def tiny(a):
    calls["tiny"] += 1

class Counter:
    n = 0
    def count(self, a):
        calls["count"] += 1
        self.n += 1
        burn(50_000)
        return np.cos(a)

a = np.linspace(0.0, 1.0, 20_000)
out = np.zeros_like(a)
counter = Counter()
for _ in range(60):
    step(a, out)
    norm(a)
    tiny(a)
    counter.count(a)
replaced = [hasattr(function, "__wrapped__") for function in (tiny, kernel)]
print(sorted(calls.items()), counter.n, *replaced)
"""


def test_dominating_functions_are_found(outcome, burn):
    result, lines = outcome(AUTO, sample=["auto"], compute="native")
    (point,) = result.shadow["sampled"]
    assert point["place"] == "__main__:kernel"
    assert point["skipped"] >= 40
    for line in lines:
        assert "('norm', 60), ('step', 60), ('tiny', 60)] 60" in line
        assert "('count', 60)" in line
        assert line.endswith("False True")
    reasons = {one["place"]: one["reason"] for one in result.shadow["not_sampled"]}
    assert reasons.get("__main__:norm", "returns a float") == "returns a float"
    assert "__main__:tiny" not in reasons


def test_automatic_sampling_charges_nothing_that_was_not_measured(outcome, burn):
    plain, _ = outcome(AUTO, compute="2us")
    result, _ = outcome(AUTO, sample=["auto"], compute="2us")
    assert result.seconds == plain.seconds


def test_each_function_is_named_once(outcome):
    with pytest.raises(UsageError, match="named before by --sample"):
        outcome(PROGRAM, sample=["__main__:work"], once=["__main__:work"])
    with pytest.raises(UsageError, match="turns all sampling off"):
        outcome(PROGRAM, sample=["none", "__main__:work"])
