"""Processor time of replays side by side with smpirun: generated traces of 64 ranks.

    python benchmarks/replays_against_smpi.py --repeats 5 --only cg

Both replay the same trace on the same cluster and must predict the same time (to 1 %).  Exit status
1 when a ratio is above the wanted one.  `--keep FOLDER` keeps the traces.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from side_by_side import (
    BenchmarkError,
    Measurement,
    need,
    parser,
    run,
    table,
    take_turns,
    write_cluster,
    write_json,
)

RANKS = 64
SIDE = 8  # of the grid of ranks
WANTED = 0.2
HINT = "SMPI is in Debian's libsimgrid-dev"


def wavefront(rank: int, sweeps: int) -> Iterator[str]:
    """Sweeps over a grid from one corner, then from the other, as in LU."""
    row, column = divmod(rank, SIDE)
    south = [rank + SIDE] if row < SIDE - 1 else []
    east = [rank + 1] if column < SIDE - 1 else []
    north = [rank - SIDE] if row else []
    west = [rank - 1] if column else []
    for sweep in range(sweeps):
        before, after = north + west, south + east
        if sweep % 2:
            before, after = after, before
        for peer in before:
            yield f"recv {peer} 0 1000 6"
        yield "compute 50000"
        for peer in after:
            yield f"send {peer} 0 1000 6"


def exchanges(rank: int, iterations: int) -> Iterator[str]:
    """Send the messages of CG: sums over a row of the grid, and the exchange of a vector."""
    row, column = divmod(rank, SIDE)
    transposed = column * SIDE + row
    partners = [row * SIDE + (column ^ distance) for distance in (4, 2, 1)]
    sums = [(partner, 8) for partner in partners]
    vector = [(partner, 14_000) for partner in reversed(partners)] + [(transposed, 14_000)]
    for _ in range(iterations):
        yield "compute 200000"
        for partner, count in (*vector, *sums, *sums):
            yield f"irecv {partner} 0 {count} 6"
            yield f"send {partner} 0 {count} 6"
            yield f"wait {partner} {rank} 0"


def alltoall(rank: int, calls: int) -> Iterator[str]:
    """Alltoall of 1,000 bytes a pair."""
    for _ in range(calls):
        yield "compute 100000"
        yield "alltoall 1000 1000 6 6"


@dataclass(frozen=True)
class Case:
    """A pattern: the lines of a rank for a number of repetitions, and the messages of one."""

    name: str
    line: str
    lines: Callable[[int, int], Iterator[str]]
    messages: int


CASES = (
    Case("lu", "wavefront like LU's", wavefront, 2 * SIDE * (SIDE - 1)),
    Case("cg", "pairwise exchanges like CG's", exchanges, 10 * RANKS),
    # Six rounds of Bruck's algorithm.
    Case("alltoall", "Alltoall of 1,000 bytes", alltoall, 6 * RANKS),
)


def write_trace(case: Case, messages: int, folder: Path) -> Path:
    """Write the trace of a case, of about so many messages; its index."""
    repetitions = max(1, round(messages / case.messages))
    names = []
    for rank in range(RANKS):
        file = folder / f"{case.name}-{rank}.ti"
        with open(file, "w", encoding="ascii") as stream:
            stream.write(f"{rank} init\n")
            stream.writelines(f"{rank} {line}\n" for line in case.lines(rank, repetitions))
            stream.write(f"{rank} finalize\n")
        names.append(f"{file}\n")
    index = folder / f"{case.name}.index"
    index.write_text("".join(names))
    return index


def commands(index: Path, machine: Path, hosts: Path) -> tuple[Measurement, Measurement]:
    """The two commands of a trace: SMPI's and pysmpi's."""
    # smpirun prints the predicted time to standard error, and to nowhere else.
    theirs = (
        f"smpirun -np {RANKS} -platform {machine} -hostfile {hosts} -replay {index} "
        "--cfg=smpi/coll-selector:ompi --log=smpi_replay.thresh:critical "
        "--cfg=smpi/display-timing:yes 2>&1"
    )
    ours = (
        f"{sys.executable} -m pysmpi replay {index} --platform {machine} --hostfile {hosts} "
        "--selector ompi 2>&1"
    )
    return Measurement(["sh", "-c", theirs]), Measurement(["sh", "-c", ours])


_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def seconds_of(measurement: Measurement) -> float:
    """The predicted time (s) that a command has printed."""
    output = measurement.output
    theirs = re.search(r"(?:Simulation time|Simulated time:) ([\d.]+)", output)
    if theirs:
        return float(theirs[1])
    ours = re.search(r"predicted time ([\d.,]+) (s|ms|us|ns)\b", output)
    if ours is None:
        raise BenchmarkError(f"no predicted time in the output of {measurement.shown}")
    return float(ours[1].replace(",", "")) * _UNITS[ours[2]]


def main() -> int:
    """Measure the cases, print the table, judge."""
    options = parser("processor time of replays side by side with SMPI", repeats=3)
    options.add_argument("--only", action="append", choices=[case.name for case in CASES])
    options.add_argument(
        "--messages", type=int, default=1_000_000,
        help="of a trace; smpirun's time for the wavefront grows faster than they do",
    )  # fmt: skip
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="write the traces there")
    chosen = options.parse_args()
    need("smpirun", HINT)
    lines, records, failures = [], [], []
    with tempfile.TemporaryDirectory() if chosen.keep is None else nullcontext(chosen.keep) as name:
        folder = Path(name).resolve()
        folder.mkdir(exist_ok=True)
        machine, hosts = write_cluster(folder, RANKS)
        for case in CASES:
            if chosen.only and case.name not in chosen.only:
                continue
            index = write_trace(case, chosen.messages, folder)
            theirs, ours = commands(index, machine, hosts)
            take_turns((theirs, ours), chosen.repeats)
            there, here = statistics.median(theirs.processor), statistics.median(ours.processor)
            predicted = seconds_of(theirs), seconds_of(ours)
            apart = abs(predicted[1] - predicted[0]) / predicted[0]
            if here > WANTED * there:
                failures.append(f"{case.name}: ratio {here / there:.2f}, wanted {WANTED} at most")
            if apart > 0.01:
                failures.append(
                    f"{case.name}: SMPI predicts {predicted[0]:.9g} s, pysmpi {predicted[1]:.9g} s"
                )
            count = max(1, round(chosen.messages / case.messages)) * case.messages
            lines.append(
                (case.line, f"{count:,}", f"{there:.2f}", f"{here:.2f}", f"{here / there:.3f}",
                 f"{predicted[0]:.6g}", f"{predicted[1]:.6g}")
            )  # fmt: skip
            print(f"{case.name}: ratio {here / there:.3f}", file=sys.stderr, flush=True)
            records.append(
                {"name": case.name, "messages": count, "smpi": theirs.record(),
                 "pysmpi": ours.record(), "ratio": here / there}
            )  # fmt: skip
    headings = ("trace", "messages", "SMPI, s", "pysmpi, s", "ratio", "SMPI predicts", "pysmpi")
    print(table(headings, lines))
    write_json(chosen.json, "replays_against_smpi", records)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


run(main)
