"""Random MPI programs give the same data under pysmpi and under a real MPICH.

Starting processes takes long, so each number of ranks does all of its programs in one run. More
of them: PYSMPI_PROGRAMS=3000 pytest tests/differential/test_random_programs.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import draws
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "random_program.py"
PROGRAMS = int(os.environ.get("PYSMPI_PROGRAMS", "120"))
RANKS = (2, 3, 4)
ELEMENTS = st.sampled_from(("i2", "i4", "u8", "f8"))
SMALL = st.integers(0, 3)
COUNTS = st.sampled_from((0, 1, 2, 3, 7, 40))


@st.composite
def datatypes(draw: st.DrawFn, depth: int = 2) -> object:
    """A description that `random_program.build` takes."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(ELEMENTS)
    inner = datatypes(depth - 1)
    some = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 3), min_size=some, max_size=some))
    gaps = draw(st.lists(SMALL, min_size=some, max_size=some))
    kind = draw(st.sampled_from((
        "contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block", "struct",
        "subarray", "resized",
    )))  # fmt: skip
    if kind == "contiguous":
        return [kind, some, draw(inner)]
    if kind in ("vector", "hvector"):
        return [kind, some, lengths[0], gaps[0], draw(inner)]
    if kind in ("indexed", "hindexed"):
        return [kind, lengths, gaps, draw(inner)]
    if kind == "indexed_block":
        return [kind, lengths[0], gaps, draw(inner)]
    if kind == "struct":
        return [kind, lengths, [draw(inner) for _ in lengths]]
    if kind == "subarray":
        starts = [draw(SMALL) for _ in lengths]
        sizes = [n + at + gap for n, at, gap in zip(lengths, starts, gaps, strict=True)]
        return [kind, sizes, lengths, starts, draw(st.booleans()), draw(inner)]
    return [kind, draw(st.sampled_from((0, 0, -8, 8))), 8 * draw(SMALL), draw(inner)]


SENDS = ("Send", "Ssend", "Bsend", "Isend", "Issend", "Send_init")
RECEIVES = ("Recv", "Irecv", "Recv_init", "Probe", "Mprobe", "Improbe")
ACCESSES = st.sampled_from(
    ("put", "get", "accumulate", "get_accumulate", "no_op", "fetch", "swap", "request")
)
EPOCHS = st.sampled_from(("fence", "groups", "lock_all", "shared"))
# Draws of each kind of step besides the numbers that all steps have.
FIELDS = {
    "pair": {
        "type": datatypes(), "send": st.sampled_from(SENDS), "recv": st.sampled_from(RECEIVES),
        "any": st.booleans(), "flat": st.booleans(),
    },
    "shift": {
        "type": datatypes(), "send": st.sampled_from(SENDS), "recv": st.sampled_from(RECEIVES),
    },
    "fan": {"type": datatypes(), "wait": st.sampled_from(("all", "any", "some", "test"))},
    "objects": {"way": st.sampled_from(("sendrecv", "blocking", "mprobe", "irecv", "any"))},
    "packing": {"type": datatypes()},
    "bcast": {"type": datatypes()},
    "regular": {
        "type": datatypes(),
        "name": st.sampled_from(("Gather", "Scatter", "Allgather", "Alltoall")),
    },
    "varying": {
        "name": st.sampled_from(("Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw")),
    },
    "reduction": {
        "name": st.sampled_from(
            ("Reduce", "Allreduce", "Scan", "Exscan", "Reduce_scatter", "Reduce_scatter_block")
        ),
        "operator": st.one_of(st.integers(0, 9), st.sampled_from(("MINLOC", "MAXLOC", "own"))),
    },
    "object_collective": {
        "name": st.sampled_from((
            "bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce", "scan",
            "exscan",
        )),
    },
    "neighbours": {},
    "one_sided": {"access": ACCESSES, "epoch": EPOCHS},
    "shared_window": {},
    "file": {"access": ACCESSES},
    "partitioned": {"type": datatypes()},
    "groups": {}, "bridge": {}, "attributes": {}, "from_group": {}, "large": {},
}  # fmt: skip


@st.composite
def steps(draw: st.DrawFn) -> dict:
    do = draw(st.sampled_from(sorted(FIELDS)))
    step = {
        "do": do, "comm": draw(st.integers(0, 5)), "a": draw(SMALL), "b": draw(SMALL),
        "count": draw(COUNTS), "salt": draw(st.integers(0, 50)), "dtype": draw(ELEMENTS),
        "in_place": draw(st.booleans()),
        "kind": draw(st.sampled_from(("int", "str", "dict", "bytes", "list"))),
        "form": draw(st.sampled_from(("blocking", "nonblocking", "persistent"))),
        "counts": draw(st.lists(st.sampled_from((0, 1, 2, 5, 30)), min_size=1, max_size=4)),
    }  # fmt: skip
    return step | {name: draw(strategy) for name, strategy in FIELDS[do].items()}


COMMUNICATORS = st.fixed_dictionaries({
    "parent": SMALL, "a": SMALL, "b": SMALL,
    "kind": st.sampled_from(
        ("dup", "clone", "split", "create", "create_group", "cart", "cart", "ring")
    ),
})  # fmt: skip
PROGRAM_STRATEGY = st.fixed_dictionaries({
    "comms": st.lists(COMMUNICATORS, max_size=3),
    "steps": st.lists(steps(), min_size=1, max_size=6),
})  # fmt: skip


def draw_programs(number: int, start: int) -> list[dict]:
    """As many programs, the same all day."""
    draws.say()
    found: list[dict] = []

    @seed(draws.SEED * 100 + start)
    @settings(
        max_examples=number, phases=(Phase.generate,), database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(PROGRAM_STRATEGY)
    def collect(program: dict) -> None:
        found.append(program)

    collect()
    return found


def run(command: list[str], folder: Path, name: str) -> list:
    """The observations of all ranks, by rank and program."""
    out = folder / name
    done = subprocess.run(
        [*command, str(PROGRAM), str(folder / "programs.json"), str(out)],
        capture_output=True, text=True, timeout=60 + PROGRAMS,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, f"{name}: {done.stderr[-4000:]}"
    return json.loads(out.read_text())


@pytest.mark.parametrize("ranks", RANKS)
def test_same_data(ranks: int, tmp_path: Path) -> None:
    if shutil.which("mpiexec") is None:
        pytest.skip("no mpiexec on this machine: there is no real MPI to compare with")
    programs = draw_programs(-(-PROGRAMS // len(RANKS)), ranks)
    (tmp_path / "programs.json").write_text(json.dumps(programs))
    simulated = [sys.executable, "-m", "pysmpi", "run", "-q", "--compute", "none"]
    ours = run([*simulated, "-n", str(ranks)], tmp_path, "pysmpi")
    theirs = run(["mpiexec", "-n", str(ranks), sys.executable], tmp_path, "mpich")
    assert len(ours) == len(theirs) == ranks
    for rank, (got, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert len(got) == len(expected) == len(programs)
        for program, mine, real in zip(programs, got, expected, strict=True):
            if mine == real:
                continue
            whats = [*program["comms"], *program["steps"]]
            (first, *_) = (i for i, (x, y) in enumerate(zip(mine, real)) if x != y)
            pytest.fail(
                f"rank {rank} of {ranks} at {whats[first]}:\npysmpi {mine[first]}\n"
                f"MPICH  {real[first]}\nof the program {json.dumps(program)}"
            )
