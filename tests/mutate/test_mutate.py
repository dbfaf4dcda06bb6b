"""Broken places are chosen by seed, change what they say, and tests are asked to notice them."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.mutate.__main__ import ROOT, main
from tests.mutate.mutations import Mutation, mutations
from tests.mutate.rooms import Place, choose, files, own_tests, rooms
from tests.mutate.trials import SUBREAPER, Copy

SOURCE = b'''"""Doc 1."""
LIMIT = 1 << 4
SIZES = (1, 2)


def function(a: "list[int]", b: int = 3) -> int:
    """Not 5 < 6."""
    if not a:
        raise ValueError(f"{1 + 2} < {b}")
    while a and b < 4:
        a.pop(b, b + 1)
        b = b if a is None else 0
    table = Table("""
    P < 4  <4:1 <8:2 <16:3 <32:4 else:5
    """)
    return table.choose(b, a[0])


class Kind:
    def __repr__(self):
        return "a" * 4
'''


def changes(source: bytes) -> set[tuple[str, str, str]]:
    return {(place.kind, place.before.strip(), place.after.strip()) for place in mutations(source)}


def test_what_is_broken_and_what_is_not() -> None:
    assert changes(SOURCE) == {
        ("constant", "1", "2"), ("constant", "2", "3"),  # of SIZES, not of LIMIT
        ("constant", "3", "4"), ("branch", "not a", "a"), ("boolean", "and", "or"),
        ("statement", 'raise ValueError(f"{1 + 2} < {b}")', "pass"),
        ("comparison", "<", ">"), ("constant", "4", "5"),
        ("statement", "a.pop(b, b + 1)", "pass"), ("arguments", "b, b + 1", "b + 1, b"),
        ("arithmetic", "+", "-"), ("branch", "a is None", "(not (a is None))"),
        ("comparison", "is", "is not"), ("constant", "0", "1"),
        ("cell", "1", "2"), ("cell", "2", "3"), ("cell", "3", "4"), ("cell", "4", "5"),
        ("cell", "5", "6"), ("arguments", "b, a[0]", "a[0], b"),
    }  # fmt: skip


def test_each_leaves_a_program_with_as_many_lines() -> None:
    for path in [*files(ROOT, "kernel"), *files(ROOT, "text")]:
        source = path.read_bytes()
        places = mutations(source)
        for place in places[:: max(1, len(places) // 20)]:
            if place.compiles(source):
                broken = place.applied(source)
                assert broken != source
                assert broken.count(b"\n") == source.count(b"\n"), place


def test_the_choice_depends_on_the_seed_alone_and_has_every_package() -> None:
    first = choose(ROOT, 1, 100)
    assert first == choose(ROOT, 1, 100) != choose(ROOT, 2, 100)
    assert len(first) == 100
    assert {place.room for place in first} == set(rooms(ROOT)) - {"version"}
    assert choose(ROOT, 1, 5, ["kernel"]) == choose(ROOT, 1, 10, ["kernel"])[:5]


def test_every_package_has_tests_and_the_likeliest_come_first() -> None:
    for place in choose(ROOT, 0, len(rooms(ROOT)) - 1):
        assert own_tests(ROOT, place), place.room
    path = "pysmpi/kernel/matching.py"
    place = Place("kernel", path, mutations((ROOT / path).read_bytes())[0])
    assert own_tests(ROOT, place)[0] == "tests/kernel/test_matching.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one function and two tests of it."""
    root = tmp_path / "project"
    for name, text in {
        "pysmpi/__init__.py": "",
        "pysmpi/pytest_plugin/__init__.py": "",
        "pysmpi/pytest_plugin/plugin.py": "",  # an entry point of the real one
        "pysmpi/text.py": "def half(n):\n    return n // 2 if n > 1 else n + 0\n",
        "tests/text/test_half.py": (
            "import time\nfrom pysmpi.text import half\n"
            "def test_large():\n    assert half(8) == 4\n"
        ),
        "tests/text/test_wrong.py": "def test_wrong():\n    assert False\n",
        "tests/text/test_unreadable.py": "import half_of_nothing\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def test_verdicts(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that fails without the break says nothing, and the project stays as it is."""
    monkeypatch.setattr("tests.mutate.rooms.TESTS", {})
    source = (project / "pysmpi/text.py").read_bytes()
    copy = Copy(project, tmp_path / "copy")
    places = {place.before.strip(): place for place in mutations(source)}

    def tried(mutation: Mutation, seconds: float = 60) -> tuple[str, str]:
        verdict = copy.try_place(Place("text", "pysmpi/text.py", mutation), seconds)
        return verdict.result, verdict.test

    assert tried(places["//"]) == ("killed", "tests/text/test_half.py::test_large")
    assert tried(places["+"]) == ("survived", "")  # nobody tests n = 1
    assert tried(places["//"], 0.0) == ("unfinished", "")
    assert (project / "pysmpi/text.py").read_bytes() == source
    copy.stop()
    assert tried(places["//"]) == ("unfinished", "")
    assert (tmp_path / "copy/pysmpi/text.py").read_bytes() == source


LEAVES_PROCESSES = """
import os, subprocess, sys, time
for session in (False, True):
    print(subprocess.Popen(["sleep", "infinity"], start_new_session=session).pid)
if os.fork() == 0:
    os.setsid()
    if daemon := os.fork():
        print(daemon)
        os._exit(0)
    time.sleep(1e6)
os.wait()
print("ready", flush=True)
if sys.argv[1] == "exit":
    sys.exit(7)
time.sleep(1e6)
"""
STARTER = """
import subprocess, sys
subprocess.run(sys.argv[1:])
"""


@pytest.mark.parametrize("ended_by", ["exit", "SIGTERM", "death of the starter"])
def test_nothing_outlives_a_trial(ended_by: str) -> None:
    """Neither children nor processes of other sessions, whether the trial ends or is ended."""
    command = [sys.executable, SUBREAPER, sys.executable, "-uc", LEAVES_PROCESSES, ended_by]
    if ended_by == "death of the starter":
        command[:0] = [sys.executable, "-c", STARTER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        *pids, ready = (starter.stdout.readline().strip() for _ in range(4))
        assert ready == "ready"
        try:
            if ended_by != "exit":
                starter.send_signal(9 if ended_by == "death of the starter" else 15)
            status = {"exit": 7, "SIGTERM": 128 + 15, "death of the starter": -9}
            assert starter.wait() == status[ended_by]
            if ended_by == "death of the starter":
                starter.stdout.read()  # until none of them can write any longer
            assert not any(psutil.pid_exists(int(pid)) for pid in pids)
        finally:
            for pid in map(int, pids):
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)
            starter.kill()


def test_the_command_lists_places(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--room", "text", "--count", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all("pysmpi/text.py:" in line for line in lines)
