"""psutil: values common to all processes of a computer, and a child process of each rank."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
from mpi4py import MPI

comm = MPI.COMM_WORLD
print(comm.rank, psutil.cpu_count(), psutil.virtual_memory().total, psutil.boot_time() > 1e9)
me = psutil.Process(os.getpid() if psutil.pid_exists(os.getpid()) else None)
print(comm.rank, me.is_running(), me.memory_info().rss > 1e6, me.name().startswith("py"))
child = subprocess.Popen(
    [sys.executable, "-c", "print('ready', flush=True); input(); raise SystemExit(7)"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
)  # fmt: skip
print(comm.rank, child.stdout.readline().strip())
process = psutil.Process(child.pid)
print(comm.rank, process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_SLEEPING, "disk-sleep"))
print(comm.rank, process.cmdline()[1][:2], process.ppid() > 0)
process.suspend()
process.resume()
child.communicate("go\n")
gone, alive = psutil.wait_procs([process], timeout=30)
print(comm.rank, child.returncode, len(gone), len(alive), psutil.pid_exists(child.pid))
print(comm.rank, comm.allreduce(len(psutil.disk_partitions(all=False)) >= 0))
