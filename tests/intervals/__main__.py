"""The coverage of the two intervals of 90 %, over programs.

    python -m tests.intervals prediction --out FILE     # beside a real MPICH, two ranks
    python -m tests.intervals sampling --out FILE       # beside the same runs in full
    python -m tests.intervals noise --out FILE          # of some seeds, beside others
    python -m tests.intervals table FILE...

Each program is a case: its interval contains the real time or not. The programs are then
resampled (10,000 times), which shows how much the coverage depends on their choice.

`prediction` measures a machine file of this computer first (`pysmpi calibrate network`). Each
program is short, and repeated for --seconds. The lower quartile counts on both sides, and of some
runs of the simulator the shortest: other users of a processor make a core slower for tenths of a
second, by up to 1.7 times on virtual machines. On a busy computer, ranks of MPICH wait for cores.
The kernel tells for how long, and this time is taken out; a repetition in which both ranks waited
for more than a twentieth of the rest does not count, since their waits may or may not have
overlapped. A program without a quiet repetition is left out, and a line says so.

`sampling` runs each program in full and sampled in turns, by processor time. The median of the full
runs counts. Both take `--compute steady`: on a busy computer, two runs in full with `native` differ
by up to a third. A program whose summary says that it decides by its data has no interval to check.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from tests.intervals.programs import NOISY, PREDICTED, SAMPLED, TOP, Program, Sources

HERE = Path(__file__).parent
RUNS = 5  # of the simulator: each is shorter than a core is slow at times
QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
BOTH_DELAYED = 0.05  # of the rest: the most time that both ranks may have waited for a core
RESAMPLED = 10_000
TURNS = 30  # of a simulated program
SEEDS, OTHER_SEEDS = 8, 12  # of the interval, and those that it is compared with


def pysmpi(words: Sequence[str], program: Program, path: str) -> dict[str, Any] | None:
    """The report of a run; None if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        report = f"{folder}/report.json"
        hidden = Path(folder, "hidden")
        hidden.mkdir()
        if program.without:
            (hidden / f"{program.without}.py").write_text("raise ImportError\n")
        paths = [str(hidden), str(TOP), os.environ.get("PYTHONPATH", "")]
        place = Path(path).parent / program.folder if program.folder else None
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", "run", "-q", *words, "--report", report, path,
             *program.arguments],
            input=program.input, capture_output=True, text=True, timeout=900, cwd=place,
            env={**os.environ, **QUIET, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )  # fmt: skip
        if done.returncode not in (0, *program.statuses) or not os.path.exists(report):
            print(f"{program.name}: {done.stderr[-400:]}", file=sys.stderr)
            return None
        found: dict[str, Any] = json.loads(Path(report).read_text())
    return found


def times(command: Sequence[str], target: str, program: Program) -> list[list[float]]:
    """The lines that real_time.py has written to the file `target`, run by a command."""
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command, input=program.input, capture_output=True, text=True, timeout=300,
            env={**os.environ, **QUIET, "REAL_TIME_CALL": program.call},
        )  # fmt: skip
    if not os.path.exists(target):
        return []
    return [json.loads(line) for line in Path(target).read_text().splitlines()]


