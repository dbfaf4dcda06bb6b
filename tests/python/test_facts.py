"""The facts about CPython, greenlet and numpy: tested, kept, and each part without its fact."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import greenlet
import pytest

from pysmpi.cli import doctor, main
from pysmpi.errors import UsageError
from pysmpi.job import probes
from pysmpi.python import facts
from tests.python.broken_facts import BREAKS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing" / "versions.md"
IN_C = {"frame-stacks", "dictionary-versions", "assignments", "trace-functions"}


def test_every_fact_has_a_probe_a_test_and_a_row() -> None:
    rows = [line.split("`")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert probes.PROBES.keys() == facts.FACTS.keys() == BREAKS.keys() == set(rows)


def test_all_facts_are_true_here() -> None:
    assert facts.run_tests() == {}


FITTED = [100]  # bytes of a stack


@pytest.mark.parametrize(
    ("stacks", "text"),
    [
        ({}, ""),
        ({"begin": lambda function, first: first}, "results of functions are mixed up"),
        ({"room": [probes.FULL]}, "expected one of less than 16 KiB"),
        ({"room": [100, 100]}, "expected one of less than 16 KiB"),
        ({"main": [[1], [2]]}, "the stack of the main greenlet is another one"),
        ({"plain": [100]}, "a greenlet has stacks of [100] bytes"),
    ],
)  # fmt: skip
def test_each_condition_of_stacks_is_looked_at(
    stacks: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stacks in Python, which can be wrong in one way each."""
    main, begun, begins = greenlet.getcurrent(), set(), []
    rooms = iter(stacks.get("main", [[1], [1]]))

    def room() -> list[int]:
        me = greenlet.getcurrent()
        if me is main:
            return next(rooms)
        return stacks.get("room", FITTED) if me in begun else stacks.get("plain", [probes.FULL])

    def beginning(function: Any) -> Any:
        begins.append(function)

        def begin() -> None:
            begun.add(greenlet.getcurrent())
            stacks.get("begin", lambda function, first: function)(function, begins[0])()

        return begin

    made = SimpleNamespace(room=room, beginning=beginning, waiting=lambda switch: switch)
    part = probes._part
    name = "pysmpi.isolation.frame_stacks"
    monkeypatch.setattr(probes, "_part", lambda one: made if one == name else part(one))
    wrong = probes.wrong("frame-stacks")
    assert text in wrong and bool(text) == bool(wrong)


def test_a_false_fact_is_noticed_also_by_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    false = facts.run_tests("from tests.python import broken_facts; broken_facts.main()")
    assert false is not None
    installed = {name for name in IN_C if doctor._has(PARTS[name])}
    assert false.keys() >= facts.FACTS.keys() - IN_C | installed, false
    assert false["frame-stacks"] == f"its test ended with status {-11}"
    assert false["imports"] == "importlib._bootstrap has no _lock_unlock_module"
    assert false["class-dictionaries"] == "the dictionary of datetime is not shown"


PARTS = {
    "frame-stacks": "pysmpi.isolation.frame_stacks",
    "dictionary-versions": "pysmpi.isolation.dict_versions",
    "assignments": "pysmpi.isolation.kinds.attribute_hooks",
    "trace-functions": "pysmpi.isolation.kinds.trace_hooks",
}


def test_nothing_is_decided_if_no_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/python")
    assert facts.run_tests() is None
    monkeypatch.setattr(sys, "executable", "")
    assert facts.run_tests() is None


# Results that are kept


