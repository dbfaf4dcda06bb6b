"""The bandwidth of this computer's memory by the number of cores that use it, as in STREAM.

Each core runs the triad a = b + s c of its own arrays, which are larger than caches. numpy does it
in two passes, which load three arrays and store two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pysmpi.calibrate.pinned import together

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
    measured = together(_PROGRAM, (elements, turns), cpus)
    return math.fsum(PASSES * elements / sorted(times)[len(times) // 2] for times in measured)


def curve(cpus: Sequence[int]) -> dict[int, float]:
    """Bytes a second of 1, 2, 4, ... and all cores."""
    counts = []
    count = 1
    while count < len(cpus):
        counts.append(count)
        count *= 2
    return {count: bandwidth(cpus[:count]) for count in [*counts, len(cpus)]}
