"""What pysmpi assumes of CPython, greenlet and numpy beyond their documents: is it true?

A part that depends on such a fact asks `holds`, and goes another way if the fact is false. A false
fact may crash, so `pysmpi.job.probes` tests all of them in a process of its own: when pysmpi is
built, and at the first start after a file of CPython, greenlet, numpy or pysmpi has changed. The
results are kept in the cache directory of the user. The variable `PYSMPI_WITHOUT` switches parts
off by their names.
"""

from __future__ import annotations

import contextlib
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from zlib import crc32

from pysmpi.errors import UsageError
from pysmpi.python.installed import cache_directory, environment
from pysmpi.python.records import record
from pysmpi.version import HOME, __version__


@record
class Fact:
    """An assumption; `without` says what is different if it is false."""

    text: str
    without: str


FACTS = {
    "frame-stacks": Fact(
        "greenlet exchanges the stacks of Python frames, which CPython has in pieces of 16 KiB",
        "each rank takes 16 KiB for its frames",
    ),
    "dictionary-versions": Fact(
        "CPython tells of every change of a dictionary",
        "each switch of ranks compares all names that ranks have of their own",
    ),
    "assignments": Fact(
        "types of modules and classes assign attributes through one function each",
        "ranks share what they assign to attributes of shared modules",
    ),
    "trace-functions": Fact(
        "a thread has a tracing and a profiling function in C, each with an argument",
        "debuggers and profilers in C do not tell ranks apart",
    ),
    "builtin-functions": Fact(
        "PyCFunction_NewEx makes a built-in function that calls an object",
        "functions in the place of built-in functions are functions in Python",
    ),
    "class-dictionaries": Fact(
        "the garbage collector shows the dictionary of a class in C, and it can be written to",
        "datetime.now, and other methods of classes in C, know neither simulated time nor ranks",
    ),
    "global-names": Fact(
        "the bytecode of a function names the global variables that it assigns",
        "ranks share the global variables that functions of shared modules assign",
    ),
    "blocks": Fact(
        "a tracing function can leave a with statement at the first instruction of its body",
        "with pysmpi.sample() executes and measures every pass of its block",
    ),
    "threads": Fact(
        "threading starts, names and counts threads through the functions that pysmpi replaces",
        "threads of ranks are threads of the system, which cannot call MPI",
    ),
    "imports": Fact(
        "the import statement calls the functions of importlib that pysmpi replaces",
        "no program can run, as ranks would share its modules",
    ),
    "numpy-memory": Fact(
        "numpy has allocation handlers of version 1 (NEP 49)",
        "--fold is refused",
    ),
}

# The files whose change makes another test necessary, beside Python's own.
_IN_C = (
    "folding/hooks",
    "isolation/dict_versions",
    "isolation/frame_stacks",
    "isolation/kinds/attribute_hooks",
    "isolation/kinds/trace_hooks",
)
_LONGEST = 60.0  # (s) for the tests

_false: dict[str, str] | None = None  # the reasons, by the name of the fact


def holds(name: str) -> bool:
    """Whether a fact of `FACTS` is true."""
    assert name in FACTS
    return name not in false_facts()


def false_facts() -> dict[str, str]:
    """The false facts by name, each with its error."""
    global _false
    if _false is None:
        _false = _without()
        _false = {**_tested(), **_false}
    return _false


def assume(false: dict[str, str]) -> None:
    """Test nothing in this process: only these facts are false."""
    global _false
    _false = false


def lines() -> list[str]:
    """A line for each part that is off."""
    return [
        f"off: {name} ({reason}): {FACTS[name].without}" for name, reason in false_facts().items()
    ]


def _without() -> dict[str, str]:
    names = [name.strip() for name in os.environ.get("PYSMPI_WITHOUT", "").split(",")]
    for name in filter(None, names):
        if name not in FACTS:
            raise UsageError(f"PYSMPI_WITHOUT: expected some of {', '.join(FACTS)}, got {name!r}")
    return {name: "PYSMPI_WITHOUT" for name in names if name}


def _tested() -> dict[str, str]:
    """The false facts that are kept for these files, or that a test finds."""
    identity = _identity()
    file = os.path.join(cache_directory(), f"facts-{crc32(identity.encode()):08x}.txt")
    try:
        with open(file, encoding="utf-8") as stream:
            first, *rest = stream.read().splitlines()
        if first == identity:
            return dict(line.split(": ", 1) for line in rest)
    except (OSError, ValueError):
        pass
    false = run_tests()
    if false is None:
        return {}
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(file), exist_ok=True)
        part = f"{file}.{os.getpid()}"
        with open(part, "w", encoding="utf-8") as stream:
            stream.writelines(
                f"{line}\n" for line in [identity, *(f"{n}: {r}" for n, r in false.items())]
            )
        os.replace(part, file)
    return false


def _identity() -> str:
    """The versions and files that the facts depend on, in one line."""
    files = [sys.executable]
    for package in ("greenlet", "numpy"):
        module = sys.modules.get(package)
        spec = getattr(module, "__spec__", None) or PathFinder.find_spec(package)
        files.append(getattr(spec, "origin", None) or package)
    files += [os.path.join(HOME, name + EXTENSION_SUFFIXES[0]) for name in _IN_C]
    version = " ".join(sys.version.split())
    return "; ".join([f"pysmpi {__version__}", f"Python {version}", *map(_state, files)])


def _state(file: str) -> str:
    try:
        status = os.stat(file)
    except OSError:
        return f"{file} missing"
    return f"{file} {status.st_size} {status.st_mtime_ns}"


def run_tests(
    program: str = "from pysmpi.job import probes; probes.main()",
) -> dict[str, str] | None:
    """Test all facts in another process; returns the false ones, None if no process can start.

    `program` writes a line for each fact that it has tested: its name, a colon, and what is wrong.
    Its arguments are the names of the facts to test. If it crashes, the first of these facts for
    which there is no line is false.
    """
    import subprocess

    if not sys.executable:
        return None
    false: dict[str, str] = {}
    left = list(FACTS)
    while left:
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-c", program, *left],
                env={**environment(), "PYSMPI_WITHOUT": ""}, timeout=_LONGEST,
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return None
        for line in done.stdout.splitlines():
            name, colon, reason = line.partition(":")
            if colon and name in left:
                left.remove(name)
                if reason.strip():
                    false[name] = reason.strip()
        if not left:
            break
        if done.returncode == 0:
            return None  # not the program that was asked for
        if done.returncode > 0 and "Traceback" in done.stderr:
            last = done.stderr.strip().splitlines()[-1]
            false[left.pop(0)] = f"its test ended with {last}"
        else:
            false[left.pop(0)] = f"its test ended with status {done.returncode}"
    return false
