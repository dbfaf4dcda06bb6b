"""The placement of ranks: the host and core of rank 0, 1, 2, ...

Without a host file, ranks fill a host's cores before the next host's (``--map-by core``), as with
mpiexec and Slurm. ``--map-by node`` places ranks on the hosts round robin, as smpirun does; it is
the default on SimGrid's own files. ``--map-by socket`` places them round robin on all sockets of
the machine. ``--map-by ppr:N:node``, or ``--ppn N``, places N ranks on each host. If there are more
ranks than cores, ranks share cores; N ranks a host are never exceeded.

A host file names one host in each line, with its number of ranks::

    node-1              # one rank
    node-2:4            # four ranks, as MPICH and smpirun write it
    node-3 slots=4      # four ranks, as Open MPI writes it

Ranks fill the lines in order, unless ``--map-by`` changes the order. A host on several lines runs
the sum of their ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle, islice
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from pysmpi.errors import UsageError
from pysmpi.mappings import EXPECTED, is_mapping, ranks_per_node
from pysmpi.platform.model import Host, Platform

_LINE = r"(?P<host>\S+?)(?:\s*:\s*(?P<n>\S*)|\s+slots\s*=\s*(?P<slots>\S*))?"


class Slot(NamedTuple):
    """A place for a rank: a host and the number of one of its cores, from 0."""

    host: Host
    core: int


class _Share(NamedTuple):
    """The number of ranks that one line of a host file lets a host run."""

    host: Host
    ranks: int


def place(
    platform: Platform,
    nprocs: int,
    hostfile: str | PathLike[str] | None = None,
    map_by: str | None = None,
) -> list[Slot]:
    """The slot of each of `nprocs` ranks.

    Raises UsageError for fewer than one rank, an unknown `map_by`, a host file that cannot be read
    or that names unknown hosts, and for more ranks than the host file allows.
    """
    if nprocs < 1:
        raise UsageError(f"-n: expected at least 1 rank, got {nprocs}")
    if map_by is not None and not is_mapping(map_by):
        raise UsageError(f'--map-by: expected one of {", ".join(EXPECTED)}, got "{map_by}"')
    each = None if map_by is None else ranks_per_node(map_by)
    if each is not None:
        return _each(platform, nprocs, hostfile, each)
    if hostfile is None:
        otherwise = "node" if platform.simgrid else "core"
        return list(islice(_whole_machine(platform, map_by or otherwise), nprocs))
    shares = read_hostfile(platform, hostfile)
    allowed = sum(share.ranks for share in shares)
    if nprocs > allowed:
        raise UsageError(
            f"{hostfile}: expected room for {nprocs} ranks, got {allowed} "
            f"on {len({share.host.name for share in shares})} hosts"
        )
    return list(islice(_within(shares, map_by), nprocs))


def _each(
    platform: Platform, nprocs: int, hostfile: str | PathLike[str] | None, each: int
) -> list[Slot]:
    """The slots of `nprocs` ranks, `each` of them on a host."""
    room = dict.fromkeys(platform.hosts, each)
    if hostfile is not None:
        room = {}
        for host, ranks in read_hostfile(platform, hostfile):
            room[host] = min(each, room.get(host, 0) + ranks)
    allowed = sum(room.values())
    if nprocs > allowed:
        raise UsageError(
            f"{'the machine' if hostfile is None else hostfile}: expected room for {nprocs} ranks, "
            f"got {allowed} on {len(room)} hosts with at most {each} a host"
        )
    slots = (Slot(host, turn % host.cores) for host in room for turn in range(room[host]))
    return list(islice(slots, nprocs))


def read_hostfile(platform: Platform, path: str | PathLike[str]) -> list[_Share]:
    """The hosts of a host file in order, each with its number of ranks. Raises UsageError."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: expected a text file of host names, got other data") from None
    shares = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if content:
            shares.append(_read_line(platform, content, f"{path}:{number}"))
    if not shares:
        raise UsageError(f"{path}: expected at least one host, got none")
    return shares


def _read_line(platform: Platform, content: str, where: str) -> _Share:
    match = re.fullmatch(_LINE, content)
    if match is None:
        raise UsageError(f'{where}: expected "HOST", "HOST:N" or "HOST slots=N", got "{content}"')
    try:
        host = platform.host(match["host"])
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    count = match["n"] if match["n"] is not None else match["slots"]
    if count is None:
        return _Share(host, 1)
    if not (count.isascii() and count.isdecimal()) or not 0 < int(count) < 10**9:
        raise UsageError(f'{where}: expected a number of ranks above 0, got "{count}"')
    return _Share(host, int(count))


def _whole_machine(platform: Platform, map_by: str) -> Iterator[Slot]:
    """Slots without end, in the order of `map_by` over all hosts."""
    hosts = platform.hosts
    if map_by == "core":
        while True:
            for host in hosts:
                for core in range(host.cores):
                    yield Slot(host, core)
    if map_by == "socket":
        yield from _round_sockets([(host, socket) for host in hosts for socket in _sockets(host)])
    turn = 0
    while True:
        for host in hosts:
            yield Slot(host, turn % host.cores)
        turn += 1


def _within(shares: list[_Share], map_by: str | None) -> Iterator[Slot]:
    """The slots of a host file, as many as it allows, in the order of `map_by`."""
    if map_by is None:
        used: dict[Host, int] = {}
        for host, ranks in shares:
            for _ in range(ranks):
                turn = used.get(host, 0)
                used[host] = turn + 1
                yield Slot(host, turn % host.cores)
        return
    room: dict[Host, int] = {}
    for host, ranks in shares:
        room[host] = room.get(host, 0) + ranks
    if map_by == "core":
        for host, ranks in room.items():
            for turn in range(ranks):
                yield Slot(host, turn % host.cores)
    elif map_by == "node":
        for turn in range(max(room.values())):
            for host, ranks in room.items():
                if turn < ranks:
                    yield Slot(host, turn % host.cores)
    else:
        left = dict(room)
        sockets = [(host, socket) for host in room for socket in _sockets(host)]
        for slot in _round_sockets(sockets):
            if left[slot.host]:
                left[slot.host] -= 1
                yield slot
            elif not any(left.values()):
                return


def _sockets(host: Host) -> list[range]:
    """The cores of each socket of a host."""
    size = host.cores // host.sockets
    return [range(first, first + size) for first in range(0, host.cores, size)]


def _round_sockets(sockets: list[tuple[Host, range]]) -> Iterator[Slot]:
    """An infinite sequence of slots, round robin over the sockets and over the cores of each."""
    cores = [(host, cycle(socket)) for host, socket in sockets]
    while True:
        for host, core in cores:
            yield Slot(host, next(core))
