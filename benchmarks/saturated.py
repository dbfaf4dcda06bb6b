"""Measure the cost of one change among many flows that share saturated links.

    python benchmarks/saturated.py --flows 10 100 1000 10000 100000

Hosts have a link up and a link down, and flows take 5 % of the way back. On a ring each host sends
to the next one, on a grid to its four neighbours, so all flows form one saturated region. In an
incast, hosts with 64 flows each send to one host. A change is a flow that ends, or one that begins
in its place; the fair rates are brought up to date after each. Where all flows have the same
round-trip time a change moves no other rate on the ring and the grid; where round-trip times differ
by up to half, it moves those around it, less and less with the distance. In the incast it moves all
rates. The last column is for a solution of all rates, divided by the number of flows.
"""

from __future__ import annotations

import gc
import math
import random
import sys
import time

from side_by_side import TOP, parser, run, table, write_json

sys.path.insert(0, str(TOP))

from pysmpi.kernel.activities import Activity, Constraint  # noqa: E402
from pysmpi.kernel.events import EventQueue  # noqa: E402
from pysmpi.kernel.sharing import System  # noqa: E402

BANDWIDTH = 125e6
WEIGHTS = [1.0, 1.0, 0.05, 0.05]
ENDLESS = 1e30  # bytes
CHANGES = 1000


def ring(flows: int) -> list[tuple[int, int]]:
    """Pairs of hosts, each of which sends to the next one."""
    return [(host, (host + 1) % flows) for host in range(flows)]


def grid(flows: int) -> list[tuple[int, int]]:
    """Pairs of neighbours on a square that is closed to a torus."""
    side = max(3, round(math.sqrt(flows / 4)))
    ways = ((1, 0), (-1, 0), (0, 1), (0, -1))
    return [
        (row * side + column, (row + down) % side * side + (column + right) % side)
        for row in range(side)
        for column in range(side)
        for down, right in ways
    ]


def incast(flows: int) -> list[tuple[int, int]]:
    """Pairs of hosts: up to 64 flows of each host go to the last one."""
    sink = (flows + 63) // 64
    return [(i // 64, sink) for i in range(flows)]


# With the range of the penalties, as a share of the smallest. In an incast each change moves all
# rates, one by one if the penalties differ.
SHAPES = [
    ("ring", ring, 0.0), ("ring", ring, 0.5), ("grid", grid, 0.0), ("grid", grid, 0.5),
    ("incast", incast, 0.0),
]  # fmt: skip


def measure(pairs: list[tuple[int, int]], spread: float) -> tuple[float, float, float]:
    """Processor seconds of a change, rates solved for it, and seconds a flow of a whole solution.

    `spread` is the range of the penalties, as a share of the smallest.
    """
    draw = random.Random(1)
    hosts = 1 + max(map(max, pairs))
    up = [Constraint(BANDWIDTH) for _ in range(hosts)]
    down = [Constraint(BANDWIDTH) for _ in range(hosts)]
    routes = {pair: [up[pair[0]], down[pair[1]], up[pair[1]], down[pair[0]]] for pair in set(pairs)}
    paths = [routes[pair] for pair in pairs]
    penalties = [1.0 + spread * draw.random() for _ in pairs]

    def begin(i: int) -> Activity:
        activity = Activity(ENDLESS, penalties[i], BANDWIDTH, paths[i], WEIGHTS)
        system.add(activity)
        return activity

    system = System(EventQueue())
    flows = [begin(i) for i in range(len(pairs))]
    gc.collect()
    gc.freeze()
    start = time.process_time()
    system.share()
    whole = (time.process_time() - start) / len(pairs)
    places = [draw.randrange(len(pairs)) for _ in range(CHANGES)]

    def change(i: int) -> None:
        system.remove(flows[i])
        system.share()
        flows[i] = begin(i)
        system.share()

    for i in places[: CHANGES // 5]:
        change(i)  # links that a crowd does not saturate are left out after a while
    before = system.solver.solved
    start = time.process_time()
    for i in places:
        change(i)
    changing = (time.process_time() - start) / (2 * CHANGES)
    gc.unfreeze()
    return changing, (system.solver.solved - before) / (2 * CHANGES), whole


def main() -> int:
    """Measure all shapes and numbers of flows, and print the table."""
    options = parser("the cost of a change in one saturated region", repeats=3)
    options.add_argument("--flows", type=int, nargs="+", default=[10, 100, 1000, 10000, 100000])
    chosen = options.parse_args()
    lines, records = [], []
    for name, shape, spread in SHAPES:
        for flows in chosen.flows:
            pairs = shape(flows)
            runs = [measure(pairs, spread) for _ in range(chosen.repeats)]
            change = min(each[0] for each in runs)
            whole = min(each[2] for each in runs)
            solved = runs[0][1]
            kind = "differ" if spread else "alike"
            lines.append(
                (name, kind, f"{len(pairs):,}", f"{change * 1e6:.1f}", f"{solved:.1f}",
                 f"{whole * 1e6:.2f}")
            )  # fmt: skip
            records.append(
                {"shape": name, "spread": spread, "flows": len(pairs), "change": change,
                 "solved": solved, "whole": whole}
            )  # fmt: skip
    heads = ("shape", "round trips", "flows", "us a change", "bundles solved", "us a flow, all")
    print(table(heads, lines))
    write_json(chosen.json, "saturated", records)
    return 0


if __name__ == "__main__":
    run(main)
