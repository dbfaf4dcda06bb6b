"""Names from files of others cannot control a terminal; values of variables stay secret."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pysmpi.text import visible
from tests.processes_of import Mark

WICKED = "\\e]0;title\\a\\e[31m\\x9b2J"
PLATFORM = (
    f'name: "evil{WICKED}"\nclusters:\n'
    f'  - {{name: "c{WICKED}", hosts: "n{WICKED}[0-3]", '
    "network: {bandwidth: 1GBps, latency: 1us}}\n"
)  # fmt: skip
PROGRAM = (
    "from mpi4py import MPI\nif MPI.COMM_WORLD.rank == 0: raise ValueError('\\x1b]0;title\\x07')\n"
)


def test_control_characters_become_escapes():
    assert visible("a\x1b[31m\tb\n\x9b\x7f\u202e\ud800é") == (
        "a\\x1b[31m\tb\n\\x9b\\x7f\\u202e\\ud800é"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["platform", "check", "evil.yaml"], ["platform", "show", "evil.yaml"],
        ["platform", "convert", "evil.yaml"],
        ["run", "--platform", "evil.yaml", "-n", "2", "wrong.py"],
        ["run", "-n", "2", "no\x1b[31msuch.py"], ["run", "--model", "hyb\x1b[31mrid", "x.py"],
        ["explain", "PSM\x1b[31m"], ["replay", "no\x1b]0;x\x07.jsonl"],
        ["sweep", "study.yaml"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)  # fmt: skip
def test_names_of_others_do_not_reach_the_terminal(status, write, arguments):
    write("evil.yaml", PLATFORM)
    write("wrong.py", PROGRAM)
    write("study.yaml", f'program: "x{WICKED}.py"\n')
    _, out, err = status(*arguments)
    assert visible(out + err) == out + err
    assert "Traceback" not in err or "wrong.py" in arguments


def test_values_of_variables_are_in_no_report(pysmpi, write, tmp_path: Path):
    write("stuck.py", "from mpi4py import MPI\nMPI.COMM_WORLD.recv()\n")
    words = ["-x", "PASSWORD=hunter1", "-genv", "TOKEN", "hunter2", "-genv", "KEY=hunter3"]
    done = pysmpi(
        "run", "-n", "1", *words, "--report", "r.json", "--view", "p.html", "stuck.py", ":",
        "-n", "1", "-env", "SECRET", "hunter4", "stuck.py",
    )  # fmt: skip
    assert done.returncode == 3
    assert "-x PASSWORD -x TOKEN -x KEY" in done.stderr and "-x SECRET" in done.stderr
    assert "hunter" not in done.stderr + done.stdout
    for path in tmp_path.iterdir():
        assert "hunter" not in path.read_text()
    done = pysmpi("explore", "-n", "2", "-x", "PASSWORD=hunter1", "--json", "-", "stuck.py")
    assert done.returncode == 1 and "hunter" not in done.stderr + done.stdout


ORDERS = """
from mpi4py import MPI
world = MPI.COMM_WORLD
for i in range(3):
    if world.rank:
        world.send(i, 0)
    else:
        [world.recv() for _ in range(world.size - 1)]
"""


def test_an_exploration_goes_on_from_json_and_unpickles_nothing(pysmpi, write, tmp_path: Path):
    write("orders.py", ORDERS)
    words = ["explore", "-n", "3", "-j", "1", "orders.py"]
    first = pysmpi(*words[:1], "--runs", "5", *words[1:])
    (kept,) = (tmp_path / ".pysmpi").glob("explore-*")
    assert kept.suffix == ".json" and kept.stat().st_mode & 0o077 == 0
    whole = kept.read_text()
    assert json.loads(whole)["version"] == 1

    class Exploit:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'exploited'}",)

    data = json.loads(whole)
    wrong = [b"", pickle.dumps(Exploit()), b"[" * 10**5, b"{}", b'{"version": 1, "trees": 3}']
    for change in (
        lambda tree: tree.pop(), lambda tree: tree[5][1].__setitem__(0, 10**9),
        lambda tree: tree[5][1][1].__setitem__(0, 5), lambda tree: tree[6][0].__setitem__(2, -1),
        lambda tree: tree[7].__setitem__(3, "x"), lambda tree: tree[5].clear(),
        lambda tree: tree.__setitem__(3, 1), lambda tree: tree[4].append("x"),
    ):  # fmt: skip
        changed = json.loads(whole)
        change(changed["trees"][0])
        wrong.append(json.dumps(changed).encode())
    from pysmpi.errors import UsageError
    from pysmpi.explore.database import Database

    for text in wrong:
        kept.write_bytes(text)
        with pytest.raises(UsageError, match="expected an exploration that this version"):
            Database(str(kept.parent)).load_state(kept.stem.partition("-")[2])
    assert not (tmp_path / "exploited").exists()
    kept.write_text(json.dumps(data))
    again = pysmpi(*words[:1], "--resume", *words[1:])
    assert first.returncode == 4  # the search was bounded
    assert again.returncode == 0, again.stderr
    assert re.search(r"continued after [1-5] earlier executions", again.stderr)
    assert "all relevantly different orders were explored" in again.stderr


STUDY = "program: slow.py\nranks: [1, 2]\noptions: {compute: none}\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_killed_sweep_leaves_no_process(write, tmp_path: Path):
    write("study.yaml", STUDY)
    write("slow.py", "import subprocess, mpi4py.MPI\nsubprocess.run(['sleep', '100'])\n")
    mark = Mark()
    sweep = subprocess.Popen(
        [sys.executable, "-m", "pysmpi", "sweep", "study.yaml", "--workers", "2"],
        cwd=tmp_path, env=mark.variables, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while sum(line.startswith("sleep") for line in mark.processes().values()) < 2:
            assert time.monotonic() < until and sweep.poll() is None
            time.sleep(0.05)
        # Killed, it leaves no server, case or child of a rank.
        sweep.kill()
        sweep.communicate(timeout=300)
        assert mark.left() == []
    finally:
        mark.clear()
        sweep.kill()
