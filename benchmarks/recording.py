"""The cost of recording: a run without a trace beside runs that record it.

    python benchmarks/recording.py --repeats 5 --only jsonl

The table has median processor seconds, the peak of memory and the size of the trace.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from side_by_side import HERE, Measurement, parser, run, table, take_turns, write_json

RANKS = 16
PROGRAM = ("solver.py", "200", "1000")  # 200 iterations: 32,000 calls, 25,600 messages
SUFFIXES = ("jsonl", "jsonl.gz", "ti", "json", "csv", "parquet")


def command(trace: Path | None) -> Measurement:
    """The run, which is recorded to a file or not at all."""
    line = [sys.executable, "-m", "pysmpi", "run", "-n", str(RANKS), "--platform", "graphene"]
    line += ["--compute", "10us", *([] if trace is None else ["--trace", str(trace)])]
    return Measurement([*line, str(HERE / "programs" / PROGRAM[0]), *PROGRAM[1:]])


def main() -> int:
    """Measure, and print the table."""
    options = parser("the cost of recording", repeats=5)
    options.add_argument("--only", action="append", choices=SUFFIXES)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        traces = [Path(name) / f"run.{suffix}" for suffix in chosen.only or SUFFIXES]
        runs = [command(trace) for trace in (None, *traces)]
        take_turns(runs, chosen.repeats)
        sizes = [0, *(trace.stat().st_size for trace in traces)]
    rows, records = [], []
    for title, made, size in zip(("none", *(chosen.only or SUFFIXES)), runs, sizes, strict=True):
        seconds = statistics.median(made.processor)
        rows.append((title, f"{seconds:.2f}", f"{made.peak / 2**20:.0f}", f"{size / 2**20:.1f}"))
        records.append({"name": title, "trace_bytes": size, **made.record()})
    print(table(("trace", "processor s", "peak MiB", "trace MiB"), rows))
    write_json(chosen.json, "recording", records)
    return 0


run(main)