def undisturbed(seconds: Sequence[float]) -> float:
    """The lower quartile."""
    return sorted(seconds)[len(seconds) // 4]


def prediction(sources: Sources, machine: str, seconds: float, out: Path, again: bool) -> None:
    """Compare the intervals of predictions with MPICH.

    `again` predicts the programs whose real times are known once more.
    """
    rows = json.loads(out.read_text()) if out.exists() else {}
    script = str(HERE / "real_time.py")
    for program in PREDICTED:
        path = sources.find(program)
        if path is None or (program.name in rows) is not again:
            continue
        with tempfile.TemporaryDirectory() as folder:
            real, simulated = f"{folder}/real", f"{folder}/simulated"
            report = f"{folder}/report.json"
            words = ["mpiexec", "-n", "2", sys.executable, script, real, str(seconds), "3", path]
            measured = [] if again else times([*words, *program.arguments], real, program)
            words = [
                sys.executable, "-m", "pysmpi", "run", "-n", "2", "--platform", machine,
                "--map-by", "node", "--explain", "--report", report, script, simulated, "0",
                str(TURNS), path,
            ]  # fmt: skip
            runs = []
            for _ in range(RUNS):
                Path(simulated).unlink(missing_ok=True)
                took = times([*words, *program.arguments], simulated, program)
                runs += [undisturbed([one for one, *_ in took])] if took else []
            if not runs or not os.path.exists(report) or not (measured or again):
                print(f"{program.name}: failed", flush=True)
                continue
            figures = json.loads(Path(report).read_text())
        good = [
            wall - max(waits)
            for wall, *waits in measured
            if min(waits) <= BOTH_DELAYED * (wall - max(waits))
        ]
        if again:
            good = [rows[program.name]["real"]]
        elif not good:
            print(f"{program.name}: no quiet repetition of {len(measured)}", flush=True)
            continue
        interval, whole = figures["intervals"]["prediction"], figures["seconds"]
        one = min(runs)
        rows[program.name] = {
            "from": program.source, "predicted": one, "real": undisturbed(good),
            "low": one * interval["low_seconds"] / whole,
            "high": one * interval["high_seconds"] / whole,
            "sensitivity": figures["analysis"]["sensitivity"],
            "repetitions": len(measured) or rows[program.name]["repetitions"],
            "quiet": len(good) if measured else rows[program.name]["quiet"],
        }  # fmt: skip
        out.write_text(json.dumps(rows, indent=1) + "\n")
        print(row_text(program.name, rows[program.name]), flush=True)


def sampling(sources: Sources, out: Path, repeats: int) -> None:
    """Compare the intervals of sampled runs with full ones."""
    rows = json.loads(out.read_text()) if out.exists() else {}
    for program in SAMPLED:
        path = sources.find(program)
        key = " ".join((program.name, *program.options))
        if path is None or key in rows:
            continue
        words = ["-n", str(program.ranks), "--platform", "cluster", "--compute", "steady"]
        full, sampled = [], []
        for _ in range(repeats):
            for report, options in ((full, ()), (sampled, program.options)):
                one = pysmpi([*words, *options], program, path)
                if one is not None:
                    report.append(one)
        # The run whose interval counts is the first one.
        first = sampled[0] if sampled else None
        if first is None or len(full) < repeats:
            print(f"{key}: failed", flush=True)
            continue
        interval = (first["intervals"] or {}).get("sampling")
        if interval is None:
            print(f"{key}: nothing was skipped", flush=True)
            continue
        rows[key] = {
            "from": program.source, "predicted": first["seconds"],
            "real": median(one["seconds"] for one in full),
            "full": [one["seconds"] for one in full],
            "sampled": [
                (one["seconds"], one["intervals"] and one["intervals"]["sampling"])
                for one in sampled
            ],
            "steered": any("decides by its data" in remark for remark in first["remarks"]),
            "low": interval["low_seconds"], "high": interval["high_seconds"],
        }  # fmt: skip
        out.write_text(json.dumps(rows, indent=1) + "\n")
        print(row_text(key, rows[key]), flush=True)


def noise(sources: Sources, out: Path) -> None:
    """Compare the intervals of some seeds of noise with the times of others."""
    from pysmpi.cli.seeds import interval

    rows = json.loads(out.read_text()) if out.exists() else {}
    for program in NOISY:
        path = sources.find(program)
        if path is None or program.name in rows:
            continue
        words = [
            "-n", "8", "--platform", "cluster", "--compute", "100us", "--noise", "linux-cluster",
            "--fault", "jitter:time=2us", "--seeds", str(SEEDS + OTHER_SEEDS),
        ]  # fmt: skip
        report = pysmpi(words, program, path)
        if report is None:
            continue
        seconds = report["seconds"]
        low, high = interval(seconds[:SEEDS]) or (0.0, 0.0)
        others = seconds[SEEDS:]
        rows[program.name] = {
            "from": program.source, "predicted": median(seconds[:SEEDS]), "real": median(others),
            "low": low, "high": high,
            "inside": sum(low <= one <= high for one in others) / len(others),
        }  # fmt: skip
        out.write_text(json.dumps(rows, indent=1) + "\n")
        print(program.name, rows[program.name], flush=True)


def row_text(name: str, row: Mapping[str, Any]) -> str:
    """One row of the table."""
    inside = row["low"] <= row["real"] <= row["high"]
    width = (row["high"] - row["low"]) / row["predicted"]
    return (
        f"| {name} | {row['from']} | {row['predicted']:.4g} | {row['low']:.4g} to "
        f"{row['high']:.4g} | {row['real']:.4g} | {row['predicted'] / row['real'] - 1:+.1%} | "
        f"{width:.0%} | {'steered' if row.get('steered') else 'yes' if inside else '**no**'} |"
    )


def table(files: Sequence[str]) -> None:
    """Print the rows of some files, and their coverage."""
    for file in files:
        rows = json.loads(Path(file).read_text())
        print("| program | from | predicted, s | interval, s | real, s | error | width | inside |")
        print("| --- | --- | ---: | --- | ---: | ---: | ---: | --- |")
        for name, row in rows.items():
            print(row_text(name, row))
        cases = [
            (row.get("inside", row["low"] <= row["real"] <= row["high"]),
             (row["high"] - row["low"]) / row["predicted"])
            for row in rows.values()
            if not row.get("steered")
        ]  # fmt: skip
        draw = random.Random(1)
        coverages, widths = [], []
        for _ in range(RESAMPLED):
            some = draw.choices(cases, k=len(cases))
            coverages.append(sum(inside for inside, _ in some) / len(some))
            widths.append(median(width for _, width in some))
        coverages.sort()
        widths.sort()
        for half in (0, 1):  # of programs, as in the list
            some = cases[half::2]
            inside = sum(inside for inside, _ in some) / max(len(some), 1)
            print(f"programs {half + 1}, {half + 3}, ...: coverage {inside:.0%}")
        low, high = RESAMPLED // 20, RESAMPLED - RESAMPLED // 20 - 1
        print(
            f"{len(cases)} programs: coverage "
            f"{sum(inside for inside, _ in cases) / len(cases):.0%} ({coverages[low]:.0%} to "
            f"{coverages[high]:.0%} resampled), median width "
            f"{median(width for _, width in cases):.0%} ({widths[low]:.0%} to {widths[high]:.0%})"
        )


def main() -> None:
    """Run a part of the check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("part", choices=("prediction", "sampling", "noise", "table"))
    parser.add_argument("files", nargs="*")
    parser.add_argument("--out", type=Path, help="results as JSON; a second call continues")
    parser.add_argument("--machine", help="the machine file of this computer")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each real program (20)")
    parser.add_argument("--repeats", type=int, default=3, help="of full and sampled runs (3)")
    parser.add_argument("--again", action="store_true", help="predict again, with the real times")
    parser.add_argument("--sources", action="append", default=[], help="a folder of programs")
    given = parser.parse_args()
    if given.part == "table":
        table(given.files)
        return
    out = given.out or Path(f"{given.part}.json")
    if given.part == "sampling":
        sampling(Sources(given.sources), out, given.repeats)
        return
    if given.part == "noise":
        noise(Sources(given.sources), out)
        return
    with tempfile.TemporaryDirectory() as folder:
        machine = given.machine
        if machine is None:
            machine = f"{folder}/here.yaml"
            subprocess.run(
                ["mpiexec", "-n", "2", sys.executable, "-m", "pysmpi", "calibrate", "network",
                 "-o", machine],
                check=True, timeout=900, env={**os.environ, **QUIET},
            )  # fmt: skip
        prediction(Sources(given.sources), machine, given.seconds, out, given.again)


if __name__ == "__main__":
    main()
