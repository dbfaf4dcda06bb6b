"""The subjects of the rows of `what_a_process_owns.py`, and those that differ under pysmpi.

`python tests/isolation/owned.py` writes `docs/reference/rank-state.md`.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    from pysmpi.isolation.kinds import attribute_hooks
except ImportError:
    attribute_hooks = None

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "programs" / "what_a_process_owns.py"
PAGE = ROOT / "docs" / "reference" / "rank-state.md"

# For each group of rows: its subject, and the way in which it becomes a rank's own.
GROUPS = {
    "arguments": ("`sys.argv`, `sys.orig_argv`", "exchanged when another rank continues"),
    "paths": (
        "`sys.path`, import hooks, installation paths",
        "exchanged; a list that a rank changes in place is copied for it",
    ),
    "modules": (
        "`sys.modules`, imports, names that are added to `sys` and `builtins`",
        "the program's modules and packages that know MPI exist for each rank; the table of "
        "modules and attributes that a rank assigns in shared modules are exchanged",
    ),
    "__main__": ("`__main__`, its classes, their pickling and source", "a module of each rank"),
    "functions": (
        "appearance of replaced functions: type, signature, `repr`, pickling",
        "built-in functions are replaced by built-in functions",
    ),
    "identity": (
        "process number, host name, user, session, `uuid`, `sys.flags`",
        "values of the calling rank: process numbers from 5,000,000 on, the host of the platform",
    ),
    "environment": (
        "environment variables, also those that C code and child processes see",
        "a copy for a rank that sets one; C's are exchanged",
    ),
    "files": (
        "working directory, file mode mask, descriptors 0 to 2, standard streams, temporary files",
        "exchanged after the first change by a rank; descriptors are duplicated",
    ),
    "hooks": (
        "exception, display and breakpoint hooks, tracing, profiling, `faulthandler`",
        "exchanged; tracing functions belong to a thread of a rank",
    ),
    "limits": (
        "recursion limit, switch interval, digits of integers, `gc`, resource limits, priority",
        "exchanged after the first change by a rank",
    ),
    "registries": (
        "`copyreg`, `codecs`, `mimetypes`, `csv` and other registries of the standard library",
        "exchanged after the first registration by a rank",
    ),
    "warnings": (
        "filters, output functions, warnings that were already shown",
        "exchanged; a registry of shown warnings for each rank",
    ),
    "logging": (
        "handlers, levels, filters, `logging.disable`, factories",
        "attributes of loggers have the values of the calling rank",
    ),
    "random": (
        "`random` and `numpy.random`, with and without a seed",
        "generators of each rank, seeded from `--seed` and the rank",
    ),
    "numbers": (
        "decimal context, context variables, numpy's error state and print options, locale",
        "context variables belong to the rank's thread; the locale is exchanged",
    ),
    "threads": (
        "threads, thread-local values, `multiprocessing`, `asyncio`, forks",
        "threads are greenlets of the rank that wait in simulated time",
    ),
    "signals": (
        "handlers, signals that a process sends to itself, the signal mask",
        "exchanged after the first change by a rank",
    ),
    "c code": (
        "variables, directory, random numbers, locale and `errno` of C, hooks of audits and forks",
        "exchanged once a rank gets a function of C that changes them",
    ),
    "shared modules": (
        "attributes that a program assigns in shared modules and their classes",
        "exchanged after the assignment by a rank",
    ),
    "sockets": ("default timeout of sockets", "exchanged"),
    "time": (
        "clocks, dates, time zone",
        "simulated time; the time zone is exchanged",
    ),
    "end": (
        "`atexit`, `weakref.finalize`, threads, `__del__` of globals",
        "called when the rank ends, before its MPI is finalized",
    ),
}

_SHARED = (
    "Modules of the standard library and compiled packages are loaded once: what a rank changes in "
    "their objects without an assignment to an attribute of a module or class holds for all ranks"
)
_STANDS = "A function replaces a method of the hidden generator or class"
_OPERATING_SYSTEM = (
    "The operating system knows one process: its priority, timers and traces of memory "
    "are those of all ranks"
)
_COLLECTOR = "Python collects reference cycles for all ranks at the same time, and less often"
_LOADED = "pysmpi has loaded modules before the program begins"
_STREAM = "All ranks print to one stream object with common settings"
_STDIN = "Rank 0 has the standard input; the others read an empty file, as with Open MPI"

# Reasons why rows differ, by expression, or by the beginning of a change.
DIFFERS = {
    '"site" in sys.modules, "numpy" in original[2], "mpi4py" in original[2]': _LOADED,
    '"unittest" in original[2], "json" in original[2], "asyncio" in original[2]': _LOADED,
    "looks(random.random)": _STANDS,
    "looks(random.seed)": _STANDS,
    "looks(numpy.random.rand)": _STANDS,
    "looks(numpy.random.seed)": _STANDS,
    "looks(numpy.random.default_rng)": _STANDS,
    "looks(datetime.datetime.now)": _STANDS,
    "time.time.__self__.__name__, os.getpid.__self__.__name__": (
        "`__self__` of a replaced built-in function has a class derived from the module class"
    ),
    "os.getpid() == int(os.path.basename": (
        "`/proc/self` is the process of all ranks; its number is not that of a rank"
    ),
    "same(os.getsid(0))": "All ranks run in one session; under mpiexec each has its own session",
    'socket.gethostname() == open("/proc': "Hosts have the names of the platform",
    "gc.isenabled(), gc.get_threshold()": _COLLECTOR,
    'os.environ.get("OMPI_COMM_WORLD_RANK")': (
        "Variables of several launchers are set: Open MPI's, MPICH's, PMIx's"
    ),
    "abs(time.time() - os.stat(": (
        "Simulated time begins on 2000-01-01; files have the dates of the real clock"
    ),
    "stream(sys.stdin)": _STDIN,
    "stream(sys.__stdout__) == stream(sys.stdout)": _STDIN,
    "sys.stdout.reconfigure(line_buffering=True)": _STREAM,
    'sys.stdout.reconfigure(errors="replace")': _STREAM,
    'sys.path_importer_cache["/made/up"]': _SHARED,
    'linecache.cache["made up"]': _SHARED,
    're.compile.__globals__["made_up"]': _SHARED,
    "decimal.DefaultContext.prec": _SHARED,
    "sys.settrace(None); gc.callbacks.append": _COLLECTOR,
    "tracemalloc.start()": _OPERATING_SYSTEM,
    "os.nice(3)": _OPERATING_SYSTEM,
}


# Assignments in shared modules, which a C extension sees.
_ASSIGNMENTS = (
    "builtins.sum = max", "json.made_up = 1", "json.encoder.FLOAT_REPR = 1",
    "json.JSONEncoder.item_separator", 'string.digits = "none"', "os.path.made_up = 1",
    "time.made_up = 1", "os.getlogin = lambda", "subprocess.Popen.made_up",
    "unittest.TestCase.maxDiff", "socket.made = ", "logging.Formatter.converter",
    "random.random = lambda", "numpy.made_up = 1", "threading.Thread.made_up",
    "time.time = lambda", "datetime.made_up",
)  # fmt: skip


def is_open(row: str) -> bool:
    """Whether a row may differ or not, because the C extension for it is not built."""
    return attribute_hooks is None and (
        row.startswith(_ASSIGNMENTS) or ("shared modules", row) in rows()
    )


def rows() -> list[tuple[str, str]]:
    """(group, row) of all rows, without the imports of the program."""
    text = PROGRAM.read_text()
    found = []
    for name in ("SEEN", "CHANGED"):
        begin = text.index(f'\n{name} = """') + len(f'\n{name} = """')
        lines = text[begin : text.index('"""', begin)].replace("\\\\", "\\")
        found += [tuple(line.split(": ", 1)) for line in lines.strip().splitlines()]
    return found  # type: ignore[return-value]


