"""Causes of deadlocks: near misses in the mailboxes, unequal collectives, cycles.

The causes follow MPI's rules: a receive matches a message with its source, its tag and its
communicator; a collective call needs every rank of its communicator, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pysmpi import text
from pysmpi.kernel.matching import ANY
from pysmpi.kernel.requests import Receive, Send
from pysmpi.mpi.collective.background import CollectiveOperation, PersistentCollective
from pysmpi.mpi.collective.in_place import misplaced
from pysmpi.mpi.point_to_point.buffered import ATTACHED
from pysmpi.mpi.point_to_point.partitioned import Partitioned
from pysmpi.mpi.rma.accesses import LATE
from pysmpi.mpi.rma.locks import LockClaim
from pysmpi.python.frames import shorten
from pysmpi.reports.failures import any_failed, failures
from pysmpi.reports.history import (
    called,
    ordinal_of,
    sizes_of,
)
from pysmpi.reports.unstarted import (
    idle_collective,
    partitions,
    receives_for,
    sends_for,
)
from pysmpi.reports.wait_graph import WaitGraph
from pysmpi.reports.waiting import (
    Collective,
    Piece,
    Wait,
    accepts,
    describe_communicator,
    posted_receives,
    unmatched_sends,
)

_REASONS = 4  # lines at most
_SEARCHED = 1000  # waits that calls with errors may explain
_MEETINGS = ("Accept", "Connect", "Join")


class Causes(WaitGraph):
    """The reasons of a deadlock, from the waits of ranks and the ranks that have finished."""

    # Lines of explanation.

    def reasons(self, chosen: Iterable[Wait]) -> list[str]:
        """The reasons of some of the waits, the most informative first."""
        weights: dict[str, int] = {}
        for wait in self.waits[:_SEARCHED] if any_failed(self) else ():
            for weight, line in failures(self, wait):
                weights.setdefault(line, weight)
        for wait in chosen:
            for weight, line in self._explain(wait):
                weights.setdefault(line, weight)
        ordered = sorted(weights, key=lambda line: weights[line])
        # If there is a definite error, lines that only repeat the wait are noise, and so are other
        # errors beside one that explains it.
        if ordered and weights[ordered[0]] < 5:
            most = 4 if weights[ordered[0]] < 0 else 8
            ordered = [line for line in ordered if weights[line] < most]
        return ordered[:_REASONS]

    def _explain(self, wait: Wait) -> list[tuple[int, str]]:
        if wait.collective is not None:
            return self._explain_collective(wait, wait.collective)
        if wait.spins:
            who = text.ranks([wait.pid])
            return [(3, f"{who} polls memory that no other rank can still change{_place(wait)}")]
        if wait.own:
            who = text.ranks([wait.pid])
            if wait.joins:
                return [(8, _ended(who, wait))]
            return [(9, f"{who} waits in {wait.call} for another of its own threads")]
        lines = []
        for piece in wait.pieces[:3]:
            request = piece.request
            if isinstance(request, Receive):
                lines += self._explain_receive(wait, piece, request)
            elif isinstance(request, Send):
                lines += self._explain_send(wait, piece, request)
            elif request is not None and isinstance(request.payload, LockClaim):
                lines += self._explain_lock(wait, piece, request.payload)
            elif isinstance(piece.operation, CollectiveOperation):
                if isinstance(piece.operation, PersistentCollective):
                    lines += [(1, line) for line in idle_collective(piece.operation)]
                contribution = piece.operation.contribution
                given = misplaced(contribution.communicator, contribution.number)
                lines += [(1, given)] if given else []
            elif isinstance(piece.operation, Partitioned):
                lines += [(1, line) for line in partitions(piece.operation)]
                lines += self._about_peer(
                    wait, piece, "receive" if "dest" in piece.arguments else "send"
                )
        return lines or self._explain_call(wait)

    def _explain_call(self, wait: Wait) -> list[tuple[int, str]]:
        """The reason of a wait in a call that waits for no message of a known rank."""
        who = text.ranks([wait.pid])
        if wait.call in _MEETINGS:
            return [(3, self._unmet(wait))]
        if wait.call.endswith("_buffer"):
            lines = []
            for attached in ATTACHED.of(wait.rank).values():
                for send in attached.pending()[:_REASONS]:
                    target = send.context.members[send.destination].pid
                    lines.append((3, (
                        f"rank {target} has not received the buffered message of {who} with "
                        f"tag {send.tag}, {text.count(send.nbytes, 'byte')}: {wait.call} waits "
                        "until it has"
                    )))  # fmt: skip
            return lines
        return []

    def _unmet(self, wait: Wait) -> str:
        """The reason for which a process finds nobody at a port or at a socket."""
        who = text.ranks([wait.pid])
        if wait.call == "Join":
            return f"no process calls Join with the other end of the socket of {who}"
        verb, other = ("connects", "Connect") if wait.call == "Accept" else ("accepts", "Accept")
        port = self._port(wait)
        for peer in self.waits:
            if peer.call == other and self._port(peer) not in ("", port):
                return (
                    f"rank {peer.pid} is in {other} with port_name {self._port(peer)!r}"
                    f"{_place(peer)}, {who} in {wait.call} with {port!r}: port names differ"
                )
        same = [peer for peer in self.waits if peer.call == wait.call and peer is not wait]
        note = " any more" if not same and wait.call == "Connect" else ""
        return f"no process {verb}{note} at the port of {who} ({other} with port_name {port!r})"

    def _port(self, wait: Wait) -> str:
        return "" if wait.made is None else str(wait.made.arguments.get("port_name", ""))

    def _explain_lock(self, wait: Wait, piece: Piece, claim: LockClaim) -> list[tuple[int, str]]:
        """The ranks that hold the lock for which a rank waits, or get it before."""
        group = claim.locks.group
        what = "a lock" if claim.target < 0 else f"the lock of rank {group[claim.target]}"
        lines = []
        for pid in sorted(piece.pids):
            peer = self.of.get(pid)
            if peer is None:
                lines.append((2, f"rank {pid} has finished and still holds {what}"))
            else:
                lines.append((3, (
                    f"rank {wait.pid} waits for {what} behind rank {pid}, "
                    f"which is in {peer.call}{_place(peer)}"
                )))  # fmt: skip
        return lines

    def _explain_receive(self, wait: Wait, piece: Piece, receive: Receive) -> list[tuple[int, str]]:
        me = wait.pid
        lines: list[tuple[int, str]] = []
        if piece.act:
            if piece.name == "Create_intercomm":
                lines += self._strange_leaders(wait, receive)
            return lines + self._about_peer(wait, piece, piece.act)
        communicator = self.finder.communicator_of(receive.context)
        if communicator is not None:
            lines += [(1, line) for line in sends_for(receive, communicator, me)]
        sources = self.finder.sources(receive.context)
        for send in unmatched_sends(receive.context):
            if receive.source not in (ANY, send.source):
                if send.destination == receive.destination and receive.tag in (ANY, send.tag):
                    sender = sources[send.source]
                    lines.append((3, (
                        f"rank {sender} has sent a message to rank {me} with this tag "
                        f"({send.tag}){self._sent(send)}, but rank {me} receives from "
                        f"{self._source(receive, sources)}: sources differ"
                    )))  # fmt: skip
                continue
            sender = sources[send.source]
            if send.destination == receive.destination and not accepts(receive, send):
                lines.append((1, (
                    f"rank {sender}'s unmatched message to rank {me} is "
                    f"{self._message(send, sender)}: tags differ "
                    f"({send.tag} sent, {receive.tag} expected)"
                )))  # fmt: skip
            elif send.destination != receive.destination and receive.tag in (ANY, send.tag):
                target = send.context.members[send.destination].pid
                if receive.source != ANY:
                    lines.append((4, (
                        f"rank {sender}'s unmatched message with this tag goes to rank {target}, "
                        f"not to rank {me}: {self._message(send, sender)}"
                    )))  # fmt: skip
        lines += self._elsewhere(wait, receive, sources)
        lines += self._about_peer(wait, piece, "send")
        return lines

    def _strange_leaders(self, wait: Wait, receive: Receive) -> list[tuple[int, str]]:
        """A leader has called Create_intercomm with another tag."""
        lines = []
        for send in unmatched_sends(receive.context):
            if send.destination == receive.destination and send.source == receive.source:
                sender = self.finder.sources(receive.context)[send.source]
                peer = self.of.get(sender)
                there = "" if peer is None else _place(peer)
                lines.append((1, (
                    f"rank {sender} has called Create_intercomm with tag {send.tag}{there}, "
                    f"rank {wait.pid} with tag {receive.tag}{_place(wait)}: tags differ"
                )))  # fmt: skip
        return lines

    def _elsewhere(self, wait: Wait, receive: Receive, sources: list[int]) -> list[tuple[int, str]]:
        """Messages that would fit, in other communicators."""
        me = wait.pid
        here = self.finder.communicator_of(receive.context)
        lines = []
        for communicator in self.finder.communicators:
            context = communicator.p2p
            if context.number == receive.context.number or me not in communicator.group:
                continue
            if communicator.kind == "window":
                continue
            senders = communicator.remote.group
            for send in unmatched_sends(context):
                sender = senders[send.source]
                if context.members[send.destination].pid != me:
                    continue
                if receive.tag not in (ANY, send.tag):
                    continue
                if receive.source != ANY and sources[receive.source] != sender:
                    continue
                sent = describe_communicator(wait.rank, communicator)
                expected = "another" if here is None else describe_communicator(wait.rank, here)
                lines.append((2, (
                    f"rank {sender}'s unmatched message to rank {me} with this tag"
                    f"{self._sent(send)} is in {sent}, "
                    f"the receive in {expected}: communicators differ"
                )))  # fmt: skip
        return lines

    def _explain_send(self, wait: Wait, piece: Piece, send: Send) -> list[tuple[int, str]]:
        me = wait.pid
        target = send.context.members[send.destination].pid
        lines: list[tuple[int, str]] = []
        if piece.act:
            return self._about_peer(wait, piece, piece.act)
        communicator = self.finder.communicator_of(send.context)
        if communicator is not None:
            lines += [(1, line) for line in receives_for(send, communicator, me)]
        if target == me:
            return [(1, (
                f"rank {me} sends to itself and has posted no receive that fits: the call waits "
                "for one that comes after it"
            ))]  # fmt: skip
        sources = self.finder.sources(send.context)
        for receive in posted_receives(send.context, send.destination):
            if receive.source in (ANY, send.source):
                lines.append((1, (
                    f"rank {target} waits for rank {me} with tag {receive.tag}, rank {me} sends "
                    f"with tag {send.tag}: tags differ"
                )))  # fmt: skip
            elif receive.tag in (ANY, send.tag):
                lines.append((3, (
                    f"rank {target} waits for this tag ({send.tag}) from "
                    f"{self._source(receive, sources)}, not from rank {me}: sources differ"
                )))  # fmt: skip
        peer = self.of.get(target)
        if peer is not None and not lines:
            sends = [p for p in peer.pieces if isinstance(p.request, Send) and me in p.pids]
            if sends:
                low, high = sorted((me, target))
                size = text.count(send.nbytes, "byte")
                lines.append((2, (
                    f"ranks {low} and {high} send to each other first and receive later: "
                    f"MPI does not promise to buffer ({size} each way)"
                )))  # fmt: skip
        lines += self._about_peer(wait, piece, "receive")
        return lines

    def _about_peer(self, wait: Wait, piece: Piece, verb: str) -> list[tuple[int, str]]:
        """The state of the rank at the other end, if there is one such rank."""
        me = wait.pid
        if piece.any:
            dead = [pid for pid in piece.pids if pid in self.finished]
            if len(dead) >= len(piece.pids - {me}) > 0:
                return [(5, "every other rank has finished: no rank is left to send")]
            return [(9, f"no rank has a message left to send to rank {me}")]
        lines = []
        for pid in sorted(piece.pids):
            if pid == me:
                lines.append((1, f"rank {me} waits for a message from itself"))
            elif pid in self.finished:
                lines.append((5, (
                    f"rank {pid} has finished: it will not {verb} any more, and "
                    f"rank {me} still expects it"
                )))  # fmt: skip
            else:
                peer = self.of.get(pid)
                if peer is not None:
                    lines.append((8, (
                        f"rank {pid} would have to {verb}, but is in {peer.call}{_place(peer)}"
                    )))  # fmt: skip
        return lines

    def _explain_collective(self, wait: Wait, collective: Collective) -> list[tuple[int, str]]:
        communicator = collective.communicator
        lines: list[tuple[int, str]] = []
        call = called(wait)
        # Some calls make a communicator for themselves first.
        own = communicator.origin == (wait.call, wait.site)
        name = wait.comm if own else describe_communicator(wait.rank, communicator)
        here = f"{call} of {name}" if name else call
        difference = self.difference(communicator)
        if difference is not None:
            return list(enumerate(difference.lines(name, self.waits)))
        missing = self.missing(collective)
        gone = sorted(pid for pid in missing if pid in self.finished)
        if gone:
            lines.append((2, (
                f"{text.ranks(gone)} {_has(gone)} finished without entering {here}"
                f"{'' if own else _counted(wait, collective, gone)}"
            )))  # fmt: skip
        away = sorted(pid for pid in missing - self.finished if not self._begins(pid, wait))
        if away:
            lines.append((6, (
                f"{text.ranks(away)} {_has(away)} not entered {here}"
                + (f": {_is(away)} in {_calls(self.of, away)}" if self.of.get(away[0]) else "")
            )))  # fmt: skip
        lines += self._other_communicator(wait, collective, away)
        if not gone and not away:
            lines += self._counts(wait, collective)
        return lines

    def _counts(self, wait: Wait, collective: Collective) -> list[tuple[int, str]]:
        """All ranks have entered a call, and their sizes differ."""
        communicator = collective.communicator
        sizes = sizes_of(communicator, collective.number, collective.operation)
        if len(sizes) < 2:
            return []
        call, number = called(wait), ordinal_of(communicator, wait.pid, collective.number)
        said = ", ".join(
            f"{text.count(nbytes, 'byte')} in {text.ranks(pids)}" for nbytes, pids in sizes.items()
        )
        name = describe_communicator(wait.rank, communicator)
        line = f"sizes differ in {call}, call number {number} of {name}: {said}"
        given = misplaced(communicator, collective.number)
        return [(1, f"{line}; {given}" if given else line)]

    def _begins(self, pid: int, wait: Wait) -> bool:
        """Whether a rank is at the begin of the same call, and waits for other processes there."""
        peer = self.of.get(pid)
        return peer is not None and (peer.call, peer.comm) == (wait.call, wait.comm)

    def _other_communicator(
        self, wait: Wait, collective: Collective, away: Sequence[int]
    ) -> list[tuple[int, str]]:
        """Ranks that make the same call on another communicator."""
        communicator = collective.communicator
        lines: list[tuple[int, str]] = []
        groups: set[object] = set()
        for pid in away:
            peer = self.of.get(pid)
            if peer is None or peer.collective is None or pid < wait.pid:
                continue
            other = peer.collective.communicator
            if (peer.call, peer.site, id(other)) in groups:
                continue
            groups.add((peer.call, peer.site, id(other)))
            if other not in (communicator, communicator.remote) and wait.pid in other.group:
                lines.append((1, (
                    f"rank {wait.pid} is in {called(wait)} of "
                    f"{describe_communicator(wait.rank, communicator)}{_place(wait)}, rank {pid} "
                    f"in {called(peer)} of {describe_communicator(peer.rank, other)}"
                    f"{_place(peer)}: communicators differ"
                )))  # fmt: skip
        return lines

    def outlook(self) -> str:
        """The behaviour of a real MPI library."""
        sends = [
            piece.request.nbytes
            for wait in self.waits
            for piece in wait.pieces
            if isinstance(piece.request, Send)
        ]
        standard = [
            piece
            for wait in self.waits
            for piece in wait.pieces
            if isinstance(piece.request, Send) and piece.request.mode == 0
        ]
        if standard and len(standard) == len(sends):
            most = text.count(min(sends), "byte")
            return f"hangs, unless it buffers messages of {most} (most do so up to some kB)."
        late = LATE.peek(self.finder.universe)
        if late:
            return (
                f"hangs, unless it depends on what {text.ranks(sorted(late))} read under a lock "
                "(Get, Fetch_and_op, ...) before Flush or Unlock: MPI leaves the time open."
            )
        return "hangs for ever."

    # Texts.

    def _message(self, send: Send, sender: int) -> str:
        """A message of the program, with the line at which its sender still waits for it."""
        call, place = "", ""
        for wait in self.every.get(sender, ()):
            for piece in wait.pieces:
                if piece.request is send:
                    call, place = piece.name, _place(wait)
        origin = self.finder.started_by(send)
        if origin is not None:
            call = origin.name
            if origin.site is not None:
                place = f" at {shorten(origin.site.file)}:{origin.site.line}"
        said = f"dest={send.destination}, tag={send.tag}, {text.count(send.nbytes, 'byte')}"
        return f"{call}({said}){place}" if call else f"one with {said}"

    def _sent(self, send: Send) -> str:
        """The call that sent a message, if it is known."""
        origin = self.finder.started_by(send)
        if origin is None or origin.site is None:
            return ""
        return f" by {origin.name} at {shorten(origin.site.file)}:{origin.site.line}"

    def _source(self, receive: Receive, sources: list[int]) -> str:
        if receive.source == ANY:
            return "any rank"
        return f"rank {sources[receive.source]}"


def _counted(wait: Wait, collective: Collective, gone: Sequence[int]) -> str:
    """The number of the call in which a rank waits, and of those that other ranks have made."""
    communicator = collective.communicator
    sides = {id(one): one for one in (communicator, communicator.remote)}.values()
    counts = {
        side.made_by(side.rank_of(pid)) for side in sides for pid in gone if pid in side.group
    }
    if len(counts) != 1 or collective.number < 0:
        return ""
    number = ordinal_of(communicator, wait.pid, collective.number)
    who = "it" if len(gone) == 1 else "they"
    return f", call number {number}: {who} made {counts.pop() or 'none'}"


def _ended(who: str, wait: Wait) -> str:
    """The end of the program of a rank that waits for one of its threads."""
    error = wait.ended_by
    if error is None:
        how = "has reached its end"
    elif isinstance(error, SystemExit):
        how = "has called sys.exit"
    else:
        how = f"was ended by {type(error).__name__}"
    return f"the program of {who} {how}; Python then waits for thread {wait.joins}, no daemon"


def _place(wait: Wait) -> str:
    if wait.site is None:
        return ""
    return f" at {shorten(wait.site.file)}:{wait.site.line}"


def _calls(of: dict[int, Wait], pids: Iterable[int]) -> str:
    names = sorted({of[pid].call for pid in pids if pid in of})
    return " and ".join(names[:3])


def _is(pids: Sequence[int]) -> str:
    return "is" if len(pids) == 1 else "are"


def _has(pids: Sequence[int]) -> str:
    return "has" if len(pids) == 1 else "have"
