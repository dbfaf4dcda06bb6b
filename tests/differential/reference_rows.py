"""Reference rows of SMPI's predictions: read them, run pysmpi on them, compare."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pysmpi

TESTS = Path(__file__).resolve().parent.parent
DATA = TESTS / "data"


@dataclass(frozen=True)
class Row:
    """One prediction of SMPI: the program, the machine, and each rank's seconds."""

    platform: str
    model: str
    pattern: str  # or the collective
    algorithm: str  # empty for point-to-point patterns
    ranks: int
    nbytes: int
    seconds: tuple[float, ...]

    @property
    def label(self) -> str:
        """The row in one line."""
        what = f"{self.pattern} {self.algorithm}".strip()
        return f"{self.platform}.{self.model} {what} {self.ranks} ranks {self.nbytes} B"


def read_rows(name: str) -> list[Row]:
    """All rows of a file in tests/data."""
    rows = []
    with gzip.open(DATA / name, "rt") as lines:
        for line in lines:
            fields = json.loads(line)
            rows.append(
                Row(
                    fields["platform"],
                    fields["model"],
                    fields.get("pattern") or fields["collective"],
                    fields.get("algorithm", ""),
                    fields["ranks"],
                    fields["bytes"],
                    tuple(fields["seconds"]),
                )
            )
    return rows


def predicted(
    program: str, rows: Iterable[Row], options: Iterable[str], directory: Path
) -> dict[tuple[str, int], list[float]]:
    """Predictions for rows of one machine and number of ranks, in one simulated job.

    `options` are SimGrid's, ``KEY:VALUE``; `directory` takes the host file.
    """
    rows = list(rows)
    first = rows[0]
    machine = DATA / "platforms" / f"{first.platform}.{first.model}.xml"
    if first.platform == "graphene":
        hosts = [f"graphene-{rank * (144 // first.ranks)}" for rank in range(first.ranks)]
    else:
        hosts = [f"n-{rank}" for rank in range(first.ranks)]
    hostfile = directory / "hosts.txt"
    hostfile.write_text("".join(f"{host}\n" for host in hosts))

    sizes: dict[str, list[str]] = {}
    for row in rows:
        sizes.setdefault(row.pattern, []).append(str(row.nbytes))
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        pysmpi.run(
            TESTS / "programs" / program, first.ranks,
            args=[f"{pattern}:{','.join(counts)}" for pattern, counts in sizes.items()],
            platform=machine, hostfile=hostfile, compute="none",
            cfg=dict(option.split(":", 1) for option in ("smpi/wtime:0", *options)),
        )  # fmt: skip

    times = {}
    for line in output.getvalue().splitlines():
        word, pattern, count, *seconds = line.split()
        assert word == "TIME"
        times[pattern, int(count)] = [float(value) for value in seconds]
    return times


class Comparison:
    """The deviation of predictions from the rows, over all ranks.

    `close` is the relative difference that nearly all times keep to, `far` the one that all do.
    """

    def __init__(self, close: float = 0.01, far: float = 0.05) -> None:
        self.limits = close, far
        self.total = 0
        self.close = 0
        self.misses: list[str] = []

    def add(self, row: Row, seconds: list[float]) -> None:
        """Compare one row; times below a microsecond count as one."""
        assert len(seconds) == len(row.seconds), row.label
        close, far = self.limits
        apart = [
            abs(ours - theirs) / max(theirs, 1e-6)
            for ours, theirs in zip(seconds, row.seconds, strict=True)
        ]
        self.total += len(apart)
        self.close += sum(each <= close for each in apart)
        worst = max(apart)
        if worst > far:
            rank = apart.index(worst)
            self.misses.append(
                f"{row.label}: rank {rank} takes {seconds[rank]:.9g} s, "
                f"SMPI says {row.seconds[rank]:.9g} s"
            )

    def check(self, share: float = 0.99) -> None:
        """At least `share` of the times are close, and none is far."""
        close, far = self.limits
        listed = "\n".join(self.misses[:12])
        assert not self.misses, f"{len(self.misses)} rows are more than {far:g} apart:\n{listed}"
        assert self.close >= share * self.total, (
            f"{self.close} of {self.total} times are within {close:g}"
        )
