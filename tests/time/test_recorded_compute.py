"""Recordings of compute know their job, and constant blocks are counted."""

from __future__ import annotations

import json

import pytest

import pysmpi
from pysmpi.cli.summary import summary
from pysmpi.errors import UsageError
from pysmpi.time.recordings import HEADER, read_recording

PROGRAM = """\
import sys
from mpi4py import MPI
for _ in range(int(sys.argv[1])):
    sum(range(1000))
    MPI.COMM_WORLD.Barrier()
"""


@pytest.fixture
def recorded(write, tmp_path, monkeypatch):
    """A program, and a recording of 3 ranks of it with the argument 4."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    program = write("program.py", PROGRAM)
    file = str(tmp_path / "compute.txt")
    pysmpi.run(program, 3, args=("4",), record_compute=file)
    return program, file


def test_the_same_job_takes_the_recorded_times(recorded):
    program, file = recorded
    result = pysmpi.run(program, 3, args=("4",), compute=file)
    assert result.remarks == []
    spent = sum(sum(blocks) for blocks in read_recording(file).blocks.values()) * 1e-9
    assert sum(rank["compute_seconds"] for rank in result.ranks) == pytest.approx(spent)


def test_the_summary_names_the_speed_of_the_recording(recorded):
    program, file = recorded
    result = pysmpi.run(program, 3, args=("4",), compute=file, platform="graphene")
    speed = f"{read_recording(file).speed / 1e9:.3g} Gflop/s a core"
    assert f"(recorded on a computer of {speed}, simulated: 3.54)" in summary(result)
    assert "(this computer:" not in summary(result)  # as a run that measures says


@pytest.mark.parametrize(
    ("change", "before", "now"),
    [
        ({"nprocs": 2}, "3 ranks", "2;"),
        ({"args": ("3",)}, "arguments 4", "arguments 3;"),
        ({"args": ("4", "-v")}, "arguments 4", "arguments 4 -v;"),
        ({"main": "other.py"}, "program.py", "other.py;"),
        ({"threads": "2"}, "OMP_NUM_THREADS=1", "OMP_NUM_THREADS=2;"),
    ],
)
def test_another_job_is_refused(recorded, write, monkeypatch, change, before, now):
    program, file = recorded
    job = {"main": program, "nprocs": 3, "args": ("4",), **change}
    if "main" in change:
        job["main"] = write("other.py", PROGRAM + "\n")
    monkeypatch.setenv("OMP_NUM_THREADS", job.pop("threads", "1"))
    with pytest.raises(UsageError) as refused:
        pysmpi.run(job.pop("main"), **job, compute=file)
    text = str(refused.value)
    assert f"it was recorded with {before}, and this run has {now}" in text
    assert text.startswith(file) and "record it again" in text and "\n" not in text


def test_several_programs_are_compared_one_by_one(write, tmp_path):
    programs = [(write("one.py", PROGRAM), 1, ("2",)), (write("two.py", PROGRAM), 2, ("2",))]
    file = str(tmp_path / "compute.txt")
    pysmpi.run(programs, record_compute=file)
    assert pysmpi.run(programs, compute=file).remarks == []
    with pytest.raises(UsageError, match="recorded with arguments 2, and this run has arguments 1"):
        pysmpi.run([programs[0], (programs[1][0], 2, ("1",))], compute=file)
    with pytest.raises(UsageError, match=r"recorded with 1 rank of one\.py, and this run has 2"):
        pysmpi.run([(*programs[0][:1], 2, ("2",)), (*programs[1][:1], 1, ("2",))], compute=file)
    with pytest.raises(UsageError, match="recorded with 2 programs, and this run has 1"):
        pysmpi.run(programs[0][0], 3, args=("2",), compute=file)


def test_a_changed_program_is_remarked(recorded, write):
    program, file = recorded
    write("program.py", PROGRAM + "# a comment\n")
    result = pysmpi.run(program, 3, args=("4",), compute=file)
    assert result.remarks == [
        f"program.py has changed since {file} was recorded: its blocks may be others"
    ]


def test_a_program_that_has_moved_is_the_same(recorded, write):
    _, file = recorded
    assert pysmpi.run(write("moved.py", PROGRAM), 3, args=("4",), compute=file).remarks == []


def _function(repetitions, other=None):
    from mpi4py import MPI

    for _ in range(repetitions):
        MPI.COMM_WORLD.Barrier()


def test_functions_have_their_arguments(tmp_path):
    file = str(tmp_path / "compute.txt")
    pysmpi.run(_function, 2, args=(3,), record_compute=file)
    assert pysmpi.run(_function, 2, args=(3,), compute=file).remarks == []
    with pytest.raises(UsageError, match="recorded with arguments 3, and this run has arguments 2"):
        pysmpi.run(_function, 2, args=(2,), compute=file)
    # Objects cannot be compared.
    with pytest.raises(UsageError, match=r"rank \d: expected more than"):
        pysmpi.run(_function, 2, args=(9, object()), compute=file)


def _without_identity(file):
    with open(file) as stream:
        lines = stream.readlines()
    with open(file, "w") as stream:
        stream.writelines([lines[0], *lines[2:]])


def test_recordings_without_a_job_are_read(recorded):
    program, file = recorded
    _without_identity(file)
    result = pysmpi.run(program, 3, args=("4",), compute=file)
    assert result.remarks == [
        f"{file} is without identity: it does not tell which job it was recorded from"
    ]
    assert f"warning: {result.remarks[0]}" in summary(result)
    assert result.report()["remarks"] == result.remarks


def test_blocks_that_are_left_over_are_remarked(recorded):
    program, file = recorded
    _without_identity(file)
    result = pysmpi.run(program, 3, args=("2",), compute=file)
    assert result.remarks[1:] == [
        f"{file}: rank 0 used 3 of 5 recorded blocks, and 2 other ranks fewer than recorded: the "
        "recorded program, or its input, made other calls"
    ]
    result = pysmpi.run(program, 2, args=("4",), compute=file)
    assert result.remarks[1:] == [
        f"{file}: rank 2 used 0 of 5 recorded blocks: the recorded program, or its input, made "
        "other calls"
    ]
    with pytest.raises(UsageError, match=r"rank \d: expected more than 5 blocks of compute"):
        pysmpi.run(program, 3, args=("6",), compute=file)


@pytest.mark.parametrize(
    "job", ["", "x", "[]", "{}", '{"ranks": "4"}', '{"ranks": 1, "programs": 3}', "[" * 99_999]
)
def test_a_damaged_job_is_one_line(tmp_path, job):
    file = tmp_path / "compute.txt"
    file.write_text(f"{HEADER}1e9\n# job: {job}\n0 1\n")
    with pytest.raises(UsageError, match="compute.txt:2: expected the job of a recording, got"):
        read_recording(str(file))


def test_other_damage_is_one_line(tmp_path):
    file = tmp_path / "compute.txt"
    file.write_text(f"{HEADER}1e9\n0 {'9' * 5000}\n")
    with pytest.raises(UsageError, match="compute.txt:2: expected a rank and nanoseconds"):
        read_recording(str(file))
    file.write_text(f"{HEADER}1e9\n0 1\n# job: {json.dumps({'ranks': 1, 'programs': []})}\n")
    with pytest.raises(UsageError, match=":3: expected a rank and nanoseconds"):
        read_recording(str(file))


def test_blocks_of_a_constant_time_are_counted(write):
    program = write("program.py", PROGRAM)
    result = pysmpi.run(program, 2, args=("4",), compute="1ms")
    assert result.blocks == {"fewest": 5, "most": 5}
    assert "compute 1ms for each block between two calls, 5 blocks a rank" in summary(result)
    assert result.seconds == pytest.approx(5e-3, rel=0.1)
    uneven = write(
        "uneven.py",
        "from mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank:\n"
        "    MPI.Wtime(); MPI.Wtime()\n"
        "    MPI.COMM_WORLD.bcast({1: 2}, root=1)\n"
        "else:\n"
        "    MPI.COMM_WORLD.bcast(None, root=1)\n",
    )
    result = pysmpi.run(uneven, 2, compute=0.5)
    assert result.blocks == {"fewest": 2, "most": 4}
    assert "compute 0.5 for each block between two calls, 2 to 4 blocks a rank" in summary(result)
    for rank, blocks in zip(result.ranks, (2, 4)):
        assert rank["compute_seconds"] == pytest.approx(0.5 * blocks)
    assert pysmpi.run(uneven, 2, compute="none").blocks is None
