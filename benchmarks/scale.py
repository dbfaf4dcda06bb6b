"""Memory and time of many ranks on one machine, up to a million.

    python benchmarks/scale.py --ranks 1000 10000 100000 1000000 --smpi --draw scale.png
    python benchmarks/scale.py --ranks 1000 --jacobi 10000 100000

Each rank says hello and does a ring exchange, a barrier, an allreduce, a split into (at most) a
thousand communicators, and an allreduce in its own; 64 ranks share a node. A message costs both
ends a fifth of a microsecond: otherwise all begin at once, and more of them share links at a time.
Barriers and gathers are trees: linear ones, the default, have all ranks wait for one.

With `--smpi` the same program in C, on one node a rank, runs under SMPI with twice as many ranks
each time, until it fails or takes too long; the same numbers of ranks, on the same machine with
the same algorithms, are then run by pysmpi.  With `--jacobi` ten iterations of apps/jacobi2d.py
run on nodes of one core, or of `--jacobi-cores`, where only the network costs.  Exit status 1 when
a rank costs more memory than wanted.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from side_by_side import (
    HERE,
    TOP,
    BenchmarkError,
    Measurement,
    need,
    parser,
    pysmpi,
    run,
    table,
    write_cluster,
    write_json,
)

CORES = 64
PROGRAM = "million_ranks"
TREES = {"barrier": "ompi_tree", "gather": "ompi_binomial"}
PATIENCE = 7200.0  # seconds for one run of ours
NODES = """name: nodes
description: Nodes of {cores} cores on a 100 Gb/s network, for measuring the simulator.
preset: smpi
config:
{costs}  smpi/async-small-thresh: 16384
  smpi/send-is-detached-thresh: 16384
clusters:
  - name: nodes
    hosts: node-[0-{last}]
    speed: 10Gf
    cores: {cores}
    link: {{bandwidth: 100Gbps, latency: 500ns}}
    loopback: {{bandwidth: 8GBps, latency: 300ns}}
"""
COSTS = """  smpi/os: "0:2e-07:5e-11;16384:0:0"
  smpi/ois: "0:2e-07:5e-11;16384:0:0"
  smpi/or: "0:2e-07:5e-11;16384:0:0"
  smpi/bw-factor: "0:0.92"
  smpi/lat-factor: "0:1;16384:3"
