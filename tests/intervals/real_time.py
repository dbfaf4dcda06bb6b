"""Run a program several times, and write the times of its ranks.

    mpiexec -n 2 python real_time.py FILE SECONDS REPEATS PROGRAM ARGUMENT...
    pysmpi run -n 2 real_time.py FILE 0 REPEATS PROGRAM ARGUMENT...

The same script is for a real MPI and for a simulated one, so that both times mean the same: that
of the slowest rank from a barrier to the end of the program. Imports do not count, since those at
the top of the program come first, and the first turn does not, in which caches are cold.
REAL_TIME_CALL in the environment is a call of a function of the program to time, in place of the
program. Rank 0 appends a line to the file for each turn: this time, then for each rank the time
in which it was ready to run and other processes had the core (s, Linux). A real program is
repeated for at least SECONDS.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import sys
import time
from contextlib import redirect_stdout, suppress
from pathlib import Path

from mpi4py import MPI


def delayed() -> float:
    """The time (s) that this process has waited for a core."""
    return float(Path("/proc/self/schedstat").read_text().split()[1]) * 1e-9


def main() -> None:
    """Time some runs."""
    target, seconds, repeats, program = sys.argv[1:5]
    sys.argv = sys.argv[4:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    tree = ast.parse(Path(program).read_text(encoding="utf-8"), program)
    for node in tree.body:
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            importlib.import_module(name)
    code = compile(tree, program, "exec")
    scope: dict[str, object] = {"__name__": "__main__", "__file__": program}
    call = os.environ.get("REAL_TIME_CALL")
    if call:
        scope["__name__"] = "program"
        exec(code, scope)
        code = compile(call, program, "eval")
    comm = MPI.COMM_WORLD.Dup()
    real = float(seconds) > 0.0
    text = sys.stdin.read() if comm.rank == 0 else ""
    end = time.time() + float(seconds)
    turn, more = 0, True
    while more:
        sys.stdin = io.StringIO(text)
        with redirect_stdout(io.StringIO()), suppress(SystemExit):
            comm.Barrier()
            before = delayed() if real else 0.0
            begin = MPI.Wtime()
            exec(code, scope if call else dict(scope))
        took = MPI.Wtime() - begin
        waits = delayed() - before if real else 0.0
        rows = comm.gather((took, waits), 0)
        turn += 1
        if rows is not None and turn > 1:
            with open(target, "a", encoding="utf-8") as stream:
                stream.write(json.dumps([max(row[0] for row in rows), *(row[1] for row in rows)]))
                stream.write("\n")
        more = comm.bcast(turn <= int(repeats) or real and time.time() < end, 0)


main()
