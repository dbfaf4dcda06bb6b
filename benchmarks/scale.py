"""Memory and time of many ranks on one machine, up to a million.

    python benchmarks/scale.py --ranks 1000 10000 100000 1000000 --draw scale.png
    python benchmarks/scale.py --ranks 1000 --smpi

Each rank says hello and does a ring exchange, a barrier, an allreduce, a split into (at most) a
thousand communicators, and an allreduce in its own; 64 ranks share a node.  With `--smpi` the
same program in C, on one node a rank, runs under SMPI with twice as many ranks each time, until
it fails or takes too long; the largest number that it could start is then run by pysmpi.
Exit status 1 when a rank costs more memory than wanted.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

from side_by_side import (
    HERE,
    BenchmarkError,
    Measurement,
    need,
    parser,
    pysmpi,
    run,
    table,
    take_turns,
    write_cluster,
    write_json,
)

CORES = 64
PROGRAM = "million_ranks"
NODES = """name: nodes
description: Nodes of 64 cores on a 100 Gb/s network, for measuring the simulator.
config:
  smpi/async-small-thresh: 16384
  smpi/send-is-detached-thresh: 16384
clusters:
  - name: nodes
    hosts: node-[0-{last}]
    speed: 10Gf
    cores: 64
    link: {{bandwidth: 100Gbps, latency: 500ns}}
    loopback: {{bandwidth: 8GBps, latency: 300ns}}
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
    chosen = options.parse_args()

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        measured = {ranks: ours(ranks, directory, chosen.repeats) for ranks in chosen.ranks}
        peers = side_by_side(directory, chosen.patience) if chosen.smpi else []

    least = min(measured)
    lines, missed = [], False
    for ranks, each in measured.items():
        # What the interpreter and its libraries take is in the smallest run.
        more = (each.peak - measured[least].peak) / max(ranks - least, 1)
        missed |= ranks > least and more > chosen.limit * 1e3
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
    if peers:
        print()
        print(table(("simulator", "ranks", "wall s", "CPU s", "peak MB", "kB a rank"), peers))
    records = [{"ranks": ranks, **each.record()} for ranks, each in measured.items()]
    write_json(chosen.json, "scale", records)
    if chosen.draw is not None:
        draw(measured, chosen.draw)
    if missed:
        print(f"missed: more than {chosen.limit:g} kB a rank", file=sys.stderr)
    return 1 if missed else 0


def ours(ranks: int, directory: Path, repeats: int) -> Measurement:
    """Our runs with as many ranks."""
    machine = directory / f"nodes-{ranks}.yaml"
    machine.write_text(NODES.format(last=math.ceil(ranks / CORES) - 1))
    measurement = Measurement(
        pysmpi("-n", ranks, "--platform", machine, "--map-by", "core", program())
    )
    take_turns((measurement,), repeats)
    return measurement


def program() -> Path:
    """The program in Python."""
    return HERE / "programs" / f"{PROGRAM}.py"


def side_by_side(directory: Path, patience: float) -> list[tuple[str, ...]]:
    """SMPI with more and more ranks, and pysmpi with the most that SMPI managed."""
    need("smpirun", HINT)
    binary = directory / PROGRAM
    compiler = need("smpicc", HINT)
    Measurement([compiler, "-O2", str(HERE / "c" / f"{PROGRAM}.c"), "-o", str(binary)]).run()
    rows: list[tuple[str, ...]] = []
    ranks, last = 1000, 0
    while True:
        machine, hosts = write_cluster(directory, ranks)
        # Stacks of 64 KiB without guard pages, and no copy of the data segment a rank: the
        # leanest that SMPI offers.
        theirs = Measurement(
            ["smpirun", "-np", str(ranks), "-platform", str(machine), "-hostfile", str(hosts)]
            + ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/privatization:no"]
            + ["--cfg=contexts/guard-size:0", "--cfg=contexts/stack-size:64"]
            + ["--log=root.thres:critical", str(binary)]
        )
        try:
            theirs.run(patience)
        except BenchmarkError as error:
            print(f"SMPI with {ranks:,} ranks: {error}\n", file=sys.stderr)
            break
        rows.append(row("SMPI", ranks, theirs))
        last = ranks
        ranks *= 2
    if last:
        machine, hosts = write_cluster(directory, last)
        mine = Measurement(
            pysmpi("-n", last, "--platform", machine, "--hostfile", hosts, program())
        )
        mine.run()
        rows.append(row("pysmpi", last, mine))
    return rows


def row(name: str, ranks: int, each: Measurement) -> tuple[str, ...]:
    """A line of the second table."""
    return (
        name,
        f"{ranks:,}",
        f"{each.fastest:.2f}",
        f"{min(each.processor):.2f}",
        f"{each.peak / 1e6:,.0f}",
        f"{each.peak / ranks / 1e3:.1f}",
    )


def draw(measured: dict[int, Measurement], file: Path) -> None:
    """Draw memory and processor time against the number of ranks."""
    try:
        import matplotlib
    except ImportError:
        raise BenchmarkError("--draw: needs matplotlib (pip install matplotlib)") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    ranks = sorted(measured)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    peaks = [measured[n].peak / 1e6 for n in ranks]
    times = [min(measured[n].processor) for n in ranks]
    for axes, values, unit in ((left, peaks, "peak memory (MB)"), (right, times, "CPU time (s)")):
        axes.loglog(ranks, values, "o-", label="measured")
        # From the start-up of the smallest run, in proportion to the ranks.
        slope = (values[-1] - values[0]) / max(ranks[-1] - ranks[0], 1)
        linear = [values[0] + slope * (n - ranks[0]) for n in ranks]
        axes.loglog(ranks, linear, "--", color="grey", label="linear")
        axes.set_xlabel("ranks")
        axes.set_ylabel(unit)
        axes.grid(True, which="both", alpha=0.25)
        axes.legend()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    run(main)