"""
HINT = "Debian has it in the package libsimgrid-dev"


def main() -> int:
    """Measure each number of ranks, print the tables, judge."""
    options = parser("memory and time of many ranks", repeats=1)
    options.add_argument("--ranks", type=int, nargs="+", default=[1000, 10000, 100000])
    options.add_argument("--limit", type=float, default=20.0, help="memory wanted a rank, in kB")
    options.add_argument("--draw", type=Path, metavar="FILE.png", help="draw both against ranks")
    options.add_argument("--smpi", action="store_true", help="also find SMPI's largest number")
    options.add_argument("--patience", type=float, default=600.0, help="seconds for one SMPI run")
    options.add_argument(
        "--jacobi", type=int, nargs="+", default=[], metavar="RANKS", help="also run jacobi2d.py"
    )
    options.add_argument(
        "--jacobi-cores", type=int, default=1, metavar="N", help="cores of a node for that (1)"
    )
    chosen = options.parse_args()
    if chosen.draw is not None and find_spec("matplotlib") is None:
        raise BenchmarkError("--draw: needs matplotlib (pip install matplotlib)")

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        measured = {
            ranks: ours(ranks, directory, (CORES, COSTS), chosen.repeats, program())
            for ranks in chosen.ranks
        }
        cores = chosen.jacobi_cores
        grids = {ranks: jacobi(ranks, cores, directory, chosen.repeats) for ranks in chosen.jacobi}
        theirs, mine = side_by_side(directory, chosen.patience) if chosen.smpi else ({}, {})

    missed = show(measured, chosen.limit)
    if grids:
        print(f"\njacobi2d.py, 10 iterations, {cores} ranks a node:")
        show(grids, None)
    if theirs:
        print("\nA node each, SMPI and pysmpi:")
        rows = []
        for ranks in theirs:
            rows += [row("SMPI", ranks, theirs[ranks]), row("pysmpi", ranks, mine[ranks])]
        print(table(("simulator", "ranks", "wall s", "CPU s", "peak MB", "kB a rank"), rows))
    groups = {"pysmpi": measured, "jacobi2d": grids, "SMPI": theirs, "pysmpi, a node each": mine}
    records = [
        {"runs": group, "ranks": ranks, **each.record()}
        for group, runs in groups.items()
        for ranks, each in runs.items()
    ]
    write_json(chosen.json, "scale", records)
    if chosen.draw is not None:
        draw({name: groups[name] for name in ("pysmpi", "SMPI") if groups[name]}, chosen.draw)
    if missed:
        print(f"missed: more than {chosen.limit:g} kB a rank", file=sys.stderr)
    return 1 if missed else 0


def show(measured: dict[int, Measurement], limit: float | None) -> bool:
    """Print a table; whether a rank takes more than `limit` kB."""
    least = min(measured)
    lines, missed = [], False
    for ranks, each in measured.items():
        # The memory of the interpreter and its libraries is that of the smallest run.
        more = (each.peak - measured[least].peak) / max(ranks - least, 1)
        missed |= limit is not None and ranks > least and more > limit * 1e3
        lines.append(
            (
                f"{ranks:,}",
                f"{each.fastest:.2f}",
                f"{min(each.processor):.2f}",
                f"{min(each.processor) / ranks * 1e6:.0f}",
                f"{each.peak / 1e6:,.0f}",
                f"{more / 1e3:.1f}" if ranks > least else "",
            )
        )
    heads = ("ranks", "wall s", "CPU s", "CPU us a rank", "peak MB", "kB a further rank")
    print(table(heads, lines))
    return missed


def ours(
    ranks: int, directory: Path, node: tuple[int, str], repeats: int, *words: object
) -> Measurement:
    """Runs of pysmpi with as many ranks, on nodes of some cores, with overheads of messages."""
    cores, costs = node
    machine = directory / f"nodes-{cores}-{ranks}.yaml"
    machine.write_text(NODES.format(cores=cores, costs=costs, last=math.ceil(ranks / cores) - 1))
    where = ("--platform", machine, "--map-by", "core", "--selector", "default")
    chosen = trees("--coll", "=")
    measurement = Measurement(pysmpi("-n", ranks, *where, *chosen, *words))
    for _ in range(repeats):
        measurement.run(PATIENCE)
    print(
        f"{ranks:,} ranks: {min(measurement.processor):.1f} s of processor time, "
        f"{measurement.peak / 1e6:,.0f} MB",
        file=sys.stderr,
        flush=True,
    )
    return measurement


def jacobi(ranks: int, cores: int, directory: Path, repeats: int) -> Measurement:
    """Ten iterations on some four by four points a rank, which share nothing but the network."""
    size = 4 * math.isqrt(2 * ranks)
    words = (TOP / "apps" / "jacobi2d.py", "--size", size, "--iterations", 10)
    return ours(ranks, directory, (cores, ""), repeats, *words)


def trees(option: str, between: str, prefix: str = "") -> list[str]:
    """The options that choose `TREES`: those of pysmpi, or of SMPI."""
    chosen = [f"{prefix}{operation}{between}{name}" for operation, name in TREES.items()]
    return [word for one in chosen for word in ((option, one) if option else (one,))]


def program() -> Path:
    """The program in Python."""
    return HERE / "programs" / f"{PROGRAM}.py"


def side_by_side(
    directory: Path, patience: float
) -> tuple[dict[int, Measurement], dict[int, Measurement]]:
    """SMPI with more and more ranks until it fails, and pysmpi with the same numbers."""
    need("smpirun", HINT)
    binary = directory / PROGRAM
    compiler = need("smpicc", HINT)
    Measurement([compiler, "-O2", str(HERE / "c" / f"{PROGRAM}.c"), "-o", str(binary)]).run()
    theirs: dict[int, Measurement] = {}
    mine: dict[int, Measurement] = {}
    ranks = 1000
    while True:
        machine, hosts = write_cluster(directory, ranks)
        # Stacks of 64 KiB without guard pages, and no copy of the data segment a rank: the
        # leanest that SMPI offers.
        smpi = Measurement(
            ["smpirun", "-np", str(ranks), "-platform", str(machine), "-hostfile", str(hosts)]
            + ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/privatization:no"]
            + ["--cfg=contexts/guard-size:0", "--cfg=contexts/stack-size:64"]
            + trees("", ":", "--cfg=smpi/")
            + ["--log=root.thres:critical", str(binary)]
        )
        try:
            smpi.run(patience)
        except BenchmarkError as error:
            print(f"SMPI with {ranks:,} ranks: {error}\n", file=sys.stderr)
            return theirs, mine
        theirs[ranks] = smpi
        words = ("--platform", machine, "--hostfile", hosts, *trees("--coll", "="), program())
        mine[ranks] = Measurement(pysmpi("-n", ranks, *words))
        mine[ranks].run(PATIENCE)
        ranks *= 2


def row(name: str, ranks: int, each: Measurement) -> tuple[str, ...]:
    """A line of the table side by side."""
    return (
        name,
        f"{ranks:,}",
        f"{each.fastest:.2f}",
        f"{min(each.processor):.2f}",
        f"{each.peak / 1e6:,.0f}",
        f"{each.peak / ranks / 1e3:.1f}",
    )


def draw(groups: dict[str, dict[int, Measurement]], file: Path) -> None:
    """Draw memory and processor time against the number of ranks."""
    # Not before the runs: Linux counts memory that is held here as that of a command started.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    quantities: tuple[tuple[str, Callable[[Measurement], float]], ...] = (
        ("peak memory (MB)", lambda each: each.peak / 1e6),
        ("processor time (s)", lambda each: min(each.processor)),
    )
    for axes, (unit, value) in zip(panels, quantities, strict=True):
        for (name, runs), style in zip(groups.items(), ("o-", "s:"), strict=False):
            ranks = sorted(runs)
            axes.loglog(ranks, [value(runs[n]) for n in ranks], style, label=name)
        ranks = sorted(groups["pysmpi"])
        ends = [value(groups["pysmpi"][n]) for n in (ranks[0], ranks[-1])]
        # From the start-up of the smallest run, in proportion to the ranks.
        slope = (ends[1] - ends[0]) / max(ranks[-1] - ranks[0], 1)
        fine = [ranks[0] * (ranks[-1] / ranks[0]) ** (i / 60) for i in range(61)]
        line = [ends[0] + slope * (n - ranks[0]) for n in fine]
        axes.loglog(fine, line, "--", color="grey", linewidth=1, label="linear", zorder=0)
        axes.set_xlabel("ranks")
        axes.set_ylabel(unit)
        axes.grid(True, alpha=0.3)
        axes.legend()
    figure.savefig(file, dpi=100)
    pyplot.close(figure)


if __name__ == "__main__":
    run(main)
