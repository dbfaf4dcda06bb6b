"""Operations that a program has made and not begun: persistent requests, partitions."""

from __future__ import annotations

from collections.abc import Iterable

from pysmpi import text
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.requests import Receive, Send
from pysmpi.mpi.collective.background import PersistentCollective
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.point_to_point.operations import TEMPLATES
from pysmpi.mpi.point_to_point.partitioned import STARTED, Partitioned, PartitionedSend
from pysmpi.python.frames import CallSite, instances, shorten

Origin = tuple[str, CallSite | None]


def sends_for(receive: Receive, communicator: Communicator, pid: int) -> list[str]:
    """The idle persistent sends that would match a receive of a process."""
    side = communicator.remote
    result = []
    for one in (TEMPLATES.peek(side) or {}).values():
        if not one.sends or not one.idle or receive.tag not in (ANY, one.tag):
            continue
        if side.remote.group[one.peer] == pid and (
            receive.source in (ANY, side.rank_of(one.rank.pid))
        ):
            result.append(_said(one.rank.pid, one.origin, one.started))
    return result


def receives_for(send: Send, communicator: Communicator, pid: int) -> list[str]:
    """The idle persistent receives that would match a send of a process.

    `communicator` is the side of the receiver.
    """
    target = send.context.members[send.destination].pid
    result = []
    for one in (TEMPLATES.peek(communicator) or {}).values():
        if one.sends or not one.idle or one.rank.pid != target:
            continue
        source = pid if one.peer < 0 else communicator.remote.group[one.peer]
        if source == pid and (one.tag < 0 or one.tag == send.tag):
            result.append(_said(target, one.origin, one.started))
    return result


def idle_collective(operation: PersistentCollective) -> list[str]:
    """The ranks that have not started a persistent collective call that others wait in."""
    communicator = operation.template.communicator
    origins: dict[Origin, list[int]] = {}
    for one in instances([PersistentCollective]):
        if (
            isinstance(one, PersistentCollective)
            and one.identity == operation.identity
            and one.starts < operation.starts
            and one.template.communicator in (communicator, communicator.remote)
        ):
            origins.setdefault(one.origin, []).append(one.rank.pid)
    before = operation.starts > 1
    return [_said_of(pids, origin, before) for origin, pids in origins.items()]


def partitions(operation: Partitioned) -> list[str]:
    """The reasons for which one side of a partitioned communication waits."""
    channel = operation.channel
    if channel is None:
        return _strangers(operation)
    sender, receiver = channel.sender, channel.receiver
    if sender.request is None or sender.request.done:
        return [_said(sender.rank.pid, sender.origin, sender.request is not None)]
    missing = sorted(set(range(sender.partitions)) - sender.marked)
    if missing:
        which = "partition" if len(missing) == 1 else "partitions"
        return [
            f"rank {sender.rank.pid} has not called Pready for {which} {text.ranges(missing)} of "
            f"its {_made(sender.origin)}"
        ]
    if receiver.request is None or receiver.request.done:
        return [_said(receiver.rank.pid, receiver.origin, receiver.request is not None)]
    return []


def _strangers(operation: Partitioned) -> list[str]:
    """Nobody has made the other side: what the other process has made instead."""
    sends = isinstance(operation, PartitionedSend)
    communicator = operation.communicator
    pid = communicator.remote.group[operation.peer]
    wanted = "Precv_init" if sends else "Psend_init"
    lines = []
    for one in STARTED.of(communicator.remote):
        if one.rank.pid == pid and isinstance(one, PartitionedSend) is not sends:
            if one.channel is not None:
                continue
            peer = one.communicator.remote.group[one.peer]
            if one.tag == operation.tag and peer == operation.rank.pid:
                lines.append(f"rank {pid} has freed its {_made(one.origin)} without a Start")
            else:
                lines.append(
                    f"{_made(one.origin)} of rank {pid} has tag {one.tag}, "
                    f"{_made(operation.origin)} of rank {operation.rank.pid} tag {operation.tag}"
                )
    return sorted(lines) or [
        f"rank {pid} has not called {wanted} for {_made(operation.origin)} of "
        f"rank {operation.rank.pid}"
    ]


def _said(pid: int, origin: Origin, before: bool = False) -> str:
    return _said_of([pid], origin, before)


def _said_of(pids: Iterable[int], origin: Origin, before: bool) -> str:
    pids = sorted(pids)
    verb = "has" if len(pids) == 1 else "have"
    again = " again" if before else ""
    return f"{text.ranks(pids)} {verb} not called Start{again} for {_made(origin)}"


def _made(origin: Origin) -> str:
    name, site = origin
    return name if site is None else f"{name} at {shorten(site.file)}:{site.line}"
