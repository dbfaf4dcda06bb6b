"""The operations that start the requests of a recording."""

from __future__ import annotations

from typing import Any

from pysmpi.kernel.matching import is_wild
from pysmpi.kernel.requests import Envelope, KernelRequest, Receive, Send, Transfer
from pysmpi.trace.events import (
    JOIN,
    RECEIVE,
    SEND,
    TRANSFER,
    Format,
    Operation,
    TracedCall,
    TracedMatch,
)
from pysmpi.trace.recorded_world import RecordedWorld

UNLIMITED = 1 << 62  # bytes of the buffer of a receive of any size


class StartedRequests:
    """Requests whose parts are still to start, and receives whose messages are not known."""

    def __init__(self, format: Format, world: RecordedWorld) -> None:
        self.world: RecordedWorld = world
        # Parts of joint requests that are not started: the number of the first part, if it is, and
        # the number of those that are still to start.
        self._joint: dict[KernelRequest, list[int]] = {}
        self._wild: set[KernelRequest] = set()  # receives with wildcards that have no message yet
        self._match: Any = getattr(format, "match", None)

    def join(self, parts: list[KernelRequest]) -> None:
        """A request consists of parts, which are started one by one."""
        joint = [0, len(parts)]
        for part in parts:
            self._joint[part] = joint

    def match(self, send: Send, receive: Receive) -> None:
        """A receive has got its message."""
        if receive in self._wild:
            self._wild.discard(receive)
            self._match(TracedMatch(receive.order, send.source, send.tag, send.nbytes))

    def forget(self, request: KernelRequest) -> None:
        """A request is complete, perhaps without a message."""
        self._wild.discard(request)

    def start(
        self, record: TracedCall, request: KernelRequest, operations: list[Operation]
    ) -> None:
        """Add the operations that start a request."""
        operations.append(self._started(record, request))
        joint = self._joint.pop(request, None) if self._joint else None
        if joint is not None:
            first = joint[0] or request.order
            joint[0] = first
            joint[1] -= 1
            operations.append((JOIN, request.order, first, joint[1]))

    def _started(self, record: TracedCall, request: KernelRequest) -> Operation:
        """The operation that starts a request."""
        assert isinstance(request, Envelope)
        context = request.context
        self.world.enter(record, context)
        if isinstance(request, Transfer):
            return (TRANSFER, request.order, context.number, request.source, request.destination,
                    request.nbytes)  # fmt: skip
        if isinstance(request, Send):
            return (SEND, request.order, context.number, request.source, request.destination,
                    request.tag, request.nbytes, request.mode, request.immediate)  # fmt: skip
        receive = request
        assert isinstance(receive, Receive)
        operation: Operation = (
            RECEIVE, receive.order, context.number, receive.source, receive.destination,
            receive.tag, receive.nbytes,
        )  # fmt: skip
        wild = is_wild(receive)
        if wild or receive.nbytes >= UNLIMITED:
            message = receive.message
            if message is not None:
                operation += message.source, message.tag, message.nbytes
            elif wild and self._match is not None:
                self._wild.add(receive)
        return operation
