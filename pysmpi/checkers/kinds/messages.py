"""Messages: their datatypes, their sizes, objects against buffers, missing receives."""

from __future__ import annotations

from pysmpi import text
from pysmpi.checkers import array_orders, signatures
from pysmpi.checkers.describing import place, places
from pysmpi.checkers.descriptions import misdescribed, too_small
from pysmpi.checkers.registry import Checker, checker
from pysmpi.checkers.signatures import Signature
from pysmpi.diagnostics import Diagnostic, Truncated, register
from pysmpi.kernel.matching import mailbox_at
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive, Send, Transfer
from pysmpi.mpi.buffers.spellings import MessageRegion
from pysmpi.mpi.calls import CallKind, MpiCall, Role
from pysmpi.mpi.point_to_point.envelopes import ObjectBuffer
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place
from pysmpi.reports.waiting import unmatched_sends


@register
class TypesDiffer(Diagnostic):
    """A message was sent with one datatype and received with another.

    The report has the lines of both sides and the basic types of each. Types with the same
    representation are equal, such as `MPI.LONG` and `MPI.INT64_T`, and so are all types of one
    byte.

    Also a call whose datatype does not describe its array: `[array, MPI.FLOAT]` for an array of
    integers, a structured array whose fields are elsewhere, or a receive of more elements than its
    array has. Bytes may be described as anything, and complex numbers as pairs of real ones.

    ## Why it is bad

    MPI does not convert numbers: the receiver gets the bytes of another type, so its numbers are
    wrong. No library reports it. Where the sizes of the types differ, the count is wrong, too.

    ## Example

    ```python
    if comm.rank == 0:
        comm.Send(numpy.ones(4, "f8"), dest=1)
    else:
        comm.Recv(numpy.empty(4, "i8"), source=0)
    ```

    ## What to do

    Give both buffers the same `dtype`, or the same MPI datatype. To send plain bytes, use
    `MPI.BYTE` on both sides.

    ## References

    MPI 4.1, section 3.3.1 (type matching rules).
    """

    code = "PSM113"
    title = "datatypes differ"


@register
class Unreceived(Diagnostic):
    """A message was sent, and the program ended without receiving it.

    ## Why it is bad

    The receiver misses data, or the sender sends too much. The program ends only because the
    library buffered the message: with a larger message, or another library, the sender waits for
    ever. In a long program the buffers grow.

    ## Example

    ```python
    if comm.rank == 0:
        comm.send("done", dest=1, tag=2)  # rank 1 never receives tag 2
    ```

    ## What to do

    Receive the message, or do not send it. Look for loops whose counts differ between the ranks,
    and for tags that differ.

    ## References

    MPI 4.1, sections 3.5 (semantics of point-to-point communication) and 11.2.2: every message must
    be received before `MPI_Finalize`.
    """

    code = "PSM114"
    title = "message never received"


@register
class ObjectAndBuffer(Diagnostic):
    """A message of a lower-case call met a call with a buffer, or the other way round.

    Lower-case calls of mpi4py (`send`, `recv`, `isend`, ...) send pickled Python objects.
    Upper-case calls (`Send`, `Recv`, ...) send the bytes of a buffer.

    ## Why it is bad

    The receiver gets the bytes of a pickle in its array, or tries to unpickle the bytes of an
    array.

    ## Example

    ```python
    if comm.rank == 0:
        comm.send(numpy.ones(4), dest=1)
    else:
        comm.Recv(data, source=0)
    ```

    ## What to do

    Use `send` with `recv`, and `Send` with `Recv`; the same holds for `bcast` and `Bcast` and the
    other collective calls.

    ## References

    The tutorial of mpi4py; MPI 4.1, section 3.3.1 (type matching rules).
    """

    code = "PSM126"
    title = "object met buffer"


