"""Process groups of PyTorch on simulated ranks: their results are those of gloo.

PyTorch is not a dependency; docs/contributing/tests.md says how to execute these tests.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("process_groups_program.py")
REAL = """
import os, runpy, sys
import torch.multiprocessing

def start(rank, size, port, program):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    runpy.run_path(program, run_name="__main__")
    sys.stdout.flush()
    os._exit(0)  # threads of gloo may hold the end of a process for minutes

if __name__ == "__main__":
    size = int(sys.argv[1])
    torch.multiprocessing.spawn(start, (size, sys.argv[2], sys.argv[3]), size)
"""
BEGIN = """
import sys, torch, torch.distributed as dist
from mpi4py import MPI
torch.set_num_threads(1)
comm = MPI.COMM_WORLD
"""


def simulate(path: Path, *options: str, ranks: int = 4) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pysmpi", "run", "-n", str(ranks), "--compute", "none"]
    return subprocess.run(
        [*command, *options, str(path)], capture_output=True, text=True, timeout=600
    )


def results(text: str) -> dict[tuple[int, str], Any]:
    values = [json.loads(line) for line in text.splitlines() if line.startswith("[")]
    return {(rank, name): value for rank, name, value in values}


def numbers(value: object) -> Iterable[object]:
    """The parts of a result; those that are numbers as such."""
    if isinstance(value, list):
        for part in value:
            yield from numbers(part)
    else:
        yield value


def test_results_are_those_of_gloo(tmp_path: Path) -> None:
    done = simulate(PROGRAM)
    assert done.returncode == 0, done.stderr
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "real.py").write_text(REAL)
    real = subprocess.run(
        [sys.executable, "real.py", "4", str(port), str(PROGRAM)],
        cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert real.returncode == 0, real.stderr
    mine, theirs = results(done.stdout), results(real.stdout)
    assert len(theirs) > 200
    assert mine.keys() == theirs.keys()
    for key, value in theirs.items():
        # The order of the additions decides about the last digits.
        for left, right in zip(numbers(mine[key]), numbers(value), strict=True):
            assert left == (pytest.approx(right, 1e-4, 1e-4) if type(right) is float else right), (
                key
            )


def test_times_are_those_of_immediate_calls_of_mpi(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(
        BEGIN
        + """
dist.init_process_group("mpi")
x, y = torch.ones(100_000), torch.ones(100_000 * comm.size)
a, b = x.numpy(), y.numpy()

def timed(call):
    comm.Barrier()
    start = MPI.Wtime()
    call()
    return MPI.Wtime() - start

for ours, theirs in [
    (lambda: dist.all_reduce(x), lambda: comm.Iallreduce(MPI.IN_PLACE, a).Wait()),
    (lambda: dist.broadcast(x, 0), lambda: comm.Ibcast(a, 0).Wait()),
    (lambda: dist.all_gather_into_tensor(y, x), lambda: comm.Iallgather(a, b).Wait()),
    (lambda: dist.reduce_scatter_tensor(x, y), lambda: comm.Ireduce_scatter_block(b, a).Wait()),
    (lambda: dist.barrier(), lambda: comm.Ibarrier().Wait()),
    (lambda: dist.recv(x, 1) if comm.rank == 0 else comm.rank == 1 and dist.send(x, 0),
     lambda: comm.Recv(a, 1) if comm.rank == 0 else comm.rank == 1 and comm.Send(a, 0)),
]:
    print(timed(ours), timed(theirs))
""",
    )
    done = simulate(tmp_path / "prog.py")
    assert done.returncode == 0, done.stderr
    pairs = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    assert len(pairs) == 24
    for ours, theirs in pairs:
        assert ours == pytest.approx(theirs, rel=0.01, abs=1e-6)


@pytest.mark.parametrize(
    "line, message",
    [
        ('dist.init_process_group("nccl")', r"backend 'nccl' is not simulated.*CPU"),
        ('dist.init_process_group("gloo", world_size=3)', r"world_size is 3.*2 ranks"),
        ('dist.init_process_group("gloo", rank=0, world_size=2)', r"a different one in each rank"),
        ("dist.init_process_group(); comm.rank and dist.all_reduce(torch.ones(1))", r"prog.py:6"),
        (
            "dist.init_process_group(); p = torch.nn.Parameter(torch.ones(1)); "
            "p.register_hook(lambda g: dist.all_reduce(g) if comm.rank else None); "
            "(p * 2).sum().backward()",
            r"rank 1 .*waits in Wait.*Iallreduce.*prog.py:6",
        ),
    ],
)  # fmt: skip
def test_errors_say_where_they_are(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "prog.py").write_text(BEGIN + line + "\n")
    done = simulate(tmp_path / "prog.py", ranks=2)
    assert done.returncode in (1, 3)
    assert re.search(message, done.stderr), done.stderr


def test_variables_of_torchrun(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(
        "import os\nimport torch\n"
        "names = 'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'MASTER_PORT'\n"
        "print([os.environ[name] for name in names])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", "3", "prog.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=200,
        env={**os.environ, "MASTER_PORT": "4711"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines == [str([str(rank), "3", str(rank), "3", "4711"]) for rank in range(3)]


def test_the_page_has_a_program_that_trains(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto/torch-distributed.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    (command,) = re.findall(r"^\$ pysmpi run -n 16 (.*) train.py$", page, re.M)
    (tmp_path / "train.py").write_text(program)
    options = [*command.split(), "--check", "all"]
    done = simulate(tmp_path / "train.py", *options, ranks=16)
    assert done.returncode == 0, done.stderr
    assert "PSM" not in done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        f"rank {rank} of 16 is done" for rank in range(16)
    )