def reason(row: str) -> str | None:
    """The reason why a row differs; None if it does not."""
    for beginning, why in DIFFERS.items():
        if row.startswith(beginning):
            return why
    return None


def _short(row: str) -> str:
    text = row.partition(" -> ")[0]
    return text if len(text) <= 72 else text[:69] + "..."


HEAD = """# The table of the state of a rank

Which state of a process does each rank have for itself? The program
`tests/programs/what_a_process_owns.py` prints one row for each part of the state: plain values, and
changes of one rank that other ranks must not see. A test runs it under `mpiexec` and under
`pysmpi run`, and compares. `python tests/isolation/owned.py` writes this page from the rows.
[The state of a rank](../explanation/ranks.md) explains what it means for a program.

## What each rank has

The last column counts the rows that are equal.

"""


def page() -> str:
    """The page of the documentation."""
    every = rows()
    lines = ["| state | how each rank gets its own | rows |", "| --- | --- | --- |"]
    for group, (what, how) in GROUPS.items():
        mine = [row for known, row in every if known == group]
        same = sum(reason(row) is None for row in mine)
        lines.append(f"| {what} | {how} | {same} of {len(mine)} |")
    lines += ["", "## What differs", "", "Each reason is followed by the expressions that show it."]
    reasons: dict[str, list[str]] = {}
    for _, row in every:
        why = reason(row)
        if why is not None:
            reasons.setdefault(why, []).append(_short(row))
    for why, found in reasons.items():
        lines += ["", f"**{why}.**", "", *(f"- `{row}`" for row in found)]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.exit(0)
