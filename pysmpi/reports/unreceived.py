"""The remark of a run that ended well on messages that no rank has received."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysmpi.kernel.matching import Mailbox
from pysmpi.kernel.requests import Context, Send
from pysmpi.mpi.base.ranks import Universe
from pysmpi.mpi.groups.communicator import PERSISTENT, Communicator
from pysmpi.reports.waiting import decode, describe_communicator, unmatched_sends

if TYPE_CHECKING:
    from pysmpi.ranks.simulation import Simulation


def unreceived(simulation: Simulation) -> str | None:
    """A remark on the messages of the program that nobody has received; None if there are none."""
    universe = simulation.universe
    left: list[tuple[Communicator, Send]] = []
    for number, communicator in universe.communicators.items():
        if communicator.kind != "window" and communicator.p2p.number == number:
            sends = unmatched_sends(communicator.p2p)
            left += [(communicator, send) for send in sends if send.payload is not None]
    if not left:
        return None if simulation.lost else _unreceived_parts(universe)
    communicator, send = left[0]
    target = send.context.members[send.destination].pid
    which = f"rank {communicator.remote.group[send.source]} to rank {target}"
    if len(left) == 1:
        said = f"1 message was never received: {which}, tag {send.tag}"
    else:
        said = f"{len(left):,} messages were never received, such as {which}, tag {send.tag}"
    return f"{said}; --check messages shows the line"


def _unreceived_parts(universe: Universe) -> str | None:
    """A remark on messages of collective calls that nobody has received; None if there are none.

    A root sends them to ranks that have given another root, or have not made the call.
    """
    for communicator in list(universe.communicators.values()):
        if communicator.revoked or communicator.kind == "window" or communicator.inter:
            continue
        private = PERSISTENT.peek(communicator) or {}
        contexts = [communicator.coll, *(entry.context for entry in private.values())]
        for context in contexts:
            send = _first_unmatched(context)
            if send is None:
                continue
            members = context.members
            sender, target = members[send.source].pid, members[send.destination].pid
            name = describe_communicator(universe.ranks[sender], communicator)
            return (
                f"rank {target} never received the data that rank {sender} sent it in a "
                f"collective call of {name} ({decode(send.tag)[1]}): their calls have different "
                "roots, or not all ranks made the call; --check collectives shows the lines"
            )
    return None


def _first_unmatched(context: Context) -> Send | None:
    """An unreceived message of a context, without a copy of the table of many ranks."""
    for box in context.mailboxes:
        if isinstance(box, Mailbox):
            waiting = box.waiting()
            if waiting:
                return waiting[0]
    return None
