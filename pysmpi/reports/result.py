"""The result of a run, and its report: the same figures under the same names."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any

from pysmpi.errors import PysmpiError, UsageError
from pysmpi.python.records import record
from pysmpi.reports.deadlock import DeadlockReport
from pysmpi.reports.findings import Finding
from pysmpi.text import count, did_you_mean, seconds
from pysmpi.time.figures import (
    AnalysisFigures,
    BlockFigures,
    EnergyFigures,
    FoldingFigures,
    IntervalsFigures,
    PathPlaceFigures,
    RankFigures,
    ShadowFigures,
    SteadyFigures,
)
from pysmpi.time.timing import MEASURED
from pysmpi.version import __version__

if TYPE_CHECKING:
    from pysmpi.reports.tables import FigureTable

# Version of reports: increased when a key is removed or changes its meaning. `report.schema.json`
# describes them.
SCHEMA = 2

_SHOWN = 32  # ranks in a notebook
_TABLES = ("ranks", "calls", "critical_path", "what_if", "findings")

# Attributes of a `Result` that hold objects of Python; reports do not have them.
_OBJECTS = ("returns", "deadlock", "findings", "scene")


class ProgramError(PysmpiError, RuntimeError):
    """The program failed: an exception in some ranks, an abort, a deadlock.

    `result` is the `Result` of the run so far; the message is the report of the failure.
    """

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result
        self.exit_status = result.exit_status


@record(repr=False)
class Result:
    """The result of a run: its prediction, and how it ended.

    `seconds` is the predicted time: when the last rank ends (simulated seconds). `wall_seconds` is
    the wall time of the simulation. `returns` holds the return value of each rank's function,
    `ranks` the figures of each rank in seconds. `preset` names the factors of model hybrid, None
    under other models. `host_speed` is that of the computer that measured compute (flop/s), None if
    nothing was scaled by it. `findings` are those of the checkers. `compute_factor` is the factor
    that scaled measured compute, None if none was measured or cores of several speeds have several
    factors. `options` are those that differ from their defaults. If a strategy decided the order of
    events, `schedule` repeats it, `schedule_note` is the strategy's remark, and `repeat` the
    command that repeats a failed run. `twin` says how far the calls are those of the full run of
    `--twin`. `energy` has the joules of hosts, links and ranks if the platform gives their power.
    `intervals` has those of the prediction (with `explain`) and of sampling (with `sample`).
    `unreceived` is a remark on messages that nobody received in
    a run that ended well. `blocks` has the numbers of blocks of compute if each takes a constant
    time. `remarks` tell what does not fit of a recording of compute, and whether ranks share
    cores. `lost` names the ranks that failed while the others went on. `no_effect` names the
    options of SimGrid that were set and do nothing here. `scene` has the messages of a run with
    `explain`, for `pysmpi.animate`.
    """

    nprocs: int
    seconds: float
    wall_seconds: float
    hosts: int
    platform: str
    model: str
    preset: str | None
    selector: str
    seed: int
    compute: str
    host_speed: float | None
    compute_factor: float | None
    messages: int
    bytes: int
    events: int
    returns: list[Any]
    ranks: list[RankFigures]
    exit_status: int = 0
    error: str | None = None
    deadlock: DeadlockReport | None = None
    findings: list[Finding] = field(default_factory=list)
    shadow: ShadowFigures | None = None
    folding: FoldingFigures | None = None
    steady: SteadyFigures | None = None
    blocks: BlockFigures | None = None
    remarks: list[str] = field(default_factory=list)
    data: str = "all"
    limit: str | None = None
    unreceived: str | None = None
    lost: list[str] = field(default_factory=list)
    no_effect: list[str] = field(default_factory=list)
    analysis: AnalysisFigures | None = None
    options: dict[str, object] = field(default_factory=dict)
    command: str | None = None
    schedule: str | None = None
    schedule_note: str | None = None
    twin: str | None = None
    energy: EnergyFigures | None = None
    intervals: IntervalsFigures | None = None
    repeat: str | None = None
    scene: object = field(default=None, compare=False)

    def __str__(self) -> str:
        """One line: the end of the run, the prediction, the return values."""
        returns = ", ".join(map(repr, self.returns[:8])) + (", ..." if self.nprocs > 8 else "")
        return f"{self._ended()}; they returned [{returns}]"

    def __repr__(self) -> str:
        return f"<Result: {self._ended()}>"

    def _ended(self) -> str:
        ended = "ended" if self.exit_status == 0 else f"failed with exit status {self.exit_status}"
        return (
            f"{count(self.nprocs, 'rank')} on {count(self.hosts, 'host')} "
            f"of {self.platform} {ended} "
            f"after {self.seconds:.9g} simulated seconds"
        )

    def _repr_html_(self) -> str:
        """The result as a notebook shows it: the prediction, its limit, its ranks."""
        from html import escape

        said = [self._ended()]
        if self.analysis is not None:
            said += self.analysis["text"]
        elif self.limit is not None:
            said.append(f"limit: {self.limit}")
        rows = []
        for rank in self.ranks[:_SHOWN]:
            whole = max(rank["end_seconds"] - rank["begin_seconds"], 1e-300)
            bars = "".join(
                f'<span style="display:inline-block;height:10px;background:{colour};'
                f'width:{200.0 * max(0.0, lasted) / whole:.1f}px" title="{name} '
                f'{seconds(lasted)}"></span>'
                for name, lasted, colour in (
                    ("compute", rank["compute_seconds"], "#5b8def"),
                    ("waiting", rank["wait_seconds"], "#e8a79b"),
                )
            )
            rows.append(
                f"<tr><td>{rank['rank']}</td><td>{escape(rank['host'])}</td>"
                f"<td>{seconds(rank['compute_seconds'])}</td>"
                f"<td>{seconds(rank['wait_seconds'])}</td>"
                f"<td>{seconds(rank['end_seconds'])}</td><td>{bars}</td></tr>"
            )
        more = len(self.ranks) - _SHOWN
        return (
            "".join(f"<div>{escape(line)}</div>" for line in said)
            + "<table><thead><tr><th>rank</th><th>host</th><th>compute</th><th>waiting</th>"
            + "<th>end</th><th></th></tr></thead><tbody>"
            + "".join(rows)
            + "</tbody></table>"
            + (f"<div>and {count(more, 'more rank')}</div>" if more > 0 else "")
        )

    def to_frame(self, what: str = "ranks") -> FigureTable:
        """A table of the result, for pandas, polars and other libraries of data frames.

        `what` is "ranks", the figures of each rank; "calls", the calls of each line of the program;
        "critical_path", its times by place and cause; "what_if", the predicted times of changed
        runs; or "findings", those of the checkers. "calls", "critical_path" and "what_if" need a
        run with `explain=True`. Times are simulated seconds. Raises UsageError for another table,
        and for one that the run does not have.
        """
        from pysmpi.reports.tables import FigureTable, of_records

        if what not in _TABLES:
            hint = did_you_mean(what, _TABLES)
            raise UsageError(f"to_frame: expected one of {', '.join(_TABLES)}, got {what!r}{hint}")
        if what == "ranks":
            return of_records(self.ranks, list(RankFigures.__annotations__))
        if what == "findings":
            names = ["code", "title", "what", "rule", "cure"]
            return of_records([finding.plain() for finding in self.findings], names)
        if self.analysis is None:
            raise UsageError(f"to_frame: {what}: expected a run with explain=True, got one without")
        if what == "what_if":
            changes = self.analysis["what_if"]
            return FigureTable({"what": list(changes), "seconds": list(changes.values())})
        if what == "critical_path":
            places = self.analysis["critical_path"]["places"]
            return of_records(places, list(PathPlaceFigures.__annotations__))
        names = ["site", "calls", "seconds", "wait_seconds", "sent_bytes"]
        return of_records(self.analysis["sites"], names)

    def report(self) -> dict[str, Any]:
        """The figures as plain data, as `--report FILE.json` writes them.

        The keys are the attributes of the result, and `schema` and `pysmpi`, the versions of the
        report and of pysmpi. If compute is not measured, two runs give the same report: figures
        that differ between runs, such as `wall_seconds`, are None.
        """
        figures: dict[str, Any] = {"schema": SCHEMA, "pysmpi": __version__}
        for one in fields(self):
            if one.name not in _OBJECTS:
                figures[one.name] = deepcopy(getattr(self, one.name))
        figures["findings"] = [finding.plain() for finding in self.findings]
        if self.compute not in MEASURED:
            figures["wall_seconds"] = None
            for part in ("sampled", "once", "not_sampled"):
                for place in (figures["shadow"] or {}).get(part, ()):
                    for name in ("saved_seconds", "host_seconds"):
                        if name in place:
                            place[name] = None
            if figures["folding"] is not None:
                figures["folding"]["resident_bytes"] = figures["folding"]["job_bytes"] = None
        return figures


def plain(options: Mapping[str, Any]) -> dict[str, object]:
    """Options of a run as data that JSON can hold; a platform is its name."""
    result: dict[str, object] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            value = dict(value)
        elif isinstance(value, (set, frozenset)):
            value = sorted(value)
        elif isinstance(value, (list, tuple)):
            value = list(value)
        elif isinstance(value, os.PathLike):
            value = os.fspath(value)
        elif not isinstance(value, (str, int, float)) and value is not None:
            value = value.name
        result[name] = value
    return result


def write_report(figures: Mapping[str, object], path: str) -> None:
    """Write a report as JSON; `-` is the standard output."""
    import json

    text = json.dumps(figures, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
