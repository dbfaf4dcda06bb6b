"""Runs cases in a process of their own, with guards of time and memory."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.cases import Cases, FuzzCase
from tests.fuzz.samples import PROGRAM, prepare

SECONDS = 10.0  # of the processor
WALL = 120.0  # seconds after which a case waits for something
MEMORY = 1 << 30
_RENEWED = 300  # cases after which the process is started again
_SHOWN = 700


def recording() -> bytes:
    """A recording of a small run."""
    from pysmpi.cli.main import status_of

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "p.py").write_text(
            "from mpi4py import MPI\nc = MPI.COMM_WORLD\nc.bcast(3)\n"
            "c.sendrecv(bytes(9), (c.rank + 1) % 2, source=(c.rank + 1) % 2)\n"
            "r = c.irecv(source=MPI.ANY_SOURCE)\nc.send(1, 1 - c.rank)\nr.wait()\nc.Dup().Free()\n"
        )
        words = ["run", "-q", "-n", "2", "--compute", "2us", "--trace", str(path / "t.jsonl")]
        assert status_of([*words, str(path / "p.py")]) == 0
        return (path / "t.jsonl").read_bytes()


class Fuzzer:
    """Runs the cases of a seed, each in a new folder; a context manager."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.most_seconds = 0.0
        self.most_memory = 0
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._left = 0
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-"))

    def __enter__(self) -> Fuzzer:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, number: int) -> str | None:
        """Run a case; what is wrong with it, or None."""
        if self._process is None or not self._left:
            self._start()
        self._left -= 1
        assert self._pipe is not None and self._process is not None
        self._pipe.send(number)
        begun = time.monotonic()
        while not self._pipe.poll(0.5):
            if not self._process.is_alive():
                break
            if time.monotonic() - begun > WALL:
                words = Cases(self.seed, b"")[number].words
                self._process.kill()
                self._stop()
                return f"runs for more than {WALL:g} s: {shown(words)}"
        try:
            words, seconds, memory, problem = self._pipe.recv()
        except EOFError:
            status = self._process.exitcode
            self._stop()
            return f"the process ended with status {status}"
        self.most_seconds = max(self.most_seconds, seconds)
        self.most_memory = max(self.most_memory, memory)
        if problem is None and seconds > SECONDS:
            problem = f"takes {seconds:.1f} s"
        if problem is None and memory > MEMORY:
            problem = f"takes {memory >> 20} MiB"
        return None if problem is None else f"{problem}: {shown(words)}"

    def _start(self) -> None:
        self._stop()
        self._pipe, other = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_serve, args=(other, self.seed, str(self.folder)))
        self._process.start()
        other.close()
        self._left = _RENEWED

    def _stop(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.join(5)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
        self._process = self._pipe = None


def shown(words: list[str]) -> str:
    """The words of a command line, shortened."""
    return " ".join(repr(word if len(word) < 60 else f"{word[:50]}...") for word in words)


def _serve(pipe: Connection, seed: int, folder: str) -> None:
    """Run cases until the pipe is closed."""
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    cases = Cases(seed, recording())
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            return
        pipe.send(execute(cases[number], Path(folder)))


def execute(case: FuzzCase, folder: Path) -> tuple[list[str], float, int, str | None]:
    """Run a case in this process: its words, seconds, bytes of memory, and what is wrong."""
    from pysmpi.cli.main import status_of

    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    prepare(folder)
    for name, data in case.files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    (folder / "ok.py").write_text(PROGRAM)
    before = os.getcwd()
    os.chdir(folder)
    _reset_peak()
    problem = None
    begun = time.process_time()
    try:
        with _captured() as (out, err):
            try:
                status = status_of(case.words)
            except BaseException:
                status = 0
                problem = f"raises {traceback.format_exc()[-_SHOWN:]}"
        text = out() + err()
    finally:
        seconds = time.process_time() - begun
        os.chdir(before)
    if problem is None and (status == 70 or "internal error" in text or "bug in pysmpi" in text):
        problem = f"internal error: {text[-_SHOWN:]}"
    program = any(name.endswith(".py") for name in case.files) or "PSM102" in text
    if problem is None and not program and "Traceback" in text:
        problem = f"traceback: {text[-_SHOWN:]}"
    if problem is None and status == 2 and not program and err().count("\n") > 3:
        problem = f"{err().count(chr(10))} lines: {err()[:_SHOWN]}"
    return case.words, seconds, _peak(), problem


@contextlib.contextmanager
def _captured():
    """Standard output and error in files, which functions read."""
    saved = os.dup(1), os.dup(2)
    files = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    sys.stdout.flush()
    sys.stderr.flush()
    streams = sys.stdout, sys.stderr
    for fd, file in zip((1, 2), files):
        os.dup2(file.fileno(), fd)

    def reader(file):
        def read() -> str:
            file.seek(0)
            return file.read(1 << 20).decode("utf-8", "replace")

        return read

    try:
        yield reader(files[0]), reader(files[1])
    finally:
        sys.stdout, sys.stderr = streams
        with contextlib.suppress(ValueError, OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        for fd, old in zip((1, 2), saved):
            os.dup2(old, fd)
            os.close(old)


def _reset_peak() -> None:
    """Let the largest memory begin with that of now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """The largest memory since then (bytes)."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
