"""The bar of an analysis and its page for a big run: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pysmpi.analysis.steps import MANY

PROGRAM = f"""\
import sys
from mpi4py import MPI
for _ in range({MANY} // 2 if sys.argv[1:] else 1):
    MPI.COMM_WORLD.Barrier()
"""
SHORT = ["graph of events", "critical path"]
pty = pytest.importorskip("pty", reason="there are no terminals")


def on_a_terminal(command: list[str], folder: Path) -> tuple[str, str]:
    """Stdout of a command, and what a terminal gets from its stderr."""
    terminal, side = pty.openpty()
    try:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=side, text=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        )  # fmt: skip
    finally:
        os.close(side)
    shown = b""
    try:
        while data := os.read(terminal, 1 << 16):
            shown += data
    except OSError:  # Linux: the program has closed the terminal
        pass
    os.close(terminal)
    output = process.communicate(timeout=100)[0]
    assert process.returncode == 0, shown.decode()
    return output, shown.decode()


def test_steps_are_shown_on_a_terminal_only(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "pysmpi"]
    run = [*command, "run", "-q", "-n", "2", "--compute", "none"]
    record = [*run, "--trace", "a.jsonl", "prog.py", "many"]
    subprocess.run(record, cwd=tmp_path, check=True, timeout=100)
    replay = [*command, "replay", "-q", "a.jsonl"]
    for line, steps in (
        ([*command, "view", "a.jsonl"], ["reading", *SHORT, "page"]),
        ([*command, "view", "a.jsonl", "--text"], ["reading", *SHORT]),
        ([*replay, "--view", "b.html"], [*SHORT, "page"]),
        ([*run, "--view", "c.html", "prog.py", "many"], [*SHORT, "page"]),
        ([*run, "--view", "d.html", "prog.py"], []),  # a small run
    ):
        plain = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert plain.returncode == 0 and "%" not in plain.stderr, plain.stderr
        output, text = on_a_terminal(line, tmp_path)
        assert output == plain.stdout
        places = [text.find(f"%  {step}") for step in steps]
        assert -1 not in places and places == sorted(places), (line, text)
        assert (" 0%" in text and "100%" in text) == bool(steps), (line, text)
        assert text.replace("\r\n", "\n").endswith(plain.stderr)
