"""The progress line on a terminal."""

from __future__ import annotations

import io
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pysmpi.cli.progress import Screen

pty = pytest.importorskip("pty", reason="terminals are those of POSIX")

COMPUTING = """
import os
from mpi4py import MPI
print("begun")
while not os.path.exists("enough"):
    pass
print("ended")
"""

FORKING = """
import os

def threads():
    # Those named pysmpi wait in C for ranks that no longer return, and run no Python.
    place = "/proc/self/task"
    names = [open(f"{place}/{one}/comm").read() for one in os.listdir(place)]
    return sum(not name.startswith("pysmpi ") for name in names)

while threads() < 2:
    pass
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print("threads", threads())
"""


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Callable[..., Callable[[bytes], bytes]]]:
    """`shown(word, ...)` runs a command on a terminal; the result reads the screen up to a text."""
    terminal, other = pty.openpty()
    started: list[subprocess.Popen[bytes]] = []
    seen = b""

    def until(text: bytes) -> bytes:
        nonlocal seen
        while text not in seen:
            assert select.select([terminal], [], [], 60)[0], seen
            seen += os.read(terminal, 1000)
        return seen

    def start(*words: str) -> Callable[[bytes], bytes]:
        command = [sys.executable, "-m", "pysmpi", *words]
        started.append(subprocess.Popen(command, cwd=tmp_path, stdout=other, stderr=other))
        os.close(other)
        return until

    yield start
    for process in started:
        process.kill()
        process.wait(timeout=300)
    os.close(terminal)


def test_a_program_that_computes_shows_its_progress(shown, tmp_path: Path):
    (tmp_path / "prog.py").write_text(COMPUTING)
    until = shown("run", "--compute", "none", "prog.py")
    assert b"begun\r\n" in until(b"1 rank running, 0 events")
    (tmp_path / "enough").touch()
    # The line is cleared before the program prints, and does not come back.
    seen = until(b"0 messages")
    assert seen.index(b"\r\x1b[Kended\r\n") < seen.index(b"pysmpi: predicted time")
    assert seen.count(b"rank running", seen.index(b"ended")) == 0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_a_program_forks_without_the_thread_of_the_line(shown):
    assert b"threads 1\r\n" in shown("run", "--compute", "none", "-c", FORKING)(b"0 messages")


def test_tuning_names_the_operation_that_it_tries(shown):
    until = shown("collectives", "tune", "-n", "4", "--ops", "bcast", "--sizes", "8,64")
    seen = until(b"pysmpi: trying bcast of 64 bytes\r\x1b[K")
    assert b"pysmpi: trying bcast of 8 bytes\r\x1b[K" in seen


@pytest.mark.parametrize("drawn", [False, True])
def test_the_screen_knows_whether_a_line_has_begun(drawn: bool) -> None:
    """The progress line goes while a program prints, and waits for the end of its line."""
    cleared: list[bool] = []
    screen = Screen(io.BytesIO(), write_through=True)
    progress = SimpleNamespace(
        drawing=threading.Lock(), shown=drawn, clear=lambda: cleared.append(True)
    )
    screen.progress = progress  # type: ignore[assignment]
    assert screen.fresh
    texts = {"a": False, "": False, "\n": True, "b\nc": False, "d\n": True, "\n\n": True}
    for text, fresh in texts.items():
        assert screen.write(text) == len(text)
        assert screen.fresh == fresh, text
        assert not progress.drawing.locked()
    assert cleared == [True] * len(texts) * drawn
    assert screen.buffer.getvalue() == "".join(texts).encode()  # type: ignore[attr-defined]
