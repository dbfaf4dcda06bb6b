"""Measurements on a real machine: recordings of the script, or output of OSU's programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pysmpi.calibrate import osu
from pysmpi.errors import UsageError
from pysmpi.io.reading import read_bytes
from pysmpi.validate.script import FORMAT, VERSION

# Cases by the names of OSU's programs.
OSU_CASES = {
    "osu_latency": "latency", "osu_bw": "bandwidth", "osu_bibw": "bidirectional",
    "osu_mbw_mr": "message_rate", "osu_allreduce": "allreduce", "osu_alltoall": "alltoall",
}  # fmt: skip

Key = tuple[str, int]  # the name of the case, and bytes (0 for programs)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of the repeats of a case, and processor seconds of programs."""

    seconds: tuple[float, ...]
    processor: tuple[float, ...] = ()


@dataclass
class MeasuredJob:
    """The results of one layout: the host of each rank, and the cores that it may use.

    `skipped` has the programs that do not run with this number of ranks, and their reasons.
    """

    hosts: tuple[str, ...]
    cpus: tuple[tuple[int, ...], ...] = ()
    cores: tuple[int, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    times: dict[Key, Times] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    complete: bool = False

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.hosts)

    @property
    def nodes(self) -> int:
        """Number of hosts with ranks."""
        return len(set(self.hosts))

    @property
    def layout(self) -> str:
        """The layout as nodes x ranks on each, such as `2 x 16`."""
        counts = {self.hosts.count(host) for host in set(self.hosts)}
        each = str(counts.pop()) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
        return f"{self.nodes} x {each}"

    def oversubscribed(self) -> bool:
        """Whether a host has more ranks than cores."""
        return any(
            self.hosts.count(host) > cores for host, cores in zip(self.hosts, self.cores) if cores
        )


@dataclass
class MeasuredMachine:
    """The jobs of recordings, and remarks on what could not be read."""

    jobs: list[MeasuredJob]
    remarks: list[str]


def read(paths: Sequence[str], layout: tuple[int, int] = (2, 1)) -> MeasuredMachine:
    """Read recordings, and output of OSU's programs from `layout` (nodes, ranks on each).

    The latest result of a case in a layout counts. Raises UsageError for other files, other
    versions, and files without results.
    """
    found = MeasuredMachine([], [])
    printed: dict[str, dict[int, float]] = {}
    for path in paths:
        text = read_bytes(path).decode("utf-8", "replace")
        if text.lstrip().startswith("{"):
            read_lines(path, text, found)
        else:
            osu.read_tables(path, text, printed)
    found.jobs += _printed(printed, layout)
    merged: dict[tuple[str, ...], MeasuredJob] = {}
    for job in found.jobs:
        if job.oversubscribed():
            found.remarks.append(
                f"{job.layout}: more ranks than cores on a host, left out: such times depend on "
                "how the system shares the cores"
            )
            continue
        earlier = merged.setdefault(job.hosts, job)
        if earlier is not job:
            if earlier.settings and job.settings and earlier.settings != job.settings:
                raise UsageError(
                    f"{', '.join(paths)}: {job.layout} was measured with two settings of the "
                    "script, expected one; give one of the recordings"
                )
            earlier.times.update(job.times)
            earlier.skipped.update(job.skipped)
    found.jobs = sorted(merged.values(), key=lambda job: (job.nodes, job.ranks))
    if not any(job.times for job in found.jobs):
        why = f" ({'; '.join(found.remarks)})" if found.remarks else ""
        raise UsageError(
            f"{', '.join(paths)}: no results, expected a recording of the script that `pysmpi "
            f"validate script` writes, or the output of {', '.join(OSU_CASES)}{why}"
        )
    return found


def _printed(printed: Mapping[str, dict[int, float]], layout: tuple[int, int]) -> list[MeasuredJob]:
    """Jobs of what OSU's programs printed: latency and bandwidth of two ranks, others of all."""
    nodes, each = layout
    pair = MeasuredJob(("node-0", "node-1") if nodes > 1 else ("node-0",) * 2)
    every = MeasuredJob(tuple(f"node-{node}" for node in range(nodes) for _ in range(each)))
    for program, values in printed.items():
        case = OSU_CASES[program]
        job = pair if case in ("latency", "bandwidth", "bidirectional") else every
        for size, value in values.items():
            if case in ("bandwidth", "bidirectional"):
                value = size / value
            elif case == "message_rate":
                value = 1.0 / value
            job.times[case, size] = Times((value,))
    return [job for job in (pair, every) if job.times]


