"""Messages: their datatypes, their sizes, objects against buffers, missing receives."""

from __future__ import annotations

from pysmpi import text
from pysmpi.checkers import array_orders, signatures
from pysmpi.checkers.base import Checker
from pysmpi.checkers.describing import place, places
from pysmpi.checkers.descriptions import misdescribed, too_small
from pysmpi.checkers.problems.messages import (
    NotContiguous,
    ObjectAndBuffer,
    TypesDiffer,
    Unreceived,
)
from pysmpi.checkers.registry import checker
from pysmpi.checkers.signatures import Signature
from pysmpi.diagnostics import Truncated
from pysmpi.kernel.matching import mailbox_at
from pysmpi.kernel.requests import AbstractProcess, KernelRequest, Receive, Send, Transfer
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure, Role
from pysmpi.mpi.datatypes.records import Type
from pysmpi.mpi.point_to_point.envelopes import ObjectBuffer
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place
from pysmpi.reports.waiting import unmatched_sends

# Calls that send a copy of their buffer, which has no datatype any more.
_REPLACING = frozenset(("Sendrecv_replace", "Isendrecv_replace"))
_CANCELS = frozenset(("Cancel", "cancel"))
_OBJECTS_AS_BYTES = frozenset(("bytes",))


class SentMessage:
    """A message that has started: its call, and its types; None for an object."""

    __slots__ = ("call", "prepared", "record", "count", "object")

    def __init__(self, call: MpiCall, prepared: MpiCall, payload: object) -> None:
        self.call = call
        self.prepared = prepared  # the call that prepared it, if it is persistent
        self.record: Type | None = None  # its datatype
        self.count = 0
        if isinstance(payload, MessageRegion):
            self.record = payload.datatype._impl
            self.count = payload.count
            self.object = False
        else:
            self.object = call.name not in _REPLACING

    @property
    def signature(self) -> Signature | None:
        """The types of its elements."""
        return None if self.record is None else signatures.of_type(self.record, self.count)


