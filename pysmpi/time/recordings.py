"""Recordings of compute: the times of the blocks of each rank, and the job that they are from.

The first line has the speed of the computer, the second one the job, as JSON: its programs with
their arguments and ranks, and the threads of numerical libraries. Each further line is a block: the
number of a rank, and nanoseconds. Recordings without the second line are those of earlier versions.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from pysmpi.errors import UsageError
from pysmpi.io.reading import open_lines, parse_json
from pysmpi.text import count

HEADER = "# pysmpi compute 1, nanoseconds of blocks on a core of flop/s: "
_JOB = "# job: "
_LONGEST = 200  # bytes of a line: a rank and a time
_LONGEST_JOB = 1 << 20  # of the line of the job

# The job of a recording, as JSON: see `job_of`.
JobIdentity = dict[str, Any]


class ComputeRecording(NamedTuple):
    """A recording: the speed of its computer (flop/s), its job, the blocks (ns) of each rank."""

    speed: float
    job: JobIdentity | None
    blocks: dict[int, array[int]]


def write_head(write: Callable[[str], object], speed: float, job: JobIdentity | None) -> None:
    """Write the lines before the blocks."""
    write(f"{HEADER}{speed!r}\n")
    if job is not None:
        import json

        text = json.dumps(job, sort_keys=True)
        if len(text) > _LONGEST_JOB:
            programs = [{**program, "arguments": None} for program in job["programs"]]
            text = json.dumps({**job, "programs": programs}, sort_keys=True)
        write(f"{_JOB}{text}\n")


def read_recording(file: str) -> ComputeRecording:
    """Read a recording. Raises `UsageError` with file and line if the file is invalid."""
    blocks: dict[int, array[int]] = {}
    job: JobIdentity | None = None
    try:
        with open_lines(file) as packed:
            speed = _read_header(packed.readline(_LONGEST).decode("ascii"), file)
            for number, data in enumerate(iter(partial(packed.readline, _LONGEST), b""), 2):
                line = data.decode("ascii")
                if number == 2 and line.startswith(_JOB):
                    if not line.endswith("\n"):
                        line += packed.readline(_LONGEST_JOB).decode("ascii")
                    job = _read_job(line[len(_JOB) :], file)
                    continue
                pid, _, nanoseconds = line.rstrip("\n").partition(" ")
                if not (pid.isdigit() and nanoseconds.isdigit() and line.endswith("\n")):
                    raise UsageError(
                        f'{file}:{number}: expected a rank and nanoseconds, e.g. "3 1200", got '
                        f"{line.rstrip()!r}"
                    )
                own = blocks.get(int(pid))
                if own is None:
                    own = blocks[int(pid)] = array("q")
                own.append(int(nanoseconds))
    except UsageError:
        raise
    except (ValueError, OverflowError):  # no ASCII, or a number that is too long
        raise UsageError(f"{file}: expected a recording of compute, got other data") from None
    return ComputeRecording(speed, job, blocks)


def _read_header(line: str, file: str) -> float:
    text = line.rstrip("\n")
    try:
        speed = float(text.removeprefix(HEADER)) if text.startswith(HEADER) else math.nan
    except ValueError:
        speed = math.nan
    if not (math.isfinite(speed) and speed > 0.0):
        raise UsageError(
            f"{file}:1: expected the header of a recording of compute, got {text[:60]!r}"
        )
    return speed


def _read_job(text: str, file: str) -> JobIdentity:
    try:
        job = parse_json(text)
        well = isinstance(job["ranks"], int) and all(
            isinstance(program["name"], str) for program in job["programs"]
        )
    except (ValueError, KeyError, TypeError):
        well = False
    if not well:
        raise UsageError(f"{file}:2: expected the job of a recording, got {text[:60].rstrip()!r}")
    return job  # type: ignore[no-any-return]


def check_job(file: str, recorded: JobIdentity | None, mine: JobIdentity | None) -> list[str]:
    """Compare the job of a recording with that of a run; return remarks on it.

    Raises `UsageError` if the blocks are those of another program, of other arguments, of another
    number of ranks or of threads.
    """
    if mine is None:
        return []
    if recorded is None:
        return [f"{file} is without identity: it does not tell which job it was recorded from"]
    remarks: list[str] = []
    programs, own = recorded["programs"], mine["programs"]
    if len(programs) != len(own):
        _refuse(file, count(len(programs), "program"), str(len(own)))
    for before, now in zip(programs, own):
        _check_program(file, before, now, remarks)
    for before, now in zip(programs, own):
        if before.get("ranks") != now["ranks"]:
            where = "" if len(own) == 1 else f" of {now['name']}"
            _refuse(file, f"{count(before.get('ranks', 0), 'rank')}{where}", str(now["ranks"]))
    threads = recorded.get("threads"), mine["threads"]
    if None not in threads and threads[0] != threads[1]:
        _refuse(file, f"OMP_NUM_THREADS={threads[0]}", f"OMP_NUM_THREADS={threads[1]}")
    return remarks


def _check_program(
    file: str, before: dict[str, Any], now: dict[str, Any], remarks: list[str]
) -> None:
    same_text = before.get("text") is not None and before.get("text") == now["text"]
    if before["name"] != now["name"] and not same_text:
        _refuse(file, before["name"], now["name"])
    arguments = before.get("arguments"), now["arguments"]
    if None not in arguments and arguments[0] != arguments[1]:
        _refuse(file, f"arguments {_words(arguments[0])}", f"arguments {_words(arguments[1])}")
    if not same_text and None not in (before.get("text"), now["text"]):
        remarks.append(
            f"{now['name']} has changed since {file} was recorded: its blocks may be others"
        )


def _words(arguments: object) -> str:
    words = arguments if isinstance(arguments, list) else [arguments]
    return " ".join(map(str, words)) if words else "(none)"


def _refuse(file: str, before: str, now: str) -> None:
    raise UsageError(
        f"{file}: expected the compute of this job: it was recorded with {before}, and this run "
        f"has {now}; record it again, or remove line 2 of the file to use it anyway"
    )


def left_over(file: str, blocks: dict[int, array[int]], used: dict[int, int]) -> str | None:
    """A remark on the blocks that a run has not used; `used` has their numbers by rank."""
    left = {
        rank: (used.get(rank, 0), len(mine))
        for rank, mine in sorted(blocks.items())
        if used.get(rank, 0) < len(mine)
    }
    if not left:
        return None
    rank, (taken, all_of_them) = next(iter(left.items()))
    others = f", and {count(len(left) - 1, 'other rank')} fewer than recorded" * (len(left) > 1)
    return (
        f"{file}: rank {rank} used {taken:,} of {count(all_of_them, 'recorded block')}{others}: "
        "the recorded program, or its input, made other calls"
    )
