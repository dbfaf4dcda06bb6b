"""Imports: in one direction only, and at the top of modules."""

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pysmpi"

# The imports inside functions, and their reasons. Commands (`cli/`) load what they need, so that
# help and completion are quick; a test finds those that save nothing.
_GRAPHS = "few runs need graphs: this loads networkx or YAML"
_EXTRA = "an extra, not always installed"
_OUTPUT = "few runs write this"
_FORMAT = "only the format of the run or of the file"
_PROGRAM = "the program of the ranks imports it"
LATE: dict[str, dict[str, str]] = {
    "pysmpi": {"importlib": "`pysmpi --version` and annotations of programs load no simulator"},
    "pysmpi.__main__": {"pysmpi.cli.main": "signals are handled before the rest is loaded"},
    "pysmpi.analysis.communication": {"networkx": _GRAPHS},
    "pysmpi.analysis.figure": {"matplotlib": _EXTRA},
    "pysmpi.analysis.steps": {"click": "only big runs on a terminal show a bar"},
    "pysmpi.abi.images": dict.fromkeys(
        ("shutil", "tempfile"), "most compiled programs have no libraries of their own"
    ),
    "pysmpi.api": {"pysmpi.analysis.energy": "only platforms that give a power"},
    "pysmpi.instruments": {
        "pysmpi.analysis.observation": _OUTPUT,
        "pysmpi.explore": "only runs with --schedule or --check",
        "pysmpi.faults": "only runs with faults",
        "pysmpi.reports.report_file": _OUTPUT,
        "pysmpi.trace.formats": _OUTPUT,
        "pysmpi.trace.recorder": _OUTPUT,
    },
    "pysmpi.calibrate.curves": {"matplotlib": _EXTRA, "pysmpi.calibrate.fragment": _OUTPUT},
    "pysmpi.calibrate.network": {"matplotlib": _EXTRA, "yaml": _OUTPUT},
    "pysmpi.calibrate.network_program": {"mpi4py": "the module is read where there is no MPI"},
    "pysmpi.calibrate.osu": {
        "numpy": "of a program that ranks run",
        "mpi4py": "of a program that ranks run",
    },
    "pysmpi.explore.warming": {"mpi4py": "of a program that ranks run"},
    "pysmpi.network.measured": {"pysmpi.platform.nodes": _FORMAT},
    "pysmpi.own_process.descendants": {
        "ctypes": "only commands that fork; the watcher of a job has to start at once",
        "subprocess": "only systems without /proc",
    },
    "pysmpi.errors": {"traceback": "only notebooks show errors this way"},
    "pysmpi.python.facts": {"subprocess": "the first start only"},
    "pysmpi.python.frames": {
        "dis": "only shadow execution skips blocks",
        "pysmpi.python.installed": "looks for directories, which an annotated program needs not",
    },
    "pysmpi.hints": {"numpy": "annotations load no more than plain programs need"},
    "pysmpi.memory.primitives.steady": {"scipy": _EXTRA},
    "pysmpi.memory.transfer.choice": {
        "pysmpi.memory.transfer.models": "most machines describe no memory",
        "pysmpi.memory.transfer.names": "most runs give no option of a memory model",
        "pysmpi.memory.transfer.transport": "most machines describe no memory",
    },
    "pysmpi.mpi.operators.arithmetic": {
        "pysmpi.mpi.datatypes": "few programs reduce numbers of 128 bits: this loads fractions",
    },
    "pysmpi.mpi.processes.connecting": {"socket": "few programs join groups at a socket"},
    "pysmpi.io.output": {"tempfile": _OUTPUT},
    "pysmpi.platform.drawing": {"networkx": _GRAPHS},
    "pysmpi.platform.graph": {
        "json": _GRAPHS,
        "networkx": _GRAPHS,
        "pysmpi.platform.nodes": _FORMAT,
        "pysmpi.platform.yaml": _FORMAT,
    },
    "pysmpi.platform.graph_files": {"networkx": _GRAPHS},
    "pysmpi.platform.loader": {
        "pysmpi.platform.graph_files": _FORMAT,
        "pysmpi.platform.xml": _FORMAT,
        "pysmpi.platform.yaml": _FORMAT,
    },
    "pysmpi.platform.topology": {
        "json": _GRAPHS,
        "networkx": _GRAPHS,
        "pysmpi.platform.dump": _GRAPHS,
    },
    "pysmpi.platform.zones.floyd": {"numpy": "other kinds of zones need no matrix"},
    "pysmpi.record.__main__": {
        "mpi4py": "initializes MPI, after the options are checked",
        "pysmpi.platform.units": "only with --speed",
        "pysmpi.record": "imports mpi4py",
        "pysmpi.time.host_speed": "only without --speed",
        "pysmpi.trace.model": "a real MPI job starts this on each rank",
        "pysmpi.version": "a real MPI job starts this on each rank",
    },
    "pysmpi.plugins": {"importlib": "few installations have plug-ins: this loads email"},
    "pysmpi.io.reading": {"json": "most runs read no JSON"},
    "pysmpi.replay.replay": {"pysmpi.replay.recorder": _OUTPUT, "pysmpi.trace.recorder": _OUTPUT},
    "pysmpi.time.host_speed": {
        "json": "a known speed is not measured",
        "numpy": "a known speed is not measured",
        "statistics": "a known speed is not measured",
        "tempfile": "a known speed is not measured",
    },
    "pysmpi.isolation.kinds.rank_output": {"tempfile": "only without files in memory"},
    "pysmpi.time.recordings": {"json": "only with --record-compute"},
    "pysmpi.job.heap": {
        "pysmpi.job.huge_pages": "only runs of many ranks; it is built on Linux alone"
    },
    "pysmpi.job.lifecycle": {"mpi4py": "`mpi4py.rc` as this rank has set it"},
    "pysmpi.job.command_lines": {"shutil": "only commands: this loads compression"},
    "pysmpi.job.programs": {
        "pysmpi.abi.elf": "only files that are executables",
        "pysmpi.abi.program": "only compiled programs",
    },
    "pysmpi.job.interpreter": {"pysmpi.abi.libraries": "few programs load libraries with MPI"},
    "pysmpi.isolation.loading.linked_mpi": {
        "tempfile": "only packages that call MPI in C: this loads compression",
    },
    "pysmpi.isolation.loading.loader": {
        "hashlib": "only recordings of compute",
        "zipfile": "few programs are archives",
    },
    "pysmpi.job.options": {"pysmpi.platform.model": "most machines are given by name"},
    "pysmpi.waiting.outside.children": {"resource": "few programs wait for children"},
    "pysmpi.patches.zmq": {"zmq": "a package of programs"},
    "pysmpi.reports.result": {
        "html": "only notebooks show results as HTML",
        "json": _OUTPUT,
        "pysmpi.reports.tables": "only callers who ask for a table",
    },
    "pysmpi.reports.tables": {
        "html": "only notebooks show tables as HTML",
        "polars": _EXTRA,
        "pyarrow": _EXTRA,
    },
    "pysmpi.shadow.estimate": {"statistics": "only with --sample"},
    "pysmpi.shadow.once": {"hashlib": "only with --once: this loads OpenSSL"},
    "pysmpi.shadow.teams": {"statistics": "only with --sample"},
    "pysmpi.time.steady": {"statistics": "only with --compute steady"},
    "pysmpi.studies.drawing": {"matplotlib": _EXTRA},
    "pysmpi.studies.lines.collectives": dict.fromkeys(("numpy", "mpi4py", "time"), _PROGRAM),
    "pysmpi.studies.mlogp.experiments": dict.fromkeys(("numpy", "mpi4py", "time"), _PROGRAM),
    "pysmpi.studies.runs": dict.fromkeys(("numpy", "mpi4py"), _PROGRAM),
    "pysmpi.studies.shared_memory.transfers": dict.fromkeys(("numpy", "mpi4py"), _PROGRAM),
    "pysmpi.studies.smpi.alltoall": dict.fromkeys(("numpy", "mpi4py"), _PROGRAM),
    "pysmpi.studies.smpi.contention": dict.fromkeys(("numpy", "mpi4py"), _PROGRAM),
    "pysmpi.studies.smpi.dft": dict.fromkeys(("time", "numpy", "mpi4py"), _PROGRAM),
    "pysmpi.studies.smpi.fan": dict.fromkeys(("numpy", "mpi4py"), _PROGRAM),
    "pysmpi.studies.smpi.npb_messages": dict.fromkeys(("time", "numpy", "mpi4py"), _PROGRAM),
    "pysmpi.studies.smpi.protocols": dict.fromkeys(("time", "numpy", "mpi4py"), _PROGRAM),
    "pysmpi.sweeps.plots": {"matplotlib": _EXTRA},
    "pysmpi.cluster.client": {"distributed": _EXTRA},
    "pysmpi.sweeps.study": {"cloudpickle": _EXTRA},
    "pysmpi.sweeps.table": {"pyarrow": _EXTRA},
    "pysmpi.text": {"difflib": "few runs have a spelling mistake"},
    "pysmpi.trace.kinds.otf2": {"otf2": _EXTRA, "_otf2": _EXTRA},
    "pysmpi.trace.tables": {"pyarrow": _EXTRA},
}


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path
    return found