@pytest.fixture
def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tests that were made, each of which finds one false fact."""
    made: list[int] = []

    def run_tests() -> dict[str, str]:
        made.append(1)
        return {"blocks": "wrong: all"}

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(facts, "run_tests", run_tests)
    return made


def again(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(facts, "_false", None)
    return facts.false_facts()


def test_results_are_kept_until_a_file_or_a_version_changes(
    count: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert again(monkeypatch) == again(monkeypatch) == {"blocks": "wrong: all"}
    assert not facts.holds("blocks") and facts.holds("imports") and len(count) == 1
    (file,) = (tmp_path / "pysmpi").iterdir()
    library = tmp_path / "library.so"
    library.write_text("a")
    monkeypatch.setattr(facts, "_IN_C", (*facts._IN_C, str(library).removesuffix(".so")))
    monkeypatch.setattr(facts, "EXTENSION_SUFFIXES", [".so"])
    again(monkeypatch)
    again(monkeypatch)
    assert len(count) == 2
    library.write_text("ab")
    again(monkeypatch)
    assert len(count) == 3
    monkeypatch.setattr(sys, "version", sys.version + " another")
    again(monkeypatch)
    assert len(count) == 4


def test_a_damaged_file_is_written_anew(
    count: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again(monkeypatch)
    (file,) = (tmp_path / "pysmpi").iterdir()
    whole = file.read_bytes()
    for damaged in (b"", b"\xff", whole[:20], whole + b"no colon"):
        file.write_bytes(damaged)
        assert again(monkeypatch) == {"blocks": "wrong: all"}
        assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_means_a_test_each_time(
    count: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pysmpi").write_text("not a directory")
    again(monkeypatch)
    assert again(monkeypatch) == {"blocks": "wrong: all"} and len(count) == 2


# What users see


def test_version_and_doctor_show_what_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_false", {})
    assert len(main.version().splitlines()) == 1
    assert [one.state for one in doctor._facts()] == ["ok"]
    monkeypatch.setattr(facts, "_false", {"blocks": "why"})
    line = f"off: blocks (why): {facts.FACTS['blocks'].without}"
    assert main.version().splitlines()[1:] == [line]
    (condition,) = doctor._facts()
    assert condition.state == "note" and "why" in condition.text


def test_a_part_is_switched_off_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "run_tests", lambda: {})
    monkeypatch.setenv("PYSMPI_WITHOUT", " blocks, threads")
    assert again(monkeypatch).keys() == {"blocks", "threads"}
    monkeypatch.setenv("PYSMPI_WITHOUT", "block")
    with pytest.raises(UsageError, match="expected some of .*blocks.*, got 'block'"):
        again(monkeypatch)


def test_containers_that_a_library_lacks_are_named() -> None:
    table = {
        "json.decoder": ("BACKSLASH", "gone", "JSONDecoder.gone.*"),
        "numpy.no": ("things",),
        "no_such_library": ("things",),
        "logging.gone": ("things+",),
        "codecs": ("BOM",),
    }
    missing = ["json.decoder.gone", "json.decoder.JSONDecoder.gone", "logging.gone.things"]
    assert probes.containers(table) == ({"json", "logging", "codecs"}, [*missing, "codecs.BOM"])


def test_installed_libraries_have_their_containers() -> None:
    conditions = list(doctor._libraries())
    assert all(one.state == "ok" for one in conditions), conditions


# Programs without the facts

PROGRAM = """
import datetime, json, threading, time
import pysmpi
from mpi4py import MPI
comm = MPI.COMM_WORLD
passes = 0
for i in range(6):
    with pysmpi.sample(iters=2):
        passes += 1
got = []
thread = threading.Thread(target=lambda: got.append(7))
thread.start()
thread.join()
json.loads('{"a": 1}')
time.sleep(1.0)
begin = MPI.Wtime()
total = comm.allreduce(comm.rank)
right = [comm.sendrecv(i, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
         for i in range(3)]
print(comm.rank, total, right, got == [7], begin > 0.9)
"""
CHECKS = """
import datetime, sys, time
from types import FunctionType, ModuleType
from pysmpi.errors import UsageError
from pysmpi.folding import handler
from pysmpi.isolation import versions
from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds import assigned, attributes, thread_hooks
from pysmpi.patching import lookalike
from pysmpi.patching.patches import Patches
from pysmpi.patching.replacing import methods
from pysmpi.ranks import switching
off = {
    "frame-stacks": switching.waiting is switching.beginning,
    "dictionary-versions": versions.Versions is versions.NoVersions,
    "assignments": attributes.attribute_hooks is None,
    "trace-functions": thread_hooks._read is thread_hooks._read_python,
    "builtin-functions": type(lookalike.like(len, lambda thing: 0)) is FunctionType,
}
methods(Patches(), datetime.datetime, {"now": classmethod(lambda cls: 0)})
off["class-dictionaries"] = datetime.datetime.now() != 0
module = ModuleType("module")
exec("def assign():\\n global name\\n name = 1\\n", vars(module))
names = assigned.Assigned(Exchange(sys.modules, {}, versions.NoVersions))
names.watch(module)
off["global-names"] = not names.names
try:
    handler.AllocationHandlers(0, 0)
except UsageError as error:
    off["numpy-memory"] = "--fold: numpy" in str(error) or "C compiler" in str(error)
print(*sorted(name for name in off if not off[name]))
"""


def python(*arguments: str, without: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSMPI_WITHOUT": without},
        capture_output=True,
        text=True,
    )


def test_programs_run_without_all_parts(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    run = ("-m", "pysmpi", "run", "-n", "3", "-q", str(file))
    optional = ",".join(facts.FACTS.keys() - {"imports"})
    results = [python(*run, without=names) for names in ("", optional)]
    assert [one.stderr for one in results] == ["", ""]
    with_all, without = (sorted(one.stdout.splitlines()) for one in results)
    assert with_all == without
    assert with_all == [f"{r} 3 [0, 1, 2] True True" for r in range(3)]


def test_each_part_is_off_without_its_fact() -> None:
    done = python("-c", CHECKS, without=",".join(facts.FACTS))
    assert (done.stdout, done.stderr) == ("\n", "")


def test_a_run_needs_the_functions_of_imports(tmp_path: Path) -> None:
    done = python("-m", "pysmpi", "run", "-c", "1", without="imports")
    assert done.returncode == 2 and "imports modules in another way" in done.stderr
