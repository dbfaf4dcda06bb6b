"""Commands of a file that ranks ask for, one by one; each writes a file."""

from __future__ import annotations

import os
from pathlib import Path

from mpi4py import MPI
from pylaunchermpi.main import main

comm = MPI.COMM_WORLD
os.environ["LAUNCHER_WORKDIR"] = os.getcwd()
os.environ["LAUNCHER_JOB_FILE"] = "tasks"
if comm.rank == 0:
    tasks = [f"echo {i} $(({i} * {i})) > task{i}.txt" for i in range(9)]
    Path("tasks").write_text("\n".join([*tasks, "exit 3"]))
comm.Barrier()
main()
comm.Barrier()
if comm.rank == 0:
    for path in sorted(Path().glob("task*.txt")):
        print(path, path.read_text().strip())
