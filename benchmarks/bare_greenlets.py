"""Processor time of a message among greenlets without a simulator: the floor of every rank count.

    python benchmarks/bare_greenlets.py --ranks 16 256 4096 65536

Each greenlet has two arrays of 1,000 bytes. When it runs, it copies the first array of the greenlet
before it into its second one, and switches back. There is no clock, network, matching or state of a
rank. What still grows with the number of greenlets are misses of the processor's caches: a switch
copies the C stack, and frames, arrays and copies of stacks of many greenlets fit into no cache.
"""

from __future__ import annotations

import time

import numpy as np
from greenlet import getcurrent, greenlet
from side_by_side import parser, run, table, write_json

MESSAGES = 1_500_000  # of one figure
BYTES = 1000


def microseconds(ranks: int) -> float:
    """The processor time of a message (us)."""
    hub = getcurrent()
    arrays = [(np.zeros(BYTES, np.uint8), np.zeros(BYTES, np.uint8)) for _ in range(ranks)]
    repeats = max(MESSAGES // ranks, 20)

    def main(rank: int) -> None:
        received, before = arrays[rank][1], arrays[rank - 1][0]
        for _ in range(repeats):
            memoryview(received)[:] = memoryview(before)
            hub.switch()

    fibers = [greenlet(main) for _ in range(ranks)]
    for rank, fiber in enumerate(fibers):
        fiber.switch(rank)
    start = time.process_time()
    for _ in range(repeats - 1):
        for fiber in fibers:
            fiber.switch()
    return (time.process_time() - start) / (repeats - 1) / ranks * 1e6


def main() -> int:
    """Measure, print."""
    options = parser("processor time of a message among bare greenlets", repeats=3)
    options.add_argument("--ranks", type=int, nargs="+", default=[16, 256, 4096, 65536])
    chosen = options.parse_args()
    found = {
        ranks: min(microseconds(ranks) for _ in range(chosen.repeats)) for ranks in chosen.ranks
    }
    rows = [(f"{ranks:,}", f"{us:.2f}") for ranks, us in found.items()]
    print(table(("greenlets", "us a message"), rows))
    write_json(chosen.json, "bare_greenlets", [{"ranks": n, "us": us} for n, us in found.items()])
    return 0


if __name__ == "__main__":
    run(main)
