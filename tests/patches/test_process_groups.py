"""Process groups of PyTorch: refused with a line for the person who asks for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from mpi4py import MPI
import torch.distributed
from torch.distributed import distributed_c10d
for module in (torch.distributed, distributed_c10d):
    module.init_process_group("gloo", rank=MPI.COMM_WORLD.rank, world_size=MPI.COMM_WORLD.size)
print("went on")
"""
# As far as a program needs PyTorch's names, which are all that the refusal knows.
FILES = {
    "__init__.py": "float32 = 1\nclass _C:\n    _set_grad_enabled = print\n"
    "def is_grad_enabled(): return True\n"
    "def get_default_dtype(): return float32\ndef set_default_dtype(value): pass\n"
    "def get_rng_state(): return 0\ndef set_rng_state(value): pass\n",
    "distributed/__init__.py": "from .distributed_c10d import *\n",
    "distributed/distributed_c10d.py": "def init_process_group(backend, rank, world_size): pass\n",
}


@pytest.mark.parametrize("ranks, status", [(1, 0), (3, 1)])
def test_groups_of_several_ranks_are_refused(tmp_path: Path, ranks: int, status: int) -> None:
    for name, text in FILES.items():
        path = tmp_path / "torch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "prog.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", str(ranks), "prog.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert ("went on" in done.stdout) == (ranks == 1)
    if status:
        assert "process groups of PyTorch are not simulated" in done.stderr
        assert 'prog.py", line 6' in done.stderr
