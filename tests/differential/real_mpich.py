"""A real MPICH on this machine, to compare with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@cache
def mpich() -> bool:
    """Whether mpiexec starts an mpi4py of MPICH."""
    if shutil.which("mpiexec") is None:
        return False
    # Each rank writes at once: pieces of two lines could mix.
    code = (
        "import os; from mpi4py import MPI;"
        " os.write(1, f'{MPI.Get_library_version()[:5]} {MPI.COMM_WORLD.size}.'.encode())"
    )
    done = subprocess.run(
        ["mpiexec", "-n", "2", sys.executable, "-c", code],
        capture_output=True, text=True, timeout=60, env={**os.environ, **QUIET},
    )  # fmt: skip
    return done.stdout == "MPICH 2.MPICH 2."


def run(ranks: int, program: Path, *arguments: object, **settings: str) -> None:
    """Run a program under MPICH; `settings` are MPICH's variables, without MPIR_CVAR_."""
    variables: Mapping[str, str] = {f"MPIR_CVAR_{name}": value for name, value in settings.items()}
    done = subprocess.run(
        ["mpiexec", "-n", str(ranks), sys.executable, str(program), *map(str, arguments)],
        capture_output=True, text=True, timeout=300, env={**os.environ, **QUIET, **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