@register
class NotContiguous(Diagnostic):
    """A call got an array whose elements are not next to each other in memory.

    ## Why it is bad

    mpi4py refuses such a buffer with an exception: a column of a matrix and `array[::2]` are not
    contiguous.

    ## Example

    ```python
    comm.Send(matrix[:, 0], dest=1)
    ```

    ## What to do

    Send a copy (`numpy.ascontiguousarray(matrix[:, 0])`), or describe the elements by a datatype:
    `column = MPI.DOUBLE.Create_vector(rows, 1, columns).Commit()`. To receive, use a contiguous
    buffer and copy it into the array.

    ## References

    MPI 4.1, section 5.1 (derived datatypes); the tutorial of mpi4py.
    """

    code = "PSM127"
    title = "buffer not contiguous"


# Calls that send a copy of their buffer, which has no datatype any more.
_REPLACING = frozenset(("Sendrecv_replace", "Isendrecv_replace"))
_OBJECTS_AS_BYTES = frozenset(("bytes",))


class SentMessage:
    """A message that has started: its call, and its types; None for an object."""

    __slots__ = ("call", "prepared", "signature", "object")

    def __init__(self, call: MpiCall, prepared: MpiCall, payload: object) -> None:
        self.call = call
        self.prepared = prepared  # the call that prepared it, if it is persistent
        self.signature: Signature | None = signatures.of_message(payload)
        self.object = (
            self.signature is None
            and call.name not in _REPLACING
            and (not isinstance(payload, MessageRegion))
        )


@checker("messages", "datatypes, sizes and kinds of messages; messages that nobody receives")
class MessageChecks(Checker):
    """Compares both sides of every point-to-point message."""

    def __init__(self) -> None:
        self.pending: dict[Send, SentMessage] = {}
        self.failures: list[tuple[BaseException, Finding]] = []
        self.described: set[tuple[int, object, str]] = set()

    def begin(self, simulation: Simulation) -> None:
        """Remember the communicators of the run."""
        self.universe = simulation.universe

    def _of_program(self, send: Send | Receive) -> bool:
        communicator = self.universe.communicators.get(send.context.number)
        return (
            communicator is not None
            and communicator.kind != "window"
            and communicator.coll is not send.context
        )

    def call_made(self, call: MpiCall) -> None:
        """Compare the datatypes of a call with its arrays."""
        if call.kind is CallKind.LOCAL or not call.name[0].isupper():
            return
        for name, spec in call.having(Role.BUFFER).items():
            if not isinstance(spec, list | tuple):
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

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """A message begins."""
        if isinstance(request, Send) and not isinstance(request, Transfer):
            call = self.session.call_on(process)
            if call is not None and call.kind is CallKind.POINT_TO_POINT:
                if self._of_program(request) and request.payload is not None:
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
        if message.signature and not takes_object:
            expected = signatures.of_message(target)
            if expected is not None and not signatures.fits(message.signature, expected):
                self.session.report(
                    Finding(
                        TypesDiffer,
                        f"{signatures.text(message.signature)} sent, "
                        f"{signatures.text(expected)} expected",
                        self._sides(call, receive, message),
                        "MPI 4.1, section 3.3.1: sender and receiver use the same datatypes",
                        "give both buffers the same dtype or MPI datatype",
                    )
                )
            self._compare_orders(message.prepared, self.session.prepared_by(call, receive))

    def _compare_orders(self, sending: MpiCall, receiving: MpiCall) -> None:
        """Compare the orders of the elements of two arrays."""
        names = sending.arguments
        sent = array_orders.order_of(names.get("sendbuf", names.get("buf")))
        names = receiving.arguments
        received = array_orders.order_of(names.get("recvbuf", names.get("buf")))
        if sent is not None and received is not None and array_orders.differ(sent, received):
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
        if call.name in ("Cancel", "cancel"):
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


def _truncated(send: Send, receive: Receive, sides: list[Place]) -> Finding:
    return Finding(
        Truncated,
        f"{text.count(send.nbytes, 'byte')} sent, room for {text.count(receive.nbytes, 'byte')}",
        sides,
        "MPI 4.1, section 3.2.4: the receive buffer holds the whole message",
        "make the buffer as large as the largest message that may match",
    )
