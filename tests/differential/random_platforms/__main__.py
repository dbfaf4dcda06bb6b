"""Random machines and programs beside SMPI: `python -m tests.differential.random_platforms`.

Needs smpirun and smpicc (Debian: libsimgrid-dev). Each case is a machine, a program and options;
its phases are compared rank by rank. The exit status is 1 if fewer than the wanted part of the
times are within 1 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from random import Random

import pysmpi

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from interpreter import execute  # noqa: E402
from machines import machine, options  # noqa: E402
from programs import KINDS, program  # noqa: E402

PRECISION = 5e-9  # seconds: SimGrid's dates are exact to a nanosecond


def case(seed: int, persistent: bool = False) -> dict[str, object]:
    """A case: a machine, the hosts of the ranks, options, lines and labels."""
    draw = Random(f"random platforms {seed}")
    a_host = draw.choice([1, 1, 1, 2, 3])
    xml, hosts = machine(draw, draw.choice([a_host, 4]))
    nprocs = draw.randint(2, min(16, len(hosts) * a_host))
    chosen = draw.sample(hosts, min(len(hosts), -(-nprocs // a_host)))
    places = [host for host in chosen for _ in range(a_host)][:nprocs]
    made = program(draw, nprocs, persistent)
    return {
        "seed": seed, "platform": xml, "hosts": places, "options": options(draw),
        "lines": made.lines, "labels": made.labels,
    }  # fmt: skip


def write(found: dict[str, object], folder: Path) -> None:
    """Write the files of a case."""
    (folder / "platform.xml").write_text(str(found["platform"]))
    (folder / "hosts").write_text("\n".join(found["hosts"]) + "\n")
    for rank, lines in enumerate(found["lines"]):
        (folder / f"{rank}.program").write_text("\n".join(lines) + "\n")


def by_smpi(found, folder: Path, built: Path, *more: str) -> list[list[float]] | None:
    """The times of SMPI; None if it fails."""
    words = ["smpirun", "-np", str(len(found["hosts"])), "-platform", str(folder / "platform.xml")]
    words += ["-hostfile", str(folder / "hosts"), "--log=root.thres:critical"]
    words += [f"--cfg={name}:{value}" for name, value in found["options"].items()]
    words += [*more, str(built), str(folder)]
    for old in folder.glob("*.times"):
        old.unlink()
    try:
        ended = subprocess.run(words, capture_output=True, timeout=60, check=False)
        if ended.returncode:
            return None
        return [
            [float(line) for line in (folder / f"{rank}.times").read_text().split()]
            for rank in range(len(found["hosts"]))
        ]
    except (subprocess.TimeoutExpired, OSError):
        return None


def by_pysmpi(found, folder: Path) -> list[list[float]]:
    """The times of pysmpi."""
    return pysmpi.run(
        execute, len(found["hosts"]), args=(found["lines"],), platform=folder / "platform.xml",
        hostfile=folder / "hosts", cfg=found["options"], compute="none",
    ).returns  # fmt: skip


def intervals(found, times: list[list[float]]) -> list[list[float]]:
    """The duration of each phase in each rank."""
    return [[rank[2 * i + 1] - rank[2 * i] for rank in times] for i in range(len(found["labels"]))]


def near(one: float, other: float, part: float = 0.01) -> bool:
    """Whether two times are equal to a part of the larger, or to SimGrid's precision."""
    return abs(one - other) <= max(part * max(abs(one), abs(other)), PRECISION)


def main() -> int:
    """Run the cases, and print the part of times within 1 % by kind."""
    words = argparse.ArgumentParser(description="random machines and programs beside SMPI")
    words.add_argument("--cases", type=int, default=50)
    words.add_argument("--seed", type=int, default=0, help="of the first case")
    words.add_argument("--persistent", action="store_true", help="include persistent requests")
    words.add_argument("--wanted", type=float, default=0.998)
    words.add_argument("--record", type=Path, help="write cases and SMPI's times to this file")
    given = words.parse_args()
    total: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    failed = 0
    records = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = folder / "interpreter"
        subprocess.run(
            ["smpicc", "-O1", str(HERE / "interpreter.c"), "-o", str(built)], check=True,
            capture_output=True,
        )  # fmt: skip
        for seed in range(given.seed, given.seed + given.cases):
            found = case(seed, given.persistent)
            write(found, folder)
            theirs = by_smpi(found, folder, built)
            if theirs is None:
                failed += 1
                continue
            wanted, times = intervals(found, theirs), intervals(found, by_pysmpi(found, folder))
            exact = None
            for i, label in enumerate(found["labels"]):
                kind = label.split()[0]
                far = [r for r, pair in enumerate(zip(wanted[i], times[i])) if not near(*pair)]
                total[kind][0] += len(wanted[i]) - len(far)
                total[kind][1] += len(wanted[i])
                if far and KINDS[kind]:
                    if exact is None:
                        full = by_smpi(found, folder, built, "--cfg=network/optim:Full")
                        exact = wanted if full is None else intervals(found, full)
                    solved = all(near(exact[i][r], times[i][r]) for r in far)
                    print(
                        f"seed {seed} {label}: {len(far)} of {len(wanted[i])} ranks; rank "
                        f"{far[0]}: {wanted[i][far[0]]:.9g} s, here {times[i][far[0]]:.9g} s"
                        + (", as with network/optim:Full" if solved else ""),
                        flush=True,
                    )  # fmt: skip
            records.append({**found, "seconds": wanted})
    if given.record is not None:
        given.record.write_text(json.dumps(records))
    judged = [pair for kind, pair in total.items() if KINDS[kind]]
    near_ones, all_ones = (sum(pair[i] for pair in judged) for i in range(2))
    for kind, (good, count) in sorted(total.items()):
        print(f"{kind:12} {good:7,} of {count:7,} {good / count:8.3%}")
    part = near_ones / max(1, all_ones)
    print(f"{part:.3%} of {all_ones:,} times within 1 %; SMPI failed in {failed} cases")
    return 0 if part >= given.wanted else 1


if __name__ == "__main__":
    sys.exit(main())
