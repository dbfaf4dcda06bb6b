"""Predictions beside measurements: errors, where they come from, and what to calibrate.

An error is predicted / measured - 1, of the figure as it is shown: seconds, bytes/s or messages/s.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from pysmpi.validate.prediction import MESSAGES, TRIAD, PredictedJob
from pysmpi.validate.recording import MeasuredJob, Times

SMALL = 8192  # bytes of the largest small message
WORTH = 0.1  # mean error from which on a calibration is advised
NOISY = 0.15  # relative difference of the median and the minimum of repeats
STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {"median": median, "minimum": min}
CLOCKS = ("wall", "processor")

# Kinds of rows, in the order of the page.
COMPUTE, MEMORY = "compute", "memory"
INSIDE_SMALL, INSIDE_LARGE = "small messages inside a node", "large messages inside a node"
BETWEEN_SMALL, BETWEEN_LARGE = "small messages between nodes", "large messages between nodes"
PROGRAMS = "programs on several ranks"
KINDS = (COMPUTE, MEMORY, INSIDE_SMALL, INSIDE_LARGE, BETWEEN_SMALL, BETWEEN_LARGE, PROGRAMS)


@dataclass(frozen=True, slots=True)
class ValidatedFigure:
    """A figure of a case in a layout: measured, predicted, and its unit.

    Programs have the parts of their error that come from compute and from the rest, relative to the
    measured time, and the part of the predicted time that is messages; None if not known.
    """

    case: str
    nbytes: int
    nodes: int
    ranks: int
    layout: str
    kind: str
    unit: str
    measured: float
    predicted: float
    compute: float | None = None
    rest: float | None = None
    messages: float | None = None

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and median absolute error of some rows, and the error of the worst."""

    kind: str
    count: int
    mean: float
    median: float
    worst: float


def summary(kind: str, rows: Iterable[ValidatedFigure]) -> Summary | None:
    """The summary of rows, None without any."""
    errors = [row.error for row in rows]
    if not errors:
        return None
    absolute = [abs(error) for error in errors]
    return Summary(kind, len(errors), fmean(absolute), median(absolute), max(errors, key=abs))


def figure(case: str, nbytes: int, seconds: float, ranks: int) -> tuple[float, str]:
    """The figure that a case is known by, and its unit, from its seconds.

    `seconds` is that of a message, of a call, of a turn of a triad, or of a program.
    """
    if case in ("latency", "allreduce", "alltoall"):
        return seconds * 1e6, "us"
    if case in ("bandwidth", "bidirectional"):
        return nbytes / seconds / 1e9, "GB/s"
    if case == "message_rate":
        return 1e-6 / seconds, "M messages/s"
    if case == "triad":
        return ranks * nbytes / seconds / 1e9, "GB/s"
    return seconds, "s"


