"""Measures messages, memory and programs under the MPI of a machine. It needs mpi4py and numpy.

    mpiexec -n 4 python validate.py recording.jsonl [--only PART,...]

Each call measures one number of ranks in one layout, and appends a line for each result to the
recording. Calls that end early leave what they had measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

PARTS = ("messages", "memory", "programs")
CASES = ("latency", "bandwidth", "bidirectional", "message_rate", "allreduce", "alltoall")
WINDOW = 64  # messages in flight, as in osu_bw
WINDOWS = 16  # turns of windows in a simulation, whose times do not vary
SMALL = 8192  # bytes up to which OSU's programs repeat more often
MOST = 1 << 26  # bytes of all blocks of an Alltoall on a rank
COLLECTIVE = 1 << 20  # bytes, the largest of collectives
RATES = (1, 8, 64, 512, 4096)  # bytes of messages whose rate is measured
KEPT = (1 << 25) - (1 << 13)  # bytes, just below the largest block that glibc keeps
# The script has these from `pysmpi validate script`: settings, and texts of programs by name.
SETTINGS: dict[str, Any] = {}
SOURCES: dict[str, str] = {}

Values = list[float]
Array = np.ndarray[Any, Any]


def sizes(largest: int, factor: int = 2) -> list[int]:
    """1, 2, 4, ... bytes, up to `largest`."""
    found = [1]
    while found[-1] * factor <= largest:
        found.append(found[-1] * factor)
    return found


class ScriptBench:
    """The ranks of one call. Each method returns seconds; all ranks call it."""

    def __init__(self, comm: Any, simulated: int) -> None:
        """`simulated` is the number of repeats of programs; messages then have one turn."""
        self.comm, self.once = comm, simulated > 0
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.repeats = simulated or int(SETTINGS["repeats"])

    def turns(self, size: int, small: int, large: int) -> int:
        """Turns of one repeat. All repeats together have as many as OSU's programs."""
        return 1 if self.once else max(1, (small if size <= SMALL else large) // self.repeats)

    def _buffers(self, size: int) -> tuple[Array, Array]:
        """A send and a receive buffer with memory of their own: they have been written."""
        return np.full(size, 1, "b"), np.full(size, 2, "b")

    def latency(self, size: int) -> float:
        """One way of a ping-pong between ranks 0 and 1, as osu_latency."""
        data, into = self._buffers(size)
        peer, turns = 1 - self.rank, self.turns(size, 1000, 100)
        self.comm.Barrier()
        begin = 0.0
        for turn in range(turns + 1 + turns // 10):
            if turn == 1 + turns // 10:
                begin = MPI.Wtime()
            if self.rank == 0:
                self.comm.Send(data, peer)
                self.comm.Recv(into, peer)
            else:
                self.comm.Recv(into, peer)
                self.comm.Send(data, peer)
        return float(MPI.Wtime() - begin) / (2 * turns)

    def _windows(self, size: int, peer: int, sends: bool, both: bool) -> float:
        """Seconds of a window of messages; as osu_bw, or as osu_bibw in `both` directions."""
        (data, into), back = self._buffers(size), np.zeros(4, "b")
        # A rank can be a window ahead of the other, so one turn alone says nothing.
        turns = WINDOWS if self.once else self.turns(size, 100, 20)
        begin = 0.0
        self.comm.Barrier()
        for turn in range(turns + 1 + turns // 10):
            if turn == 1 + turns // 10:
                begin = MPI.Wtime()
            requests = []
            if both or not sends:
                requests += [self.comm.Irecv(into, peer) for _ in range(WINDOW)]
            if both or sends:
                requests += [self.comm.Isend(data, peer) for _ in range(WINDOW)]
            MPI.Request.Waitall(requests)
            if not both:
                if sends:
                    self.comm.Recv(back, peer)
                else:
                    self.comm.Send(back, peer)
        return float(MPI.Wtime() - begin) / turns

    def bandwidth(self, size: int) -> float:
        """Of a message of a window from rank 0 to rank 1, as osu_bw."""
        return self._windows(size, 1 - self.rank, self.rank == 0, False) / WINDOW

    def bidirectional(self, size: int) -> float:
        """Of a message of windows in both directions, as osu_bibw."""
        return self._windows(size, 1 - self.rank, True, True) / (2 * WINDOW)

    def message_rate(self, size: int) -> float:
        """Of a message, the first half of the ranks sends to the second, as osu_mbw_mr."""
        half = self.size // 2
        sends = self.rank < half
        took = self._windows(size, (self.rank + half) % self.size, sends, False)
        return float(self.comm.allreduce(took if sends else 0.0)) / half / (WINDOW * half)

    def _calls(self, call: Callable[[], object], size: int) -> float:
        """Mean over the ranks of the time of a call, with a barrier before each."""
        turns = self.turns(size, 1000, 100)
        total = 0.0
        for turn in range(turns + 1 + turns // 10):
            self.comm.Barrier()
            begin = MPI.Wtime()
            call()
            if turn > turns // 10:
                total += MPI.Wtime() - begin
        return float(self.comm.allreduce(total / turns)) / self.size

    def allreduce(self, size: int) -> float:
        """Of an Allreduce of floats, as osu_allreduce."""
        data, result = (one.view("f") for one in self._buffers(size))
        return self._calls(lambda: self.comm.Allreduce(data, result), size)

    def alltoall(self, size: int) -> float:
        """Of an Alltoall of `size` bytes for each pair, as osu_alltoall."""
        data, result = self._buffers(size * self.size)
        return self._calls(lambda: self.comm.Alltoall(data, result), size)

    def triad(self) -> Values:
        """STREAM's triad on all ranks at once: the mean over the ranks of each turn."""
        count = 1000 if self.once else int(SETTINGS["elements"])
        a, b, c = np.ones(count), np.ones(count), np.ones(count)
        took = []
        for turn in range(2 if self.once else 11):
            self.comm.Barrier()
            begin = MPI.Wtime()
            np.multiply(c, 3.0, out=a)
            np.add(a, b, out=a)
            if turn:
                took.append(MPI.Wtime() - begin)
        return [float(self.comm.allreduce(one)) / self.size for one in took]

    def messages(self, parts: list[str]) -> Iterator[dict[str, object]]:
        """The benchmarks of messages that this number of ranks has: all, or those in `parts`."""
        largest = int(SETTINGS["largest"])
        every = sizes(largest)
        most = min(largest, COLLECTIVE)
        plan: list[tuple[Callable[[int], float], list[int]]] = []
        if self.size == 2:
            plan += [(self.latency, every), (self.bandwidth, every)]
            plan += [(self.bidirectional, every[::2])]
        if self.size % 2 == 0:
            plan += [(self.message_rate, [size for size in RATES if size <= largest])]
        if self.size > 1:
            plan += [(self.allreduce, [size for size in sizes(most, 4) if size >= 4])]
            plan += [(self.alltoall, sizes(min(most, MOST // self.size), 4))]
        for case, chosen in plan:
            if "messages" not in parts and case.__name__ not in parts:
                continue
            for size in chosen:
                seconds = [case(size) for _ in range(self.repeats)]
                yield {"case": case.__name__, "bytes": size, "seconds": seconds}

    def program(self, name: str) -> dict[str, object]:
        """Run a program again and again: its own time, and the processor time, of the last rank."""
        walls: Values = []
        processors: Values = []
        begun = time.monotonic()
        while True:
            clocks: list[tuple[float, float]] = []
            status = self._run(name, clocks)
            problem = next((one for one in self.comm.allgather(status) if one), None)
            if problem is not None:
                return {"case": name, "skipped": str(problem)}
            (wall, processor), (wall_end, processor_end) = clocks[0], clocks[-1]
            walls.append(self.comm.allreduce(wall_end - wall, op=MPI.MAX))
            processors.append(self.comm.allreduce(processor_end - processor, op=MPI.MAX))
            late = self.comm.bcast(time.monotonic() - begun > SETTINGS["seconds"])
            if len(walls) >= self.repeats or late:
                arguments = SETTINGS["arguments"][name]
                return {
                    "case": name, "arguments": arguments, "seconds": walls,
                    "processor": processors,
                }  # fmt: skip

    def _run(self, name: str, clocks: list[tuple[float, float]]) -> object:
        """Run a program once; its exit status. `clocks` gets the times when it reads its clock."""

        def wtime() -> float:
            clocks.append((MPI.Wtime(), time.process_time()))
            return clocks[-1][0]

        given = {"wtime": wtime, "print": lambda *args, **options: None}
        helper = types.ModuleType("npb")
        vars(helper).update(given)
        exec(_compiled("npb"), vars(helper))
        space = {"__name__": name, "npb": helper, **given}
        before, sys.argv = sys.argv, [f"{name}.py", *SETTINGS["arguments"][name]]
        try:
            exec(_compiled(name), space)
            space["main"]()  # type: ignore[operator]
        except SystemExit as end:
            return end.code
        except Exception:  # other ranks would wait for this one
            traceback.print_exc()
            self.comm.Abort(1)
        finally:
            sys.argv = before
        return None


def _compiled(name: str) -> types.CodeType:
    """The code of a program, without the future statements of this file."""
    return compile(SOURCES[name], f"{name}.py", "exec", dont_inherit=True)


def processor_name() -> str:
    """The model of the processor, as Linux names it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.lower().startswith(("model name", "cpu model")):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def main(arguments: list[str]) -> None:
    """Measure what `arguments` ask for; rank 0 writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", help="results are appended to this file")
    parser.add_argument(
        "--only", default=",".join(PARTS), help="parts, or names of cases (default: all)"
    )
    parser.add_argument("--simulated", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    parts = chosen.only.split(",")
    known = (*PARTS, *CASES, *SETTINGS["arguments"])
    wrong = [part for part in parts if part not in known]
    if wrong:
        parser.error(f"--only: expected {', '.join(known)}, got {', '.join(wrong)}")
    # glibc returns the arrays of a program to the system, and clears them again, until one of this
    # size has been freed. Programs are faster from then on, here and in a simulation.
    np.empty(KEPT, "b")
    comm = MPI.COMM_WORLD
    bench = ScriptBench(comm, chosen.simulated)
    may = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    hosts = comm.gather(MPI.Get_processor_name())
    places = comm.gather(may)
    cores = comm.gather(os.cpu_count())
    job = f"{os.getpid()}-{time.time_ns()}"
    stream = None
    if bench.rank == 0:
        stream = open(chosen.recording, "ab+")
        stream.seek(0, os.SEEK_END)
        if stream.tell():  # a call that was killed may have left half a line
            stream.seek(-1, os.SEEK_END)
            if stream.read() != b"\n":
                stream.write(b"\n")

    def write(**fields: object) -> None:
        if stream is not None:
            stream.write((json.dumps({"job": job, **fields}) + "\n").encode())
            stream.flush()
            if not chosen.simulated and "end" not in fields:
                where = f" {fields['bytes']} B" if "bytes" in fields else ""
                print(f"{fields.get('case', f'{bench.size} ranks')}{where}", file=sys.stderr)

    write(
        format=SETTINGS["format"], version=SETTINGS["version"], ranks=bench.size, hosts=hosts,
        cpus=places, cores=cores,
        mpi=MPI.Get_library_version().split("\n")[0].strip("\0 "), processor=processor_name(),
        python=platform.python_version(), numpy=np.__version__, system=platform.platform(),
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), settings=SETTINGS,
    )  # fmt: skip
    for fields in bench.messages(parts):
        write(**fields)
    if "memory" in parts:
        nbytes = 5 * 8 * int(SETTINGS["elements"])
        write(case="triad", bytes=nbytes, seconds=bench.triad())
    for name in SETTINGS["arguments"]:
        if "programs" in parts or name in parts:
            write(**bench.program(name))
    write(end=True)
    if stream is not None:
        stream.close()


if __name__ == "__main__":
    main(sys.argv[1:])
