"""Checks of the operations of a recording, which may be damaged."""

from __future__ import annotations

from pysmpi.kernel.matching import ANY
from pysmpi.kernel.requests import Context
from pysmpi.kernel.schedule import (
    COMPUTE,
    COPY,
    IRECV,
    ISEND,
    RECV,
    REDUCE,
    SEND,
    SHARE,
    SLEEP,
    WAIT,
    WAITALL,
    Schedule,
)
from pysmpi.trace.recorded_lines import Wrong

_MESSAGES = frozenset((SEND, ISEND, RECV, IRECV, SHARE))
_AMOUNTS = frozenset((SLEEP, REDUCE, COPY, COMPUTE))


def check_message(context: Context, peer: int, tag: int, nbytes: int) -> None:
    """Refuse a message that cannot be sent in a context."""
    if type(peer) is not int or not (0 <= peer < len(context.members) or peer == ANY):
        raise Wrong(f"expected one of {len(context.members)} ranks of a communicator, got {peer!r}")
    if type(tag) is not int or not (0 <= tag < 1 << 32 or tag == ANY):
        raise Wrong(f"found tag {tag!r}")
    if type(nbytes) is not int or not 0 <= nbytes < 1 << 63:
        raise Wrong(f"impossible size of a message: {nbytes!r} bytes")


def check_tag(tag: object) -> None:
    """Refuse the tag of a call that has messages with it."""
    if type(tag) is not int or not 0 <= tag < 1 << 31:
        raise Wrong(f"found tag {tag!r}")


def check_steps(schedule: Schedule, size: int) -> None:
    """Refuse a schedule that cannot be executed on a communicator of `size` ranks."""
    codes, peers, sizes, tags = schedule.codes, schedule.peers, schedule.sizes, schedule.tags
    amounts = schedule.amounts
    if not all(isinstance(column, list) for column in (codes, peers, sizes, tags, amounts)):
        raise Wrong("found steps that are no columns")
    if not len(codes) == len(peers) == len(sizes) == len(tags):
        raise Wrong("found columns of different lengths")
    slots = 0
    for step in zip(codes, peers, sizes, tags):
        if not all(type(value) is int for value in step):
            raise Wrong(f"found step {step!r}")
        code, peer, nbytes, tag = step
        if code in _MESSAGES:
            valid = 0 <= peer < size and 0 <= nbytes < 1 << 63 and 0 <= tag < 1 << 31
            slots += code in (ISEND, IRECV)
        elif code in (WAIT, WAITALL):
            valid = 0 <= peer <= nbytes <= slots
        else:
            valid = code in _AMOUNTS and 0 <= peer < len(amounts)
        if not valid:
            raise Wrong(f"found step {step!r}")
    for amount in amounts:
        if type(amount) not in (int, float) or not 0.0 <= amount < float("inf"):
            raise Wrong(f"found amount {amount!r}")
