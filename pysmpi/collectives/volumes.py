"""The bytes that the ranks of a collective send, receive, combine and move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pysmpi.collectives.order import pieces_of
from pysmpi.kernel.schedule import (
    AREA,
    COPY,
    IRECV,
    ISEND,
    MOVE,
    NOTHING,
    RECEIVE_BUFFER,
    RECV,
    REDUCE,
    SCRATCH,
    SEND,
    SEND_BUFFER,
    SHARE,
    UNNAMED,
    Schedule,
)

SENDS = frozenset((SEND, ISEND, SHARE))
RECEIVES = frozenset((RECV, IRECV))


@dataclass(frozen=True, slots=True)
class Volume:
    """Bytes of data; signals and headers do not count. `moved` is within the memory of a rank."""

    sent: int
    received: int
    combined: int
    moved: int

    def as_dict(self) -> dict[str, int]:
        """For JSON."""
        return {"sent": self.sent, "received": self.received, "combined": self.combined,
                "moved": self.moved}  # fmt: skip


def volume_of(schedule: Schedule) -> Volume:
    """The work of one rank in a named schedule."""
    sent = received = combined = moved = 0
    for code, peer, nbytes, place in zip(
        schedule.codes, schedule.peers, schedule.sizes, schedule.places or (), strict=True
    ):
        if code in SENDS:
            sent += nbytes if place != NOTHING else 0
        elif code in RECEIVES:
            received += nbytes if place != NOTHING else 0
        elif code == REDUCE:
            assert isinstance(place, tuple)
            combined += int(schedule.amounts[peer]) if place[2] != NOTHING else 0
        elif code in (COPY, MOVE):
            assert isinstance(place, tuple)
            if place[0] != place[1]:
                moved += nbytes if code == MOVE else int(schedule.amounts[peer])
    return Volume(sent, received, combined, moved)


def most_of(schedules: Sequence[Schedule]) -> Volume:
    """The largest of each of the volumes of all ranks, perhaps of different ranks."""
    volumes = [volume_of(schedule) for schedule in schedules]
    return Volume(
        max((one.sent for one in volumes), default=0),
        max((one.received for one in volumes), default=0),
        max((one.combined for one in volumes), default=0),
        max((one.moved for one in volumes), default=0),
    )


def describe(place: object, nbytes: int) -> str:
    """A place for people: `bytes 512 to 1023 of the receive buffer`."""
    if nbytes == 0 or place == NOTHING:
        return "no data"
    if place is None or place == UNNAMED:
        return "bytes that the algorithm does not name"
    pieces = [piece for piece in pieces_of(place, nbytes, "") if piece[1]]
    if len(pieces) > 1:
        return f"{describe(*pieces[0])} and {len(pieces) - 1} more pieces"
    address, nbytes = pieces[0]
    buffer, first = divmod(address, AREA)
    names = {SEND_BUFFER // AREA: "the send buffer", RECEIVE_BUFFER // AREA: "the receive buffer"}
    name = names.get(buffer, f"scratch memory {buffer - SCRATCH // AREA}")
    return f"bytes {first} to {first + nbytes - 1} of {name}"
