"""The placement of ranks: the host and core of rank 0, 1, 2, ...

Without a host file, ranks fill a host's cores before the next host's (``--map-by core``), as with
mpiexec and Slurm. ``--map-by node`` places ranks on the hosts round robin, as smpirun does; it is
the default on SimGrid's own files. ``--map-by socket`` places them round robin on all sockets of
the machine. ``--map-by ppr:N:node``, or ``--ppn N``, places N ranks on each host, and
``ppr:N:socket`` on each socket. If there are more ranks than cores, ranks share cores; N ranks a
host or socket are never exceeded. With the modifier ``:pe=N`` a rank has N cores, and computes on
the first of them.

``--rank-by`` numbers the ranks that have their places: by ``slot`` in the order of the places on
each host, host after host; by ``core`` in the order of cores; by ``socket`` round robin over the
sockets of each host, host after host; by ``socket:span`` over those of all hosts; by ``node`` round
robin over the hosts.

A host file names one host in each line, with its number of ranks::

    node-1              # one rank
    node-2:4            # four ranks, as MPICH and smpirun write it
    node-3 slots=4      # four ranks, as Open MPI writes it

Ranks fill the lines in order, unless ``--map-by`` changes the order. A host on several lines runs
the sum of their ranks.

A rank file (`rankfile.py`) in place of a host file names the host and the core of each rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle, islice, zip_longest
from os import PathLike, fspath
from typing import NamedTuple

from pysmpi.errors import UsageError
from pysmpi.io.reading import read_text
from pysmpi.platform.mappings import (
    EXPECTED,
    EXPECTED_RANKINGS,
    Mapping,
    parse_mapping,
    parse_ranking,
)
from pysmpi.platform.model import Host, Platform
from pysmpi.platform.rankfile import RankLine, is_rank_line, read_rank_line
from pysmpi.text import whole

_LINE = r"(?P<host>\S+?)(?:\s*:\s*(?P<n>\S*)|\s+slots\s*=\s*(?P<slots>\S*))?"


LIST = "hosts:"  # the begin of a list of hosts in place of a host file
_MOST_LISTED = 1_000_000  # hosts that one part of a list stands for


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
    rank_by: str | None = None,
) -> list[Slot]:
    """The slot of each of `nprocs` ranks.

    Raises UsageError for fewer than one rank, an unknown `map_by` or `rank_by`, a host file that
    cannot be read or that names unknown hosts, and for more ranks than the host file allows.
    """
    if nprocs < 1:
        raise UsageError(f"-n: expected at least 1 rank, got {nprocs}")
    lines = () if hostfile is None else _rank_lines(hostfile)
    if hostfile is not None and lines:
        for option, value in (("--map-by", map_by), ("--rank-by", rank_by)):
            if value is not None:
                raise UsageError(f"{option}: expected none with a rank file ({hostfile}), got one")
        return _listed(platform, nprocs, hostfile, lines)
    order = None if map_by is None else parse_mapping(map_by)
    if map_by is not None and order is None:
        raise UsageError(f'--map-by: expected one of {", ".join(EXPECTED)}, got "{map_by}"')
    numbered = None if rank_by is None else parse_ranking(rank_by)
    if rank_by is not None and numbered is None:
        expected = ", ".join(EXPECTED_RANKINGS)
        raise UsageError(f'--rank-by: expected one of {expected}, got "{rank_by}"')
    slots = _mapped(platform, nprocs, hostfile, order)
    if order is not None and order.strict:
        _check_cores(slots)
    return slots if numbered is None else _ranked(slots, numbered)


def _mapped(
    platform: Platform, nprocs: int, hostfile: str | PathLike[str] | None, order: Mapping | None
) -> list[Slot]:
    if order is not None and order.each is not None:
        return _each(platform, nprocs, hostfile, order, order.each)
    if hostfile is None:
        if order is None:
            order = Mapping("node" if platform.simgrid else "core")
        return list(islice(_whole_machine(platform, order), nprocs))
    shares = read_hostfile(platform, hostfile)
    allowed = sum(share.ranks for share in shares)
    if nprocs > allowed and _without_counts(hostfile):
        shares = list(islice(cycle(shares), nprocs))
        allowed = nprocs
    if nprocs > allowed:
        raise UsageError(
            f"{hostfile}: expected room for {nprocs} ranks, got {allowed} "
            f"on {len({share.host.name for share in shares})} hosts"
        )
    return list(islice(_within(shares, order), nprocs))


def _rank_lines(hostfile: str | PathLike[str]) -> list[RankLine]:
    """The lines of a rank file; none if it is a host file, or a list of hosts."""
    if is_list(hostfile):
        return []
    lines = [
        read_rank_line(content, where)
        for where, content in _lines(hostfile)
        if is_rank_line(content)
    ]
    if lines and len(lines) < len(_lines(hostfile)):
        where, content = next(one for one in _lines(hostfile) if not is_rank_line(one[1]))
        raise UsageError(f'{where}: expected "rank N=HOST slot=CORE", got "{content}"')
    return lines


def _listed(
    platform: Platform, nprocs: int, hostfile: str | PathLike[str], lines: list[RankLine]
) -> list[Slot]:
    """The slots of a rank file."""
    slots: dict[int, Slot] = {}
    used: dict[Host, int] = {}
    for line in lines:
        try:
            host = platform.host(line.host)
        except UsageError as error:
            raise UsageError(f"{line.where}: {error}") from None
        if line.rank in slots:
            raise UsageError(f"{line.where}: expected each rank once, got rank {line.rank} again")
        core, most = line.core, host.cores
        if core is None:
            core = used.get(host, 0) % most
        elif line.socket is not None:
            most = host.cores // host.sockets
            if line.socket >= host.sockets:
                raise UsageError(
                    f"{line.where}: slot: expected a socket below {host.sockets} of "
                    f"{host.name}, got {line.socket}"
                )
        if core >= most:
            raise UsageError(
                f"{line.where}: slot: expected a core below {most} of {host.name}, got {core}"
            )
        used[host] = used.get(host, 0) + 1
        slots[line.rank] = Slot(host, core + (line.socket or 0) * most)
    missing = [rank for rank in range(nprocs) if rank not in slots]
    if missing:
        raise UsageError(f"{hostfile}: expected a line for rank {missing[0]}, got none")
    return [slots[rank] for rank in range(nprocs)]


def _each(
    platform: Platform,
    nprocs: int,
    hostfile: str | PathLike[str] | None,
    order: Mapping,
    each: int,
) -> list[Slot]:
    """The slots of `nprocs` ranks, `each` of them on a host or on a socket."""
    room: dict[Host, int] = {}
    if hostfile is None:
        room = {host: each * _units(host, order) for host in platform.hosts}
    else:
        free = _without_counts(hostfile)
        for host, ranks in read_hostfile(platform, hostfile):
            most = each * _units(host, order)
            room[host] = most if free else min(most, room.get(host, 0) + ranks)
    allowed = sum(room.values())
    if nprocs > allowed:
        raise UsageError(
            f"{'the machine' if hostfile is None else hostfile}: expected room for {nprocs} ranks, "
            f"got {allowed} on {len(room)} hosts with at most {each} a "
            + ("host" if order.by == "node" else "socket")
        )
    slots: list[Slot] = []
    for host, ranks in room.items():
        units = [range(host.cores)] if order.by == "node" else _sockets(host)
        cores = [core for unit in units for core in _first(unit, each, order.cores)]
        slots += [Slot(host, core) for core in cores[:ranks]]
        if len(slots) >= nprocs:
            break
    return slots[:nprocs]


def _units(host: Host, order: Mapping) -> int:
    return 1 if order.by == "node" else host.sockets


def _first(cores: range, count: int, width: int) -> list[int]:
    """The cores of `count` ranks that have `width` cores each; they share them if necessary."""
    places = _places(cores, width)
    return [places[turn % len(places)] for turn in range(count)]


def _places(cores: range, width: int) -> range:
    """The first core of each rank that has `width` of some cores."""
    return cores[: max(1, len(cores) // width * width) : width]


def _check_cores(slots: list[Slot]) -> None:
    """Refuse ranks that share a core."""
    seen: set[Slot] = set()
    for slot in slots:
        if slot in seen:
            raise UsageError(
                f"--map-by: nooversubscribe: expected a core for each of {len(slots)} ranks, got "
                f"two on core {slot.core} of {slot.host.name}"
            )
        seen.add(slot)


def _ranked(slots: list[Slot], rank_by: str) -> list[Slot]:
    """The same slots in the order of the ranks."""
    hosts: dict[Host, list[Slot]] = {}
    for slot in slots:
        hosts.setdefault(slot.host, []).append(slot)
    if rank_by == "node":
        return _in_turn(list(hosts.values()))
    if rank_by == "slot":
        return [slot for mine in hosts.values() for slot in mine]
    for mine in hosts.values():
        mine.sort(key=lambda slot: slot.core)
    if rank_by == "core":
        return [slot for mine in hosts.values() for slot in mine]
    sockets = [_by_socket(host, mine) for host, mine in hosts.items()]
    if rank_by == "socket":
        return [slot for groups in sockets for slot in _in_turn(groups)]
    return _in_turn([group for groups in sockets for group in groups])


def _by_socket(host: Host, slots: list[Slot]) -> list[list[Slot]]:
    """The slots of a host, by socket."""
    groups: dict[int, list[Slot]] = {}
    size = host.cores // host.sockets
    for slot in slots:
        groups.setdefault(slot.core // size, []).append(slot)
    return list(groups.values())


def _in_turn(groups: list[list[Slot]]) -> list[Slot]:
    """One of each group in turn, until none is left."""
    return [slot for turn in zip_longest(*groups) for slot in turn if slot is not None]


def read_hostfile(platform: Platform, path: str | PathLike[str]) -> list[_Share]:
    """The hosts of a host file in order, each with its number of ranks. Raises UsageError.

    A path `hosts:LIST` is no file, but a list such as `a,b:2` or `node[0-3]`.
    """
    shares = []
    for where, name, ranks in _named(path):
        try:
            shares.append(_Share(platform.host(name), 1 if ranks is None else ranks))
        except UsageError as error:
            hint = "; --platform gives the machine" if is_list(path) else ""
            raise UsageError(f"{where}: {error}{hint}") from None
    return shares


def ranks_of_hostfile(path: str | PathLike[str], map_by: str | None = None) -> int:
    """The number of ranks for which a host file has room. Raises UsageError."""
    order = None if map_by is None else parse_mapping(map_by)
    each = None if order is None or order.by != "node" else order.each
    if each is None:
        return sum(1 if ranks is None else ranks for _, _, ranks in _named(path))
    room: dict[str, int] = {}
    for _, name, ranks in _named(path):
        more = each if ranks is None and is_list(path) else 1 if ranks is None else ranks
        room[name] = min(each, room.get(name, 0) + more)
    return sum(room.values())


def is_list(path: str | PathLike[str]) -> bool:
    """Whether the path of a host file is a list of hosts."""
    return fspath(path).startswith(LIST)


def _without_counts(path: str | PathLike[str]) -> bool:
    """Whether it is a list that does not limit the ranks of its hosts."""
    return is_list(path) and all(ranks is None for _, _, ranks in _named(path))


def _named(path: str | PathLike[str]) -> list[tuple[str, str, int | None]]:
    """The hosts of a host file or a list: each with its place and its number of ranks, if any."""
    found = []
    if is_list(path):
        where = f"--host {fspath(path).removeprefix(LIST)}"
        for part in re.split(r",(?![^\[]*\])", fspath(path).removeprefix(LIST)):
            for name in _expanded(part.strip(), where):
                found.append((where, *_read_line(name, where)))
        return found
    for place, content in _lines(path):
        if is_rank_line(content):
            found.append((place, read_rank_line(content, place).host, 1))
        else:
            found.append((place, *_read_line(content, place)))
    if not found:
        raise UsageError(f"{path}: expected at least one host, got none")
    return found


def _lines(path: str | PathLike[str]) -> list[tuple[str, str]]:
    """The places and the contents of the lines of a file, without comments."""
    text = read_text(path, "a text file of host names")
    return [
        (f"{path}:{number}", content)
        for number, line in enumerate(text.splitlines(), 1)
        if (content := line.partition("#")[0].strip())
    ]


def _expanded(part: str, where: str) -> list[str]:
    """The hosts of a part of a list, such as `node[0-3,7]`."""
    match = re.fullmatch(r"([^\[\]]*)\[([0-9,\-]+)\]([^\[\]]*)", part)
    if match is None:
        return [part]
    names = []
    for piece in match[2].split(","):
        first, dash, last = piece.partition("-")
        begin, end = whole(first, 9), whole(last if dash else first, 9)
        if begin is None or end is None or not begin <= end < begin + _MOST_LISTED:
            raise UsageError(f"{where}: expected numbers such as [0-3,7], got {piece!r}")
        names += [
            f"{match[1]}{str(number).zfill(len(first))}{match[3]}"
            for number in range(begin, end + 1)
        ]
    return names


def _read_line(content: str, where: str) -> tuple[str, int | None]:
    match = re.fullmatch(_LINE, content)
    if match is None:
        raise UsageError(f'{where}: expected "HOST", "HOST:N" or "HOST slots=N", got "{content}"')
    count = match["n"] if match["n"] is not None else match["slots"]
    ranks = None if count is None else whole(count, 9)
    if count is not None and not ranks:
        raise UsageError(f'{where}: expected a number of ranks above 0, got "{count}"')
    return match["host"], ranks


def _whole_machine(platform: Platform, order: Mapping) -> Iterator[Slot]:
    """Slots without end, in an order over all hosts."""
    hosts, width = platform.hosts, order.cores
    if order.by == "core":
        while True:
            for host in hosts:
                for core in _places(range(host.cores), width):
                    yield Slot(host, core)
    if order.by == "socket":
        sockets = [(host, socket) for host in hosts for socket in _sockets(host)]
        yield from _round_sockets(sockets, width)
    turn = 0
    while True:
        for host in hosts:
            yield _turn(host, turn, width)
        turn += 1


def _turn(host: Host, turn: int, width: int = 1) -> Slot:
    """The slot of one of the ranks of a host, which have `width` cores each."""
    if width == 1:
        return Slot(host, turn % host.cores)
    places = _places(range(host.cores), width)
    return Slot(host, places[turn % len(places)])


def _within(shares: list[_Share], order: Mapping | None) -> Iterator[Slot]:
    """The slots of a host file, as many as it allows, in an order."""
    if order is None:
        used: dict[Host, int] = {}
        for host, ranks in shares:
            for _ in range(ranks):
                turn = used.get(host, 0)
                used[host] = turn + 1
                yield _turn(host, turn)
        return
    room: dict[Host, int] = {}
    for host, ranks in shares:
        room[host] = room.get(host, 0) + ranks
    if order.by == "core":
        for host, ranks in room.items():
            for turn in range(ranks):
                yield _turn(host, turn, order.cores)
    elif order.by == "node":
        for turn in range(max(room.values())):
            for host, ranks in room.items():
                if turn < ranks:
                    yield _turn(host, turn, order.cores)
    else:
        left = dict(room)
        sockets = [(host, socket) for host in room for socket in _sockets(host)]
        for slot in _round_sockets(sockets, order.cores):
            if left[slot.host]:
                left[slot.host] -= 1
                yield slot
            elif not any(left.values()):
                return


def _sockets(host: Host) -> list[range]:
    """The cores of each socket of a host."""
    size = host.cores // host.sockets
    return [range(first, first + size) for first in range(0, host.cores, size)]


def _round_sockets(sockets: list[tuple[Host, range]], width: int) -> Iterator[Slot]:
    """An infinite sequence of slots, round robin over the sockets and over the cores of each."""
    cores = [(host, cycle(_places(socket, width))) for host, socket in sockets]
    while True:
        for host, core in cores:
            yield Slot(host, next(core))
