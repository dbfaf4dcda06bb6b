"""The bar of `pysmpi view` for a big run: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n"
pty = pytest.importorskip("pty", reason="there are no terminals")


@pytest.mark.parametrize("options", [[], ["--text"]])
def test_steps_are_shown_on_a_terminal_only(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "pysmpi"]
    run = [*command, "run", "-q", "-n", "2", "--trace", "a.jsonl", "prog.py"]
    subprocess.run(run, cwd=tmp_path, check=True, timeout=100)
    view = [*command, "view", "a.jsonl", *options]
    plain = subprocess.run(view, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert plain.returncode == 0, plain.stderr
    assert plain.stderr == ("" if options else "pysmpi: wrote a.html\n")
    terminal, side = pty.openpty()
    try:
        process = subprocess.Popen(
            view, cwd=tmp_path, stdout=subprocess.PIPE, stderr=side, text=True,
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
    assert process.communicate(timeout=100)[0] == plain.stdout
    assert process.returncode == 0
    steps = ["reading", "graph of events", "critical path", *([] if options else ["page"])]
    text = shown.decode()
    places = [text.find(f"%  {step}") for step in steps]
    assert -1 not in places and places == sorted(places), text
    assert " 0%" in text and "100%" in text
    assert text.endswith("wrote a.html\r\n") != bool(options)
