"""The examples for contributors: each is put into the file that it names, and then used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACE = re.compile(r"^(?P<code>.*?)  # in (?P<file>\S+\.py)$", re.MULTILINE)

PROGRAM = """\
from array import array
from mpi4py import MPI

comm = MPI.COMM_WORLD
if hasattr(comm, "Send_short"):
    mine, received = array("d", [comm.rank] * 100), array("d", [-1.0] * 100)
    begin = MPI.Wtime()
    comm.Rotate(mine, received)
    assert MPI.Wtime() > begin
    assert received[99] == (comm.rank - 1) % comm.size, received
    if comm.rank == 0:
        assert comm.Send_short(mine, 1) and not comm.Send_short(array("d", [1.0] * 1000), 1)
    elif comm.rank == 1:
        comm.Recv(received, source=0)
        assert received[0] == 0.0
    print("made all calls")
comm.bcast(5)
"""


def examples() -> dict[str, list[str]]:
    """The blocks of the page by the file that their comment names."""
    found: dict[str, list[str]] = {}
    pages = (ROOT / "docs" / "contributing").glob("*.md")
    page = "\n".join(path.read_text() for path in sorted(pages, reverse=True))
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        place = PLACE.search(block.splitlines()[0])
        if place is not None:
            found.setdefault(place["file"], []).append(PLACE.sub(r"\g<code>", block))
    return found


def entry_points() -> str:
    """The entry points of the distribution on the page."""
    page = (ROOT / "docs" / "contributing" / "extending.md").read_text()
    return re.findall(r"^```ini\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]


def insert(path: Path, block: str) -> None:
    """Put a block into a file: a class that the file has already gets more members."""
    old = path.read_text() if path.exists() else "from __future__ import annotations\n\n"
    head = re.match(r"class (\w+):\n", block)
    if head is None:
        path.write_text(f"{old}\n{block}")
        return
    body = block[head.end() :]
    new, count = re.subn(rf"^class {head[1]}\b.*\n(    \"\"\".*\n)?", rf"\g<0>{body}\n\n", old,
                         flags=re.MULTILINE)  # fmt: skip
    assert count == 1, head[1]
    path.write_text(new)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Runs pysmpi with all examples in their places; returns a finished process."""
    folder = tmp_path_factory.mktemp("design")
    site = folder / "site"
    # With the byte code, which is still valid; without compiled modules.
    shutil.copytree(ROOT / "pysmpi", site / "pysmpi", ignore=shutil.ignore_patterns("*.so"))
    (site / "design_examples").mkdir()
    for file, blocks in examples().items():
        path = site / file if file.startswith("design_examples/") else site / "pysmpi" / file
        for block in blocks:
            insert(path, block)
    info = site / "design_examples-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: design-examples\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points())
    (folder / "program.py").write_text(PROGRAM)
    (site / "design_counter.py").write_text(COUNTER)

    def run(*arguments, status=0):
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", *map(str, arguments)], cwd=folder, text=True,
            capture_output=True, env={**os.environ, "PYTHONPATH": str(site)}, timeout=300,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done

    run.folder = folder
    return run


def test_examples_are_found():
    files = set(examples())
    own = {file for file in files if not file.startswith("design_examples/")}
    point_to_point = {file for file in own if "point_to_point" in file}
    assert len(point_to_point) == 1 and len(own - point_to_point) <= 3
    assert len(files - own) == 7


def test_calls_and_formats(installed):
    """A call, a collective operation with its algorithm, a format of timelines, an instrument."""
    done = installed("run", "-n", 3, "--compute", "none", "--coll", "rotate=default",
                     "--trace", "run.names", "--instrument", "late:waits.txt",
                     "program.py")  # fmt: skip
    assert done.stdout.count("made all calls") == 3
    waits = [line.split() for line in (installed.folder / "waits.txt").read_text().splitlines()]
    assert waits and all(rank in "012" and int(count) > 0 for rank, count in waits)
    lines = (installed.folder / "run.names").read_text().splitlines()
    assert {"0 Rotate", "2 Rotate", "0 Send_short"} <= set(lines)


RING = """\
name: ring
clusters:
  - name: ring
    hosts: n[0-7]
    link: {bandwidth: 1GBps, latency: 10ms}
    topology: {kind: one_way_ring, hosts: 8}
"""

TIMES = """\
import time
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
message = numpy.zeros(1000000, "b")
for source, target in ((0, 3), (3, 0)):
    comm.Barrier()
    begin = 10.0 * (source + 1)
    time.sleep(begin - MPI.Wtime())
    if comm.rank == source:
        comm.Send(message, target)
    elif comm.rank == target:
        comm.Recv(message, source)
        print(round(MPI.Wtime() - begin, 3))
"""


def test_models_zones_and_algorithms(installed):
    """On the ring there are 3 links forth and 5 back; a link takes 10 ms and 1 ms."""
    (installed.folder / "ring.yaml").write_text(RING)
    (installed.folder / "times.py").write_text(TIMES)
    options = ("--platform", "ring.yaml", "--map-by", "node", "--compute", "none")
    done = installed("run", "-n", 8, *options, "--model", "hops", "times.py")
    assert [float(line) for line in done.stdout.split()] == [0.033, 0.055]
    done = installed("run", "-n", 8, *options, "--model", "fluid", "times.py")
    assert [float(line) for line in done.stdout.split()] == [0.031, 0.051]
    listed = installed("models").stdout + installed("collectives").stdout
    for line in ("each link takes the whole message", "root sends to all, one after", "  stars "):
        assert line in listed
    for choice in (("--coll", "bcast=star"), ("--selector", "stars")):
        installed("run", "-n", 4, *choice, "--compute", "none", "program.py")


COUNTER = """\
options = {}
_levels = [0]


def level():
    return _levels[0]


def set_level(value):
    _levels[0] = value
"""

COUNTING = """\
import design_counter
from mpi4py import MPI

comm = MPI.COMM_WORLD
design_counter.options[comm.rank] = True
design_counter.set_level(comm.rank)
comm.Barrier()
print(comm.rank, design_counter.level(), *design_counter.options)
"""


@pytest.mark.parametrize("patched", [True, False])
def test_patches_of_libraries(installed, patched):
    """Without its patch, a library that ranks share has one state for all of them."""
    file = installed.folder / "site" / "design_examples" / "counter.py"
    text = file.read_text()
    (installed.folder / "counting.py").write_text(COUNTING)
    try:
        if not patched:
            file.write_text("")
        done = installed("run", "-n", 3, "-q", "--compute", "none", "--shared", "design_counter",
                         "counting.py")  # fmt: skip
    finally:
        file.write_text(text)
    lines = sorted(done.stdout.splitlines())
    assert (lines == [f"{rank} {rank} {rank}" for rank in range(3)]) is patched, lines


def test_checkers(installed):
    done = installed("run", "-n", 2, "-q", "--compute", "none", "--check", "limit", "program.py",
                     status=3)  # fmt: skip
    line = 1 + PROGRAM.splitlines().index("comm.bcast(5)")
    assert done.stderr.startswith(
        f"PSM900 pickled broadcast: bcast\n  ranks 0-1  bcast(root=0)  program.py:{line}\n"
    )
    assert "without pickling" in done.stderr
    assert "PSM900" in installed("explain", "PSM900").stdout
