"""A shell of IPython in each rank: cells, magics, history, completion, and MPI in a cell."""

from __future__ import annotations

import sys

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from mpi4py import MPI

comm = MPI.COMM_WORLD
shell = InteractiveShell.instance(colors="NoColor", history_length=0)
shell.history_manager.enabled = False
shell.push({"comm": comm, "start": 10 * comm.rank})
for cell in (
    "values = [start + k for k in range(4)]\nsum(values)",
    "comm.allreduce(sum(values))",
    "%timeit -n1 -r1 -q pass\n_",
    "def f(x):\n    return x / (comm.rank - comm.rank)\nf(1)",
    "%who_ls list",
    "!echo shell $((1 + 1)) {start}",
    "out = !echo a; echo b{start}\nout.n",
    "await __import__('asyncio').sleep(0.01, result=comm.rank)",
    "%%writefile cell_{start}.txt\nwritten by {comm.rank}",
    "print(open(f'cell_{start}.txt').read(), end='')",
    "import math as m; m.pi?",
    "for i in range(",
):
    with capture_output() as captured:
        result = shell.run_cell(cell, store_history=True)
    lines = captured.stdout.splitlines()
    error = result.error_in_exec or result.error_before_exec
    print(
        comm.rank, repr(result.result)[:60], type(error).__name__, lines[-1:] if not error else []
    )
    sys.stdout.flush()
print(comm.rank, shell.execution_count, shell.Completer.complete("val")[1][:1])
print(comm.rank, shell.transform_cell("%pwd"), end="")
print(comm.rank, comm.allgather(shell.user_ns["start"]))
