"""`mpiexec -n N python -m pysmpi.record [-o FILE] [-m MODULE | PROGRAM] [ARG...]`."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import time

from pysmpi.errors import UsageError


def main() -> None:
    """Run a program under the computer's MPI library, and record it."""
    parser = argparse.ArgumentParser(
        prog="python -m pysmpi.record",
        description="Run a program under the MPI library of this computer and record its calls. "
        "Start it with mpiexec; pysmpi replay predicts the time of the run on other machines.",
    )
    parser.add_argument("-o", "--output", default="record.jsonl", metavar="FILE.jsonl",
                        help="the recording (record.jsonl)")  # fmt: skip
    parser.add_argument("--host-speed", default="auto", metavar="auto|FLOPS",
                        help="speed of a core of this computer (auto: measured)")  # fmt: skip
    parser.add_argument("-m", dest="module", action="store_true",
                        help="PROGRAM is a module")  # fmt: skip
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARG")
    given = parser.parse_args()
    if not given.module and not os.path.isfile(given.program):
        parser.error(f"no such file: {given.program}")
    try:
        speed = _speed(given.host_speed)
    except ValueError as error:
        parser.error(f"--host-speed {given.host_speed}: {error}")
    try:
        import mpi4py.MPI  # noqa: F401
    except (ImportError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        parser.exit(2, f"python -m pysmpi.record: error: no MPI library of this computer can be "
                    f"loaded: {reason}\n")  # fmt: skip
    sys.argv = [given.program, *given.arguments]
    if not given.module:
        sys.path[0] = os.path.dirname(os.path.abspath(given.program))
    try:
        record(given.program, given.module, given.output, speed)
    except UsageError as error:
        # The other ranks wait for this one, so the job ends here.
        print(f"python -m pysmpi.record: error: {error}", file=sys.stderr, flush=True)
        mpi4py.MPI.COMM_WORLD.Abort(2)


def _speed(choice: str) -> float:
    from pysmpi.platform.units import parse_speed
    from pysmpi.time.host_speed import host_speed

    return host_speed("auto") if choice == "auto" else parse_speed(choice)


def record(program: str, module: bool, output: str, speed: float) -> None:
    """Run a program and write its recording; none if the program fails with an exception."""
    from mpi4py import MPI

    from pysmpi.record.clocks import RealClock, offset
    from pysmpi.record.gathering import gather
    from pysmpi.record.notes import Notes
    from pysmpi.record.wrapping import install
    from pysmpi.trace.model import NAME, VERSION
    from pysmpi.version import __version__

    path = os.path.abspath(output)
    world = MPI.COMM_WORLD.Dup()
    first, begin = offset(world), time.perf_counter()
    notes = Notes()
    install(notes)
    world.Barrier()
    zero = world.bcast(time.perf_counter(), 0)
    notes.inside = True
    notes.world = MPI.COMM_WORLD
    notes.learn(MPI.COMM_WORLD, "world")
    notes.inside = False
    notes.resume()
    finished = False

    def finish() -> None:
        nonlocal finished
        if finished:
            return
        finished = True
        end = time.perf_counter()
        before = notes.elapsed(end)
        notes.inside = True
        notes.calls += 1
        notes.write(["call", notes.calls, "", end, end, "", "", 0, 0, [], before])
        notes.world = world
        last = offset(world)
        clock = RealClock(begin, first, time.perf_counter(), last, zero)
        facts: dict[str, object] = {
            "format": NAME, "version": VERSION, "pysmpi": __version__, "program": program,
            "nprocs": world.size, "platform": "",
            "library": " ".join(MPI.Get_library_version().split("\n")[0].split()),
        }  # fmt: skip
        gather(notes, clock, end, speed, facts, path)

    plain = MPI.Finalize

    def finalize() -> None:
        finish()
        plain()

    MPI.Finalize = finalize
    try:
        if module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit:
        finish()
        raise
    finish()


if __name__ == "__main__":
    main()
