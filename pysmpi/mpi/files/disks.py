"""The simulated disk: the times of reading and writing.

By default all hosts of the machine share one parallel file system. With `disk/scope:host` each host
has a disk, which its ranks share: the host's first disk in the platform, if there is one. An access
waits for the latency, then its bytes share the bandwidth with all active accesses. As on SimGrid's
disks, reads and writes each have a bandwidth, and together no more than the larger of the two.

Storage is separate from the network: its traffic does not compete with messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pysmpi.errors import UsageError
from pysmpi.kernel.activities import Constraint
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.work import Work
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.files.views import Pieces
from pysmpi.platform.config import Settings
from pysmpi.platform.units import parse_bandwidth, parse_time
from pysmpi.python.records import record

MACHINE, HOST = "machine", "host"

SIEVING = ("automatic", "enable", "disable")


class DiskStep(NamedTuple):
    """A part of an access: `latency` (s), then `nbytes` that are read or written."""

    write: bool
    latency: float
    nbytes: int


class Disk:
    """A disk, or a whole file system: bandwidths in bytes/s, `latency` of an access in s."""

    def __init__(self, read: float, write: float, latency: float, name: str = "disk") -> None:
        self.latency = latency
        self.bandwidths = {False: read, True: write}
        both = Constraint(max(read, write), name)
        self.constraints = {
            False: [both, Constraint(read, f"{name} reads")],
            True: [both, Constraint(write, f"{name} writes")],
        }

    def work(self, engine: Engine, step: DiskStep, ended: Callable[[], object]) -> Work:
        """The simulated work of a step."""
        write = step.write
        return Work(
            engine, step.latency, float(step.nbytes), self.bandwidths[write],
            self.constraints[write], [1.0, 1.0], ended,
        )  # fmt: skip

    def seconds(self, steps: list[DiskStep]) -> float:
        """The time of steps if the disk has no other accesses."""
        return sum(step.latency + step.nbytes / self.bandwidths[step.write] for step in steps)

    def steps(self, pieces: Pieces, write: bool, sieving: str = "automatic") -> list[DiskStep]:
        """The method of an access to pieces of a file.

        Scattered pieces are accessed one by one, each with its latency, or by data sieving (Thakur
        et al., "Data sieving and collective I/O in ROMIO"): all bytes from the first to the last
        are read and, for a write, written back. `sieving` is the hint romio_ds_read or
        romio_ds_write; automatic uses the faster method.
        """
        count = pieces.count
        each = [DiskStep(write, count * self.latency, pieces.nbytes)]
        if count <= 1 or sieving == "disable":
            return each
        span = pieces.high - pieces.low
        sieved = [DiskStep(False, self.latency, span)]
        if write:
            sieved.append(DiskStep(True, self.latency, span))
        if sieving == "enable":
            return sieved
        return min(each, sieved, key=self.seconds)


@record
class DiskOptions:
    """The scope of the disks, and their bandwidths and latency: bytes/s and s."""

    scope: str = MACHINE
    read_bandwidth: float = 1e9
    write_bandwidth: float = 1e9
    latency: float = 1e-4


class Disks:
    """The disks of a universe, by host, or by None for the machine's."""

    __slots__ = ("disks", "options")

    def __init__(self, options: DiskOptions | None = None) -> None:
        self.options = DiskOptions() if options is None else options
        self.disks: dict[object, Disk] = {}

    def of(self, rank: Rank) -> Disk:
        """The disk that a rank uses."""
        options = self.options
        host = rank.host if options.scope == HOST else None
        disk = self.disks.get(host)
        if disk is None:
            read, write = options.read_bandwidth, options.write_bandwidth
            if host is not None and host.disks:
                read, write = host.disks[0].read, host.disks[0].write
            disk = self.disks[host] = Disk(
                read,
                write,
                options.latency,
                "file system" if host is None else f"disk of {host.name}",
            )
        return disk


DISKS = StateSlot(Universe, Disks)


def disk_options(settings: Settings) -> DiskOptions:
    """The options of a run that concern disks, in bytes/s and s. Raises UsageError."""
    scope = settings.text("disk/scope")
    if scope not in (MACHINE, HOST):
        raise UsageError(f"disk/scope: expected {MACHINE} or {HOST}, got {scope!r}")
    result = DiskOptions(scope)
    for name, option, parse in (
        ("disk/read-bandwidth", "read_bandwidth", parse_bandwidth),
        ("disk/write-bandwidth", "write_bandwidth", parse_bandwidth),
        ("disk/latency", "latency", parse_time),
    ):
        try:
            value = parse(settings.text(name), bare=True)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None
        if value < 0.0 or value == 0.0 and option != "latency":
            raise UsageError(f"{name}: expected a positive number, got {settings.text(name)!r}")
        setattr(result, option, value)
    return result


def disk_of(rank: Rank) -> Disk:
    """The disk that a rank uses."""
    return DISKS.of(rank.universe).of(rank)
