"""The topology of this computer, from Linux's /sys."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pysmpi.errors import UsageError

CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """Data caches of one level: `size` bytes each, shared by `cores` cores."""

    level: int
    size: int
    cores: int


@dataclass(frozen=True, slots=True)
class Near:
    """A distance: `cores` cores are at most this far from each other.

    `cpu` is the number that Linux gives a core at this distance from the first one.
    """

    name: str
    cores: int
    cpu: int


@dataclass(frozen=True, slots=True)
class Topology:
    """A computer: one CPU number a core, cores that share most are next to each other."""

    cpus: tuple[int, ...]
    sockets: int
    numa: int
    caches: tuple[CacheLevel, ...]
    distances: tuple[Near, ...]
    line: int


def find_topology(root: Path = CPUS, allowed: set[int] | None = None) -> Topology:
    """The topology of the cores that this process may use; UsageError if it is unknown."""
    if allowed is None:
        if not hasattr(os, "sched_getaffinity"):
            raise UsageError("calibrate memory: expected Linux, which can pin processes to cores")
        allowed = os.sched_getaffinity(0)
    places: dict[tuple[int, int, int], int] = {}
    for cpu in sorted(allowed):
        package, core = _number(root, cpu, "physical_package_id"), _number(root, cpu, "core_id")
        # The first hardware thread represents its core.
        places.setdefault((package, _numa_of(root, cpu), core), cpu)
    ordered = [cpu for _, cpu in sorted(places.items())]
    caches, line = _caches(root, ordered)
    groups = [(f"L{c.level}", _sharers(root, ordered, c.level)) for c in caches if c.cores > 1]
    package_of = {cpu: place[0] for place, cpu in places.items()}
    numa_of = {cpu: place[1] for place, cpu in places.items()}
    for name, part in (("numa", numa_of), ("socket", package_of)):
        first = part[ordered[0]]
        groups.append((name, [cpu for cpu in ordered if part[cpu] == first]))
    groups.append(("node", ordered))
    return Topology(
        tuple(ordered), len(set(package_of.values())), len(set(numa_of.values())), caches,
        _distances(groups, len(ordered)), line,
    )  # fmt: skip


def _distances(groups: list[tuple[str, list[int]]], cores: int) -> tuple[Near, ...]:
    """One distance for each group that is larger than the one before and divides the cores."""
    result: list[Near] = []
    inside = 1
    for name, members in groups:
        if len(members) > inside and len(members) % inside == 0 and cores % len(members) == 0:
            result.append(Near(name, len(members), members[inside]))
            inside = len(members)
    return tuple(result)


def _caches(root: Path, cpus: list[int]) -> tuple[tuple[CacheLevel, ...], int]:
    levels = []
    line = 64
    for index in sorted((root / f"cpu{cpus[0]}" / "cache").glob("index*")):
        if (index / "type").read_text().strip() == "Instruction":
            continue
        level = int((index / "level").read_text())
        size = (index / "size").read_text().strip()
        units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
        nbytes = int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)
        line = int((index / "coherency_line_size").read_text())
        levels.append(CacheLevel(level, nbytes, len(_sharers(root, cpus, level))))
    if not levels:
        raise UsageError(f"calibrate memory: expected the caches of Linux in {root}, got none")
    return tuple(sorted(levels, key=lambda cache: cache.level)), line


def _sharers(root: Path, cpus: list[int], level: int) -> list[int]:
    """The cores that share the data cache of a level with the first one."""
    for index in (root / f"cpu{cpus[0]}" / "cache").glob("index*"):
        if (
            int((index / "level").read_text()) == level
            and (index / "type").read_text().strip() != "Instruction"
        ):
            shared = _listed((index / "shared_cpu_list").read_text())
            return [cpu for cpu in cpus if cpu in shared]
    return [cpus[0]]


def _listed(text: str) -> set[int]:
    """The numbers in a list such as 0-3,8."""
    result: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            result.update(range(int(first), int(last or first) + 1))
    return result


def _number(root: Path, cpu: int, name: str) -> int:
    try:
        return int((root / f"cpu{cpu}" / "topology" / name).read_text())
    except (OSError, ValueError):
        raise UsageError(
            f"calibrate memory: expected the {name} of CPU {cpu} of Linux in {root}, got none"
        ) from None


def _numa_of(root: Path, cpu: int) -> int:
    for node in (root / f"cpu{cpu}").glob("node[0-9]*"):
        return int(node.name[4:])
    return 0
