"""A process that a rank starts ends also if the job is killed before it has noted its number."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.processes_of import Mark

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="finding all processes needs /proc"
)

PROGRAM = """
import os, subprocess, sys, time
import pysmpi
from pysmpi.own_process.descendants import WatchedJob

owner, getpid, kill, sleep, add = os.getpid(), os.getpid, os.kill, time.sleep, WatchedJob.add

def killed(self, pid):
    if getpid() == owner:
        # A child is not found by its variables before it runs its own program.
        sleep(0.5)
        kill(owner, 9)
    add(self, pid)

WatchedJob.add = killed

def main(how):
    if how == "popen":
        subprocess.Popen(["sleep", "300"])
    elif how == "system":
        os.system("sleep 300")
    elif how == "spawn":
        os.posix_spawnp("sleep", ["sleep", "300"], os.environ)
    elif os.fork() == 0:
        time.sleep(300)

pysmpi.run(main, 2, compute="none", args=sys.argv[1:])
"""


def test_it_ends(tmp_path):
    path = tmp_path / "killed.py"
    path.write_text(PROGRAM)
    started = {}
    for how in ("popen", "system", "spawn", "fork"):
        mark = Mark()
        process = subprocess.Popen(
            [sys.executable, str(path), how],
            env=mark.variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started[how] = mark, process
    for how, (mark, process) in started.items():
        try:
            status = process.wait(100)
            assert status == -9, (how, process.stderr.read())
            assert mark.left() == [], how
        finally:
            mark.clear()
            process.kill()
            process.stderr.close()