def read_lines(path: str, text: str, found: MeasuredMachine) -> None:
    """Read a recording of the script, one JSON object a line."""
    jobs: dict[str, MeasuredJob] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            fields = json.loads(line)
        except ValueError:
            # A job that was killed leaves half a line.
            found.remarks.append(f"{where}: the line is not complete, left out")
            continue
        if not isinstance(fields, dict) or not isinstance(fields.get("job"), str):
            raise UsageError(f"{where}: expected a line of a recording, got {line[:60]!r}")
        if "format" in fields:
            jobs[fields["job"]] = _job(where, fields)
            continue
        job = jobs.get(fields["job"])
        if job is None:
            found.remarks.append(f"{where}: a result without the first line of its job, left out")
            continue
        if "end" in fields:
            job.complete = True
        elif "skipped" in fields:
            job.skipped[str(fields.get("case"))] = str(fields["skipped"])
        else:
            key = str(fields.get("case")), _whole(where, fields, "bytes", 0)
            processor = _seconds(where, fields, "processor") if "processor" in fields else ()
            job.times[key] = Times(_seconds(where, fields, "seconds"), processor)
    for job in jobs.values():
        if not job.complete:
            found.remarks.append(
                f"{path}: the job of {job.layout} ended early, with {len(job.times)} results"
            )
    found.jobs += jobs.values()


def _job(where: str, fields: Mapping[str, object]) -> MeasuredJob:
    """A job from its first line."""
    if fields["format"] != FORMAT:
        raise UsageError(f"{where}: expected a recording of {FORMAT}, got {fields['format']!r}")
    if fields.get("version") != VERSION:
        raise UsageError(
            f"{where}: the recording has version {fields.get('version')}, expected {VERSION}: "
            "measure with the script of this version of pysmpi"
        )
    ranks, hosts = _whole(where, fields, "ranks", None), fields.get("hosts")
    if not isinstance(hosts, list) or len(hosts) != ranks or not all(map(_is_name, hosts)):
        raise UsageError(f"{where}: hosts: expected the names of {ranks} hosts, got {hosts!r:.60}")
    settings = fields.get("settings")
    wanted = ("largest", "elements", "repeats", "arguments", "seconds")
    if not isinstance(settings, dict) or not all(name in settings for name in wanted):
        raise UsageError(f"{where}: settings: expected {', '.join(wanted)}, got {settings!r:.60}")
    cpus, cores = fields.get("cpus"), fields.get("cores")
    named = ("mpi", "processor", "python", "numpy", "system", "date")
    return MeasuredJob(
        tuple(hosts),
        tuple(map(tuple, cpus)) if isinstance(cpus, list) and len(cpus) == ranks else (),
        tuple(one or 0 for one in cores) if isinstance(cores, list) and len(cores) == ranks else (),
        {name: str(fields[name]) for name in named if name in fields},
        settings,
    )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _whole(where: str, fields: Mapping[str, object], name: str, default: int | None) -> int:
    value = fields.get(name, default)
    if not isinstance(value, int) or value < (1 if default is None else 0):
        raise UsageError(f"{where}: {name}: expected a whole number, got {value!r:.60}")
    return value


def _seconds(where: str, fields: Mapping[str, object], name: str) -> tuple[float, ...]:
    values = fields.get(name)
    if (
        not isinstance(values, list)
        or not values
        or not all(isinstance(one, (int, float)) and 0 <= one < math.inf for one in values)
    ):
        raise UsageError(f"{where}: {name}: expected a list of seconds, got {values!r:.60}")
    return tuple(map(float, values))


def curves(paths: Sequence[str]) -> tuple[dict[int, float], dict[int, float]]:
    """One-way times (s) and bandwidths (bytes/s) by size, for a fit; between hosts if there are.

    The minimum of repeats counts. Raises UsageError as `osu.read`.
    """
    if not any(read_bytes(path).lstrip().startswith(b"{") for path in paths):
        return osu.read(paths)
    jobs = [job for job in read(paths).jobs if job.ranks == 2]
    for job in sorted(jobs, key=lambda one: -one.nodes):
        times = {size: min(one.seconds) for (case, size), one in job.times.items()
                 if case == "latency"}  # fmt: skip
        rates = {size: size / min(one.seconds) for (case, size), one in job.times.items()
                 if case == "bandwidth"}  # fmt: skip
        if len(times) > 1 and len(rates) > 1:
            return times, rates
    raise UsageError(
        f"{', '.join(paths)}: expected the latency and bandwidth of two ranks, found none"
    )
