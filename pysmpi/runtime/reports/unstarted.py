"""Operations that a program has made and not begun: persistent requests, partitions.

They are looked for among the objects of the interpreter, only when a report needs them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pysmpi import text
from pysmpi.frames import CallSite, instances, shorten
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.requests import Receive, Send
from pysmpi.mpi.collective.background import PersistentCollective
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.point_to_point.operations import PersistentReceive, PersistentSend
from pysmpi.mpi.point_to_point.partitioned import STARTED, Partitioned, PartitionedSend

Origin = tuple[str, CallSite | None]


class Unstarted:
    """The persistent requests of a run that are not active."""

    def __init__(self) -> None:
        self._sends: list[PersistentSend] | None = None
        self._receives: list[PersistentReceive] = []
        self._collectives: list[PersistentCollective] = []

    def _look(self) -> None:
        if self._sends is not None:
            return
        self._sends = []
        kinds = (PersistentSend, PersistentReceive, PersistentCollective)
        for one in instances(kinds):
            if isinstance(one, PersistentSend) and _idle(one):
                self._sends.append(one)
            elif isinstance(one, PersistentReceive) and _idle(one):
                self._receives.append(one)
            elif isinstance(one, PersistentCollective):
                self._collectives.append(one)

    def sends_for(self, receive: Receive, communicator: Communicator, pid: int) -> list[str]:
        """The sends that would match a receive of a process."""
        self._look()
        found = []
        for one in self._sends or ():
            made = one.template
            if made.communicator.remote is not communicator or receive.tag not in (ANY, made.tag):
                continue
            sender = made.communicator.rank_of(one.rank.pid)
            if made.communicator.remote.group[made.peer] == pid and (
                receive.source in (ANY, sender)
            ):
                found.append(_said(one.rank.pid, made.origin))
        return found

    def receives_for(self, send: Send, communicator: Communicator, pid: int) -> list[str]:
        """The receives that would match a send of a process."""
        self._look()
        target = send.context.members[send.destination].pid
        found = []
        for one in self._receives:
            made = one.template
            if made.communicator is not communicator or one.rank.pid != target:
                continue
            source = ANY if made.peer < 0 else communicator.remote.group[made.peer]
            if source in (ANY, pid) and (made.tag < 0 or made.tag == send.tag):
                found.append(_said(target, made.origin))
        return found

    def collective(self, communicator: Communicator, number: int) -> list[str]:
        """The ranks that have not started a persistent collective call with a negative number."""
        self._look()
        identity, starts = divmod(-number, 1 << 32)
        found: dict[Origin, list[int]] = {}
        for one in self._collectives:
            if one.identity == identity and one.starts < starts and (
                one.template.communicator in (communicator, communicator.remote)
            ):
                found.setdefault(one.origin, []).append(one.rank.pid)
        return [_said_of(pids, origin) for origin, pids in found.items()]


def _idle(operation: PersistentSend | PersistentReceive) -> bool:
    return operation.request is None or operation.request.done


def partitions(operation: Partitioned) -> list[str]:
    """The reasons for which one side of a partitioned communication waits."""
    channel = operation.channel
    if channel is None:
        return _strangers(operation)
    sender, receiver = channel.sender, channel.receiver
    if sender.request is None or sender.request.done:
        return [_said(sender.rank.pid, sender.origin)]
    missing = sorted(set(range(sender.partitions)) - sender.marked)
    if missing:
        which = "partition" if len(missing) == 1 else "partitions"
        return [
            f"rank {sender.rank.pid} has not called Pready for {which} {text.ranges(missing)} of "
            f"its {_made(sender.origin)}"
        ]
    if receiver.request is None or receiver.request.done:
        return [_said(receiver.rank.pid, receiver.origin)]
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
            if one.channel is None:
                lines.append(
                    f"{_made(one.origin)} of rank {pid} has tag {one.tag}, "
                    f"{_made(operation.origin)} of rank {operation.rank.pid} tag {operation.tag}"
                )
    return sorted(lines) or [
        f"rank {pid} has not called {wanted} for {_made(operation.origin)} of "
        f"rank {operation.rank.pid}"
    ]


def _said(pid: int, origin: Origin) -> str:
    return _said_of([pid], origin)


def _said_of(pids: Iterable[int], origin: Origin) -> str:
    pids = sorted(pids)
    verb = "has" if len(pids) == 1 else "have"
    return f"{text.ranks(pids)} {verb} not called Start for {_made(origin)}"


def _made(origin: Origin) -> str:
    name, site = origin
    return name if site is None else f"{name} at {shorten(site.file)}:{site.line}"