class MessageChecks(Checker):
    """Compares both sides of every point-to-point message."""

    def __init__(self) -> None:
        self.pending: dict[Send, SentMessage] = {}
        self.failures: list[tuple[BaseException, Finding]] = []
        self.described: set[tuple[int, object, str]] = set()

    def concerns(self, event: str, procedure: Procedure) -> bool:
        """Calls with buffers, the ends of messages, and all errors."""
        if event == "call_made":
            named = procedure.kind is not CallKind.LOCAL and procedure.name[0].isupper()
            return named and Role.BUFFER in procedure.places
        return event != "call_returned" or procedure.name in _CANCELS

    def call_made(self, call: MpiCall) -> None:
        """Compare the datatypes of a call with its arrays."""
        values = call.values
        for i, name in call.procedure.places.get(Role.BUFFER, ()):
            spec = values[i] if i < len(values) else None
            if not isinstance(spec, (list, tuple)):
                continue
            wrong = misdescribed(spec)
            if wrong is None and "ecv" in call.name and name in ("buf", "recvbuf"):
                sizes = too_small(spec, call.arguments.get("source"))
                if sizes is not None and call.kind is CallKind.POINT_TO_POINT:
                    wrong = f"{text.count(sizes[0], 'byte')} of a buffer of {sizes[1]:,}"
            key = call.rank.pid, call.site, wrong or ""
            if wrong is not None and key not in self.described:
                self.described.add(key)
                self.session.report(
                    Finding(
                        TypesDiffer,
                        f"{call.name}({name}): {wrong}",
                        [place(call)],
                        "MPI 4.1, sections 3.3.1 and 3.2.4: the datatype and the count of a call "
                        "are those of the elements of its buffer",
                        "leave out the datatype and the count, or give those of the array",
                    )
                )

    def request_started(self, request: KernelRequest, process: AbstractProcess, now: float) -> None:
        """A message begins."""
        if isinstance(request, Send) and not isinstance(request, Transfer):
            call = self.session.call_on(process)
            if call is not None and call.kind is CallKind.POINT_TO_POINT:
                if request.payload is not None and self.session.of_program(request):
                    prepared = self.session.prepared_by(call, request)
                    self.pending[request] = SentMessage(call, prepared, request.payload)

    def message_matched(self, send: Send, receive: Receive, now: float) -> None:
        """A message has its receive."""
        message = self.pending.pop(send, None)
        if message is None:
            return
        call = self.session.starts.get(receive)
        if call is None:
            call = self.session.call_on(receive.context.members[receive.destination])
        if call is None:
            return
        target = receive.payload
        takes_object = isinstance(target, ObjectBuffer)
        if (
            takes_object != message.object
            and call.name not in _REPLACING
            and (target is not None and message.call.name not in _REPLACING)
        ):
            other = message.signature if takes_object else signatures.of_message(target)
            if other is not None and set(other) - _OBJECTS_AS_BYTES:
                self._mixed(message, call, receive)
                return
        if send.nbytes > receive.nbytes:
            self.session.report(_truncated(send, receive, self._sides(call, receive, message)))
            return
        if not takes_object and message.record is not None and message.count:
            self._compare_types(message, receive, call, target)
            self._compare_orders(message.prepared, self.session.prepared_by(call, receive))

    def _compare_types(
        self, message: SentMessage, receive: Receive, call: MpiCall, target: object
    ) -> None:
        record = message.record
        if isinstance(target, MessageRegion) and target.datatype._impl is record:
            return
        if record is not None:
            expected = signatures.of_message(target)
            sent = signatures.of_type(record, message.count)
            if expected is not None and not signatures.fits(sent, expected):
                self.session.report(
                    Finding(
                        TypesDiffer,
                        f"{signatures.text(sent)} sent, {signatures.text(expected)} expected",
                        self._sides(call, receive, message),
                        "MPI 4.1, section 3.3.1: sender and receiver use the same datatypes",
                        "give both buffers the same dtype or MPI datatype",
                    )
                )

    def _compare_orders(self, sending: MpiCall, receiving: MpiCall) -> None:
        """Compare the orders of the elements of two arrays."""
        sent = array_orders.order_of(_buffer(sending, "sendbuf"))
        if sent is None:
            return
        received = array_orders.order_of(_buffer(receiving, "recvbuf"))
        if received is not None and array_orders.differ(sent, received):
            self.session.report(
                array_orders.finding(
                    array_orders.ArrayInCall(sending, sent, False),
                    array_orders.ArrayInCall(receiving, received, True),
                )
            )

    def _sides(self, call: MpiCall, receive: Receive, message: SentMessage) -> list[Place]:
        prepared = self.session.prepared_by(call, receive)
        return [
            *places(call, prepared, "received here"),
            *places(message.call, message.prepared, "sent here"),
        ]

    def _mixed(self, message: SentMessage, call: MpiCall, receive: Receive) -> None:
        sent, received = ("a pickled object", "a buffer") if message.object else (
            "a buffer", "a pickled object"
        )  # fmt: skip
        self.session.report(
            Finding(
                ObjectAndBuffer,
                f"{message.call.name} sends {sent}, {call.name} receives {received}",
                self._sides(call, receive, message),
                "mpi4py: lower-case calls communicate pickled objects, upper-case calls buffers; "
                "MPI 4.1, section 3.3.1: both sides use the same datatypes",
                "use the lower-case call on both sides, or the upper-case call on both",
            )
        )

    def call_returned(self, call: MpiCall, result: object) -> None:
        """A cancelled message will not be received."""
        if call.name in _CANCELS:
            for operation in call.operations:
                if getattr(operation, "cancelled", False):
                    self.pending.pop(operation.request, None)

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """A call refuses an array."""
        if isinstance(error, BufferError | ValueError) and "contiguous" in str(error):
            self.failures.append((error, Finding(
                NotContiguous,
                f"{call.name} got an array whose elements are not next to each other",
                [place(call)],
                "mpi4py: a buffer is contiguous; MPI describes other layouts by datatypes "
                "(MPI 4.1, section 5.1)",
                "send a copy (numpy.ascontiguousarray), or describe the elements by a datatype",
            )))  # fmt: skip

    def finish(self, simulation: Simulation) -> None:
        """Report the messages that are left."""
        errors = {id(outcome.error) for outcome in simulation.outcomes}
        for error, finding in self.failures:
            if id(error) in errors:
                self.session.report(finding)
        if not self.session.clean and not self.session.deadlocked:
            return
        for send, message in self.pending.items():
            if not self.session.clean:
                # In a deadlock, a message that its sender has left behind may be its cause.
                outcome = simulation.outcomes[message.call.rank.pid]
                if outcome.state is not RankState.FINISHED:
                    continue
            left = mailbox_at(send.context, send.destination)
            waits = left is not None and send in list(unmatched_sends(send.context))
            if not waits and send.done and not send.detached:
                continue  # withdrawn
            target = send.context.members[send.destination].pid
            what = (
                f"rank {target} does not receive it"
                if waits
                else (f"rank {target} found it with Mprobe, and never received it")
            )
            self.session.report(
                Finding(
                    Unreceived,
                    f"{text.count(send.nbytes, 'byte')} to rank {target} with tag {send.tag}: "
                    f"{what}",
                    places(message.call, message.prepared, "sent here"),
                    "MPI 4.1, sections 3.5 and 11.2.2: every message is received before "
                    "MPI_Finalize",
                    "receive the message, or do not send it",
                )  # fmt: skip
            )


def _buffer(call: MpiCall, name: str) -> object:
    """The buffer of a call on one side: the argument of a name, or `buf`."""
    parameters = call.procedure.parameters
    for wanted in (name, "buf"):
        if wanted in parameters:
            i = parameters.index(wanted)
            return call.values[i] if i < len(call.values) else None
    return None


def _truncated(send: Send, receive: Receive, sides: list[Place]) -> Finding:
    return Finding(
        Truncated,
        f"{text.count(send.nbytes, 'byte')} sent, room for {text.count(receive.nbytes, 'byte')}",
        sides,
        "MPI 4.1, section 3.2.4: the receive buffer holds the whole message",
        "make the buffer as large as the largest message that may match",
    )


checker("messages", "datatypes, sizes and kinds of messages; messages that nobody receives")(
    MessageChecks
)
