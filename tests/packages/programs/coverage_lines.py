"""coverage in each rank: the lines of a function that each rank has run."""

from __future__ import annotations

import io

import coverage
from mpi4py import MPI

comm = MPI.COMM_WORLD
with open(f"work{comm.rank}.py", "w") as file:
    file.write(
        "def work(rank, comm):\n"
        "    total = 0\n"
        "    if rank % 2:\n"
        "        total += comm.allreduce(rank)\n"
        "        total *= 2\n"
        "    else:\n"
        "        total -= comm.allreduce(rank)\n"
        "    if rank > 5:\n"
        "        total = None\n"
        "    return total\n"
    )
measured = coverage.Coverage(data_file=f".coverage.{comm.rank}", branch=True, include=["work*.py"])
measured.start()
import importlib  # noqa: E402
import sys  # noqa: E402

sys.path.insert(0, ".")
module = importlib.import_module(f"work{comm.rank}")
print(comm.rank, module.work(comm.rank, comm))
measured.stop()
measured.save()
_, statements, _, missing, _ = measured.analysis2(f"work{comm.rank}.py")
print(comm.rank, statements, missing)
report = io.StringIO()
print(comm.rank, measured.report(file=report), len(report.getvalue().splitlines()))
comm.barrier()
if comm.rank == 0:
    together = coverage.Coverage(data_file=".coverage")
    together.combine([f".coverage.{k}" for k in range(comm.size)])
    data = together.get_data()
    print(
        sorted((name.rpartition("/")[2], len(data.lines(name))) for name in data.measured_files())
    )
