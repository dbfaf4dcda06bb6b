"""The measured programs on the described machine: the same ranks, in the same layout."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pysmpi.api import run
from pysmpi.errors import UsageError
from pysmpi.memory.bandwidth import node_bandwidth
from pysmpi.network.choice import choose
from pysmpi.platform.config import canonical
from pysmpi.platform.loader import load, load_default
from pysmpi.platform.model import Platform
from pysmpi.reports.result import Result
from pysmpi.validate.recording import Key, MeasuredJob, MeasuredMachine, read_lines
from pysmpi.validate.script import LARGEST, script, settings

BLOCK = 0.01  # seconds of a triad that shares nothing: the bytes follow from the core's bandwidth
TRIAD = "triad", 1  # a prediction does not depend on the size of the arrays
MESSAGES = ("latency", "bandwidth", "bidirectional", "message_rate", "allreduce", "alltoall")


@dataclass
class PredictedJob:
    """Predicted seconds of each case, of the programs also without their compute.

    `times[TRIAD]` is seconds for each byte of a rank.
    """

    times: dict[Key, float] = field(default_factory=dict)
    messages: dict[str, float] = field(default_factory=dict)


def machine(platform: str | None, cfg: Mapping[str, str]) -> Platform:
    """The described machine."""
    return load_default(cfg) if platform is None else load(platform, cfg)


def rank_file(job: MeasuredJob, described: Platform) -> str:
    """The places of the ranks on the machine: its first hosts, in the order of the recording.

    A rank that was bound to a core has the same core, others have the next core of their host.
    """
    hosts = list(dict.fromkeys(job.hosts))
    if len(hosts) > len(described.hosts):
        raise UsageError(
            f"{job.layout}: the recording has {len(hosts)} hosts, expected at most the "
            f"{len(described.hosts)} of {described.source}; describe more hosts, or give --map-by"
        )
    lines, used = [], dict.fromkeys(hosts, 0)
    bound = _bound(job, described, hosts)
    for rank, name in enumerate(job.hosts):
        host = described.hosts[hosts.index(name)]
        core = job.cpus[rank][0] if bound else used[name]
        used[name] += 1
        if used[name] > host.cores:
            raise UsageError(
                f"{job.layout}: {job.hosts.count(name)} ranks ran on {name}, expected at most the "
                f"{host.cores} cores of {host.name} in {described.source}; set cores:"
            )
        lines.append(f"rank {rank}={host.name} slot={core}")
    return "\n".join(lines) + "\n"


def _bound(job: MeasuredJob, described: Platform, hosts: list[str]) -> bool:
    """Whether each rank was bound to a core of its own, which the machine has too."""
    places = {(name, cpus) for name, cpus in zip(job.hosts, job.cpus) if len(cpus) == 1}
    return len(places) == job.ranks and all(
        cpus[0] < described.hosts[hosts.index(name)].cores for name, cpus in places
    )


def predict(job: MeasuredJob, options: Mapping[str, Any], repeats: int) -> PredictedJob:
    """Run the cases of a job under `options` of `pysmpi.run`.

    The shortest of `repeats` counts of programs: other work of this computer only makes compute
    longer.
    """
    found = PredictedJob()
    cases = {case for case, _ in job.times}
    largest = max((size for case, size in job.times if case in MESSAGES), default=LARGEST)
    given = {**settings(), **job.settings, "largest": largest}
    given.setdefault("arguments", {})
    described = machine(options["platform"], options["cfg"])
    cfg = {"smpi/wtime": "0", **options["cfg"]}
    with tempfile.TemporaryDirectory() as directory:
        program, output = Path(directory) / "validate.py", Path(directory) / "times.jsonl"
        program.write_text(script(given), encoding="utf-8")
        places: dict[str, str] = {}
        if options.get("map_by") is None and options.get("hostfile") is None:
            path = Path(directory) / "ranks.txt"
            path.write_text(rank_file(job, described), encoding="utf-8")
            places = {"hostfile": str(path)}

        def times(part: str, count: int, **more: Any) -> dict[Key, float]:
            output.unlink(missing_ok=True)
            arguments = (str(output), "--only", part, "--simulated", count)
            done: Result = run(
                program, job.ranks, args=arguments, **{**options, "cfg": cfg, **places, **more}
            )
            assert done.exit_status == 0
            written = MeasuredMachine([], [])
            read_lines(str(output), output.read_text(encoding="utf-8"), written)
            (only,) = written.jobs
            return {key: min(one.seconds) for key, one in only.times.items()}

        if cases & set(MESSAGES):
            found.times.update(times(",".join(MESSAGES), 1, compute="none"))
        if "allreduce" in cases:
            # Its additions are compute.
            found.times.update(times("allreduce", repeats))
        if "triad" in cases:
            alone = _core_bandwidth(described, cfg)
            (seconds,) = times("memory", 1, compute=BLOCK, memory_bound=1.0).values()
            found.times[TRIAD] = seconds / (BLOCK * alone)
        for name in given["arguments"]:
            if name in cases:
                found.times.update(times(name, repeats))
                found.messages[name] = times(name, 1, compute="none")[name, 0]
    return found


def _core_bandwidth(described: Platform, cfg: Mapping[str, str]) -> float:
    """Bytes/s that one core of the first host reaches alone in a triad."""
    chosen = choose(described, {canonical(name, name): value for name, value in cfg.items()})[1]
    host = described.hosts[0]
    return min(chosen.number("memory/core-bandwidth"), node_bandwidth(host, chosen) / host.sockets)