class Validation:
    """The rows of all jobs, and what follows from them."""

    def __init__(
        self, jobs: Sequence[MeasuredJob], predicted: Sequence[PredictedJob], clock: str = "wall",
        statistic: str = "median",
    ) -> None:  # fmt: skip
        """`clock` is wall or processor, for programs; `statistic` chooses among repeats."""
        self.jobs, self.clock, self.statistic = jobs, clock, statistic
        self.rows: list[ValidatedFigure] = []
        alone = {
            case: one.times[case, 0] / self._measured(times)
            for job, one in zip(jobs, predicted)
            if job.ranks == 1
            for (case, _), times in job.times.items()
            if one.times.get((case, 0), 0.0) > 0.0 and self._measured(times) > 0.0
        }
        for job, one in zip(jobs, predicted):
            for (case, nbytes), times in job.times.items():
                expected = one.times.get((case, nbytes))
                if case == "triad":
                    expected = nbytes * one.times[TRIAD]
                if expected is None or expected <= 0.0 or self._measured(times) <= 0.0:
                    continue
                self.rows.append(
                    self._row(job, case, nbytes, times, expected, one, alone.get(case))
                )
        self.rows.sort(key=lambda row: KINDS.index(row.kind))

    def _measured(self, times: Times) -> float:
        values = times.processor if self.clock == "processor" and times.processor else times.seconds
        return STATISTICS[self.statistic](values)

    def _row(
        self, job: MeasuredJob, case: str, nbytes: int, times: Times, expected: float,
        predicted: PredictedJob, alone: float | None,
    ) -> ValidatedFigure:  # fmt: skip
        seconds = self._measured(times)
        measured, unit = figure(case, nbytes, seconds, job.ranks)
        figured, _ = figure(case, nbytes, expected, job.ranks)
        compute = rest = share = None
        if case in predicted.messages:
            share = min(1.0, predicted.messages[case] / expected)
            if alone is not None and job.ranks > 1:
                compute = compute_part(expected, predicted.messages[case], alone, seconds)
                rest = expected / seconds - 1.0 - compute
        return ValidatedFigure(
            case, nbytes, job.nodes, job.ranks, job.layout, kind(job, case, nbytes), unit, measured,
            figured, compute, rest, share,
        )  # fmt: skip

    def remarks(self) -> list[str]:
        """Remarks on the machine that follow from the repeats of the measurements."""
        every = [times.seconds for job in self.jobs for times in job.times.values()]
        spreads = [median(one) / min(one) - 1.0 for one in every if len(one) > 1 and min(one) > 0]
        if not spreads or median(spreads) < NOISY:
            return []
        return [
            f"the repeats of a figure differ by {median(spreads):.0%} (median): other programs ran "
            "on the machine, or ranks shared cores; measure again, or try --of minimum"
        ]

    def summaries(self) -> list[Summary]:
        """The summary of each kind that has rows."""
        found = [summary(name, self.of(name)) for name in KINDS]
        return [one for one in found if one is not None]

    def of(self, name: str) -> list[ValidatedFigure]:
        """The rows of a kind."""
        return [row for row in self.rows if row.kind == name]

    def advice(self, files: Sequence[str]) -> list[str]:
        """Advice on calibration, the largest error first: a command, or keys for the file."""
        known = {
            COMPUTE: self._compute_advice, MEMORY: self._memory_advice,
            INSIDE_SMALL: self._inside_advice, INSIDE_LARGE: self._inside_advice,
        }  # fmt: skip
        found: list[str] = []
        ordered = sorted(self.summaries(), key=lambda one: -one.mean)
        for one in ordered:
            if one.mean < WORTH or one.kind == PROGRAMS:
                continue
            if one.kind in known:
                line = known[one.kind]()
            else:
                line = (
                    f"Messages between nodes: pysmpi platform fit {shlex.join(files)} "
                    "-o machine.yaml fits them to this recording; mpiexec -n 2 pysmpi calibrate "
                    "network -o network.yaml, with a rank on each of two nodes, measures more."
                )
            if line not in found:
                found.append(line)
        return found

    def _compute_advice(self) -> str:
        factor = median(row.predicted / row.measured for row in self.of(COMPUTE))
        if abs(factor - 1.0) < WORTH / 2:
            return (
                "Compute: some programs on one rank are predicted too long, others too short, so "
                "no speed of the core helps. Other work of this computer may be the cause: try "
                "more --repeats. Otherwise the two processors differ from program to program."
            )
        return (
            f"Compute: programs on one rank are predicted {factor:.3g} times as long as measured. "
            "Run pysmpi calibrate host on a node of the machine, and put its flop/s in speed: of "
            f"the file; or multiply the speed that is there now by {factor:.3g}."
        )

    def _memory_advice(self) -> str:
        rows = [row for row in self.of(MEMORY) if row.nodes == 1]
        rows = rows or self.of(MEMORY)
        rates = {row.ranks // row.nodes: row.measured / row.nodes for row in rows}
        return (
            "Memory: put config: {memory/core-bandwidth: "
            f"{rates[min(rates)] / min(rates):.3g}GBps, memory/bandwidth: "
            f"{max(rates.values()):.3g}GBps}} in the file (from this recording); "
            "pysmpi calibrate stream on a node measures both."
        )

    def _inside_advice(self) -> str:
        return (
            "Messages inside a node: mpiexec -n 2 pysmpi calibrate network -o node.yaml on one "
            "node measures them between two cores; pysmpi calibrate memory -o node.yaml describes "
            "the caches."
        )


def compute_part(predicted: float, messages: float, alone: float, measured: float) -> float:
    """The part of a program's error that comes from compute, relative to the measured time.

    `predicted` has `messages` without compute (s). `alone` is predicted / measured on one rank: all
    compute is as much too long.
    """
    return (predicted - messages) * (1.0 - 1.0 / alone) / measured


def percent(value: float, sign: str = "") -> str:
    """A relative error as people read it: `+2.4%`, `+8,712%`."""
    return f"{value:{sign},.0%}" if abs(value) >= 9.995 else f"{value:{sign}.1%}"


def kind(job: MeasuredJob, case: str, nbytes: int) -> str:
    """The kind of a case in a layout."""
    if case == "triad":
        return MEMORY
    if case in MESSAGES:
        small = nbytes <= SMALL
        if job.nodes == 1:
            return INSIDE_SMALL if small else INSIDE_LARGE
        return BETWEEN_SMALL if small else BETWEEN_LARGE
    return COMPUTE if job.ranks == 1 else PROGRAMS


def origin(row: ValidatedFigure) -> str:
    """The causes of the error of a program on several ranks, in words."""
    if row.compute is None or row.rest is None:
        return "not known without a run on one rank"
    if abs(row.compute) >= abs(row.rest):
        return "compute"
    return "messages" if row.ranks == row.nodes else "messages or memory"


def report(
    comparison: Validation, files: Sequence[str], remarks: Sequence[str] = ()
) -> dict[str, object]:
    """The comparison as JSON has it."""
    return {
        "clock": comparison.clock,
        "statistic": comparison.statistic,
        "summaries": [
            {"kind": one.kind, "count": one.count, "mean": one.mean, "median": one.median,
             "worst": one.worst} for one in comparison.summaries()
        ],
        "rows": [_record(row) for row in comparison.rows],
        "advice": comparison.advice(files),
        "remarks": [*comparison.remarks(), *remarks],
    }  # fmt: skip


def _record(row: ValidatedFigure) -> Mapping[str, object]:
    names = [name for name in ValidatedFigure.__slots__ if name != "nbytes"]
    return {"bytes": row.nbytes, "error": row.error, **{name: getattr(row, name) for name in names}}


def text(comparison: Validation, files: Sequence[str], remarks: Sequence[str]) -> str:
    """The comparison as a table for a terminal."""
    lines = ["errors (predicted / measured - 1)   figures     mean   median    worst"]
    for one in comparison.summaries():
        values = map(percent, (one.mean, one.median))
        shown = "".join(f" {value:>8}" for value in (*values, percent(one.worst, "+")))
        lines.append(f"{one.kind:35} {one.count:7}{shown}")
    lines += ["", "program      nodes x ranks   measured  predicted    error  compute     rest"]
    for row in comparison.rows:
        if row.kind in (COMPUTE, PROGRAMS):
            parts = "".join(
                " " * 9 if part is None else f" {percent(part, '+'):>8}"
                for part in (row.compute, row.rest)
            )
            lines.append(
                f"{row.case:12} {row.layout:>13} {row.measured:8.4g} s {row.predicted:8.4g} s "
                f"{percent(row.error, '+'):>8}{parts}"
            )
    lines += ["", *comparison.advice(files), *comparison.remarks(), *remarks]
    return "\n".join(lines).rstrip() + "\n"
