"""The inside of a computer: cores, caches, NUMA nodes, distances, memory, measured costs.

A `NodeDescription` is plain data with queries for memory models: the distance of two cores, the
caches that they share, the speed of an access to a line in a given state. Cores are numbered from
0; cores that share caches have neighbouring numbers, as in hwloc's logical numbering.

An access is named by three letters, after Putigny, Ruelle and Goglin (PDSEC 2014):

- L or S: load or store;
- H or M: hit in a cache of the core, or miss;
- M, O, E, S, F or I: the state of the line, in the core's own cache for a hit and in another
  core's for a miss. `LMI` and `SMI` are misses that memory serves.

`SNT` is a non-temporal store, which goes to memory past the caches. `FHM` and `FHS` are flushes of
lines that are Modified or Shared in the core's own cache.

Units are bytes, bytes/s and seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import field
from math import log2

from pysmpi.errors import UsageError
from pysmpi.python.records import record

ACCESSES = tuple(
    f"{operation}{where}{state}"
    for operation in "LS"
    for where, states in (("H", "MOESF"), ("M", "MOESFI"))
    for state in states
) + ("SNT", "FHM", "FHS")  # fmt: skip
# The measured accesses without which no transfer can be priced.
NEEDED = ("LHM", "SHM", "SHS", "LMM", "LMI", "SMI")
# Replacements for an access that is not given, in this order.
LIKE = {
    "LHE": "LHM", "LHO": "LHM", "LHS": "LHM", "LHF": "LHS",
    "SHE": "SHM", "SHO": "SHS", "SHF": "SHS", "SHS": "SHM",
    "LME": "LMM", "LMO": "LMM", "LMS": "LMM", "LMF": "LMS",
    "SMM": "LMM", "SME": "SMM", "SMO": "SMM", "SMS": "SMM", "SMF": "SMS", "SMI": "LMI",
    "SNT": "SMI", "FHM": "SMI", "FHS": "FHM",
}  # fmt: skip


@record(frozen=True)
class LevelCaches:
    """The caches of one level: `size` bytes each, `cores` neighbouring cores share one.

    `bandwidth` (bytes/s) is the limit of all its cores together, None for no limit.
    """

    level: int
    size: int
    cores: int
    bandwidth: float | None = None


@record(frozen=True)
class Distance:
    """Cores of a group of `cores` neighbours are within this distance of each other.

    `bandwidth` (bytes/s) is that of the bus of each group, used by accesses over this distance.
    """

    name: str
    cores: int
    bandwidth: float | None = None


@record(frozen=True)
class Curve:
    """A quantity measured at some sizes (bytes, increasing).

    Between them it is linear in the logarithm of the size, beyond them constant.
    """

    sizes: tuple[int, ...]
    values: tuple[float, ...]

    def at(self, size: float) -> float:
        """The value at a size (bytes)."""
        sizes, values = self.sizes, self.values
        if size <= sizes[0]:
            return values[0]
        if size >= sizes[-1]:
            return values[-1]
        i = bisect_left(sizes, size)
        part = log2(size / sizes[i - 1]) / log2(sizes[i] / sizes[i - 1])
        return values[i - 1] + part * (values[i] - values[i - 1])


@record(frozen=True)
class Stream:
    """Seconds to transfer N lines: `per_line` * N + `start` - `amortized` / N.

    Ramos and Hoefler (HPDC 2013), equation 2.
    """

    per_line: float
    start: float
    amortized: float


@record(frozen=True)
class NodeDescription:
    """The inside of a computer.

    `curves` holds throughputs (bytes/s) and `latencies` seconds of one line, both by access and
    distance (the index of a member of `distances`; -1 if the distance does not matter). `overlap`
    is the part of the shorter of a copy's load and store that runs in parallel with the longer, by
    size (1: all of it). `contention` is (base, slope) in seconds: n cores that read one line at the
    same time take base + slope * n. `streams` holds costs of many lines by the state of the
    buffers. `packing` is the time in seconds for packing one contiguous block of a strided message,
    within the node and towards the network.
    """

    name: str
    cores: int
    sockets: int
    numa: int
    caches: tuple[LevelCaches, ...]
    distances: tuple[Distance, ...]
    protocol: str = "MESI"
    line: int = 64
    memory_bandwidth: float | None = None
    curves: dict[tuple[str, int], Curve] = field(default_factory=dict)
    latencies: dict[tuple[str, int], float] = field(default_factory=dict)
    overlap: Curve = Curve((1,), (1.0,))
    contention: tuple[float, float] | None = None
    streams: dict[str, Stream] = field(default_factory=dict)
    packing: tuple[float, float] = (0.0, 0.0)
    description: str = ""
    sources: tuple[str, ...] = ()
    where: str = ""

    def distance(self, one: int, other: int) -> int:
        """The number of the distance between two cores; -1 for a core and itself."""
        if one == other:
            return -1
        for number, distance in enumerate(self.distances):
            if one // distance.cores == other // distance.cores:
                return number
        raise ValueError(f"{self.name}: expected cores 0 to {self.cores - 1}, got {one}, {other}")

    def numa_of(self, core: int) -> int:
        """The NUMA node of a core."""
        return core * self.numa // self.cores

    def throughput(self, access: str, distance: int, size: float) -> float:
        """Bytes/s of an access to a buffer of `size` bytes. Raises UsageError if not described."""
        return self.curve(access, distance).at(size)

    def curve(self, access: str, distance: int) -> Curve:
        """The throughput of an access at a distance, or of the most similar access."""
        found = _nearest(self.curves, access, distance, len(self.distances))
        if found is None:
            raise UsageError(f"{self.where}: expected a curve for {access}, got none")
        return self.curves[found]

    def latency(self, access: str, distance: int = -1) -> float:
        """Seconds of an access to one line. Raises UsageError if not described."""
        found = _nearest(self.latencies, access, distance, len(self.distances))
        if found is None:
            raise UsageError(f"{self.where}: expected a latency for {access}, got none")
        return self.latencies[found]


def _nearest(
    known: dict[tuple[str, int], object]
    | dict[tuple[str, int], Curve]
    | dict[tuple[str, int], float],
    access: str,
    distance: int,
    distances: int,
) -> tuple[str, int] | None:
    """The value of an access: at this distance, else nearer, else farther, else a similar one."""
    name: str | None = access
    while name is not None:
        for d in (*range(distance, -2, -1), *range(distance + 1, distances)):
            if (name, d) in known:
                return name, d
        name = LIKE.get(name)
    return None