MODULES = modules()


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text())


@cache
def imports(name: str) -> list[tuple[str, bool, int]]:
    """The modules that a module imports, with whether that is in a function, and the line."""

    def walk(node, late):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, late, child.lineno) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level:
                for alias in child.names:
                    full = f"{child.module}.{alias.name}"
                    yield full if full in MODULES else child.module, late, child.lineno
            inner = late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, inner)

    return list(walk(tree(name), False))


def named(name: str) -> set[str]:
    """The modules that a module imports by a name in quotes."""
    calls = [node for node in ast.walk(tree(name)) if isinstance(node, ast.Call) and node.args]
    return {
        str(call.args[0].value)
        for call in calls
        if isinstance(call.args[0], ast.Constant)
        and ast.unparse(call.func).endswith("import_module")
    }


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected parts of a graph that have several members."""
    reached = {}

    def reach(start):
        if start not in reached:
            seen, pending = set(), [start]
            while pending:
                for other in graph[pending.pop()]:
                    if other not in seen:
                        seen.add(other)
                        pending.append(other)
            reached[start] = seen
        return reached[start]

    found = {
        frozenset({name} | {other for other in reach(name) if name in reach(other)})
        for name in list(graph)
        if name in reach(name)
    }
    return [set(part) for part in found]


def test_circles_are_found():
    graph = defaultdict(set, a={"b"}, b={"c"}, c={"b"}, d={"a"})
    assert circles(graph) == [{"b", "c"}]


def test_modules_import_each_other_in_one_direction():
    """Imports in functions, for types and by name count, too."""
    graph = defaultdict(set)
    for name in MODULES:
        for other in {other for other, _, _ in imports(name)} | named(name):
            if other in MODULES and other != name and not name.startswith(f"{other}."):
                graph[name].add(other)
    found = circles(graph)
    assert not found, "\n".join(" ".join(sorted(part)) for part in found)


def covers(reasons: dict[str, str], other: str) -> bool:
    """Whether a module that is imported, or a package of it, has a reason."""
    return any(other == one or other.startswith(f"{one}.") for one in reasons)


@pytest.mark.parametrize("name", [one for one in sorted(MODULES) if "pysmpi.cli" not in one])
def test_imports_in_functions_have_a_reason(name):
    late = [(line, other) for other, inside, line in imports(name) if inside]
    without = [(line, other) for line, other in late if not covers(LATE.get(name, {}), other)]
    assert not without


def test_reasons_are_those_of_imports():
    unused = [
        f"{name}: {other}"
        for name, reasons in LATE.items()
        for other in reasons
        if not any(inside and covers({other: ""}, one) for one, inside, _ in imports(name))
    ]
    assert not unused, "\n".join(unused)


def test_late_imports_of_commands_save_time():
    """They import nothing that is loaded before the command begins."""
    code = "import sys, pysmpi.cli.main; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = set(subprocess.check_output(command, text=True, timeout=300).split())
    for name in MODULES:
        if name.startswith("pysmpi.cli."):
            found = imports(name)
            own = {statement.lineno for statement in tree(name).body}  # not those for types
            before = loaded | {other for other, _, line in found if line in own}
            useless = [(line, other) for other, inside, line in found if inside and other in before]
            assert not useless, name
