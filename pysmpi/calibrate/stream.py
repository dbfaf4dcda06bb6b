"""The bandwidth of this computer's memory by the number of cores that use it, as in STREAM.

Each core runs the triad a = b + s c of its own arrays, which are larger than caches. numpy does it
in two passes, which load three arrays and store two.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial

from pysmpi.errors import PysmpiError
from pysmpi.own_process.descendants import end_with_parent

ELEMENTS = 4_000_000  # of each of the three arrays of a core: 32 MB
PASSES = 5 * 8  # bytes that a triad moves for each element

# Starts when it reads a line, and prints the seconds of each turn.
_PROGRAM = """
import json, os, sys, time
import numpy
elements, turns, cpu = map(int, sys.argv[1:])
os.sched_setaffinity(0, {cpu})
a, b, c = numpy.ones((3, elements))
def triad():
    numpy.multiply(c, 3.0, out=a)
    numpy.add(a, b, out=a)
triad()
print("ready", flush=True)
sys.stdin.readline()
times = []
for _ in range(turns):
    begin = time.perf_counter()
    triad()
    times.append(time.perf_counter() - begin)
print(json.dumps(times))
"""


def bandwidth(cpus: Sequence[int], elements: int = ELEMENTS, turns: int = 10) -> float:
    """Bytes a second of all cores together, each with its median turn."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(elements), str(turns), str(cpu)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=partial(end_with_parent, os.getpid()),
        )
        for cpu in cpus
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise PysmpiError("calibrate stream: a process has not begun")
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        total = 0.0
        for process in processes:
            output, _ = process.communicate()
            times = sorted(json.loads(output))
            total += PASSES * elements / times[len(times) // 2]
        return total
    finally:
        for process in processes:
            process.kill()


def curve(cpus: Sequence[int]) -> dict[int, float]:
    """Bytes a second of 1, 2, 4, ... and all cores."""
    counts = []
    count = 1
    while count < len(cpus):
        counts.append(count)
        count *= 2
    return {count: bandwidth(cpus[:count]) for count in [*counts, len(cpus)]}
