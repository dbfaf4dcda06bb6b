"""The waits of ranks: the MPI call, the line of the program, the missing messages.

None of this is recorded while a program runs. It is read from the suspended greenlets, the kernel's
requests and the communicators when it is needed, which may take time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pysmpi import text
from pysmpi.isolation.program_errors import error_site
from pysmpi.kernel.matching import ANY, mailbox_at, mailboxes_of
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, Envelope, KernelRequest, Receive, Send
from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG
from pysmpi.mpi.base.ranks import Fiber, Rank, Universe
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import MpiCall, Role, call_of
from pysmpi.mpi.communicators.comm import LOCALS, Comm, local
from pysmpi.mpi.groups import agreement
from pysmpi.mpi.groups.communicator import Communicator, PredefinedCommunicator
from pysmpi.mpi.point_to_point.operations import PairOperation, RequestOperation
from pysmpi.mpi.point_to_point.partitioned import Partitioned, PartitionedSend
from pysmpi.mpi.rma.epochs import POSTED
from pysmpi.mpi.rma.locks import LockClaim
from pysmpi.python.frames import CallSite, innermost_call, is_suspended, shorten
from pysmpi.python.records import record

if TYPE_CHECKING:
    from pysmpi.ranks.simulation import Simulation

# A larger capacity means a receive that accepts any size.
_UNLIMITED = 1 << 60
_SENDS = frozenset("Send Ssend Rsend Bsend send ssend bsend".split())
_RECEIVES = frozenset("Recv recv Probe probe Mprobe mprobe".split())


@record
class Piece:
    """One operation that a rank waits for, such as `Irecv(source=0, tag=7)`.

    `pids` are the processes that could end the wait: all of them must act, or, if `any` is set, one
    of them.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    nbytes: int | None = None
    request: KernelRequest | None = None
    communicator: Communicator | None = None
    pids: frozenset[int] = frozenset()
    any: bool = False
    operation: RequestOperation | None = None
    act: str = ""  # what the others must do, if it is not to send or to receive
    site: CallSite | None = None  # where it was started, if that is known
    prepared: CallSite | None = None  # where it was made, if it is persistent


@record
class Collective:
    """The collective call that a rank is in: the `number`-th of its communicator.

    `peers` are the processes whose messages its algorithm currently waits for.
    """

    communicator: Communicator
    number: int
    operation: str
    peers: frozenset[int]


@record
class Wait:
    """One thread of a rank that waits.

    `call` is the program's call, `site` its place; `comm` names the communicator.
    """

    rank: Rank
    call: str
    site: CallSite | None
    comm: str = ""
    communicator: Communicator | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)
    collective: Collective | None = None
    thread: int = 0
    thread_name: str = ""
    own: bool = False  # whether only another thread of the rank could end it
    beats: bool = False  # whether it only lets time pass
    spins: bool = False  # whether it polls memory
    joins: str = ""  # the thread that the rank waits for at its end
    ended_by: BaseException | None = None  # its program, then
    made: MpiCall | None = None

    @property
    def pid(self) -> int:
        """The number of the rank among all of the run."""
        return self.rank.pid


class RequestOrigins:
    """Says which calls have started requests of the kernel; this one knows none of them."""

    def started_by(self, request: KernelRequest) -> MpiCall | None:
        """The call that started a request; None if this is not known."""
        return None

    def prepared_by(self, call: MpiCall, request: KernelRequest | None) -> MpiCall:
        """The call that made a persistent request which `call` starts; for others `call` itself."""
        return call


# Checkers that follow a run put theirs here.
ORIGINS: StateSlot[Universe, RequestOrigins] = StateSlot(Universe)


class WaitFinder:
    """The communicators of a simulation, and the waits of its suspended threads."""

    def __init__(self, simulation: Simulation) -> None:
        self.universe = simulation.universe
        origins = ORIGINS.peek(self.universe) or RequestOrigins()
        self.started_by, self.prepared_by = origins.started_by, origins.prepared_by
        self._threads = simulation.threads
        self._beating = simulation.beating
        self._spinning = simulation.spinning
        self.by_context: dict[int, Communicator] = dict(self.universe.communicators)
        self.by_purpose: dict[int, Communicator] = dict(self.universe.purposes)
        self.communicators = sorted(
            set(self.by_context.values()), key=lambda communicator: communicator.p2p.number
        )

    def communicator_of(self, context: Context | None) -> Communicator | None:
        """The communicator that a context belongs to; None for contexts of MPI's own."""
        return None if context is None else self.by_context.get(context.number)

    def user_of(self, context: Context | None, pid: int) -> Communicator | None:
        """The communicator for whose calls a context exists, as a process sees it."""
        if context is None:
            return None
        result = self.by_context.get(context.number) or self.by_purpose.get(context.number)
        return result.remote if result is not None and pid not in result.group else result

    def sources(self, context: Context) -> list[int]:
        """The processes whose messages arrive in a context, by rank."""
        return [member.pid for member in (context.peer or context).members]

    def waits(self, rank: Rank) -> list[Wait]:
        """The waits of the threads of a rank; its main thread first."""
        fibers = [] if rank.fiber is None else [rank.fiber]
        fibers += self._threads.get(rank.pid, ())
        return [
            self._wait(rank, fiber, number)
            for number, fiber in enumerate(fibers)
            if is_suspended(fiber)
        ]

    def _wait(self, rank: Rank, fiber: Fiber, thread: int) -> Wait:
        call = call_of(fiber)
        if call is None:
            name, site = innermost_call(fiber.waiting or fiber)
            wait = Wait(rank, name, site, thread=thread)
            operations: list[RequestOperation] = []
            handle = None
        else:
            wait = Wait(rank, call.name, call.site, thread=thread, made=call)
            operations = [op for op in call.operations if isinstance(op, RequestOperation)]
            handle = next(
                (one for one in call.having(Role.COMMUNICATOR).values() if isinstance(one, Comm)),
                None,
            )
        wait.own = fiber.gate is not None
        wait.beats = fiber.process in self._beating
        if fiber in self._spinning:
            wait.call, wait.spins, wait.own = "a loop that polls memory", True, False
        wait.thread_name = name_of_thread(fiber) if thread else ""
        main: Any = getattr(rank.program, "main_thread", None)
        joined = None if thread or main is None else getattr(main, "joins", None)
        if joined is not None:
            wait.joins, wait.ended_by = joined.name, main.ended_by
            wait.site = None if wait.ended_by is None else error_site(wait.ended_by)
        process = fiber.process
        pending: list[KernelRequest] = list(process.pending())
        if call is not None and _tests(call.name):
            pending = [op.request for op in operations if op.request and not op.request.done]
            for name, value in (call.having(Role.PEER) | call.having(Role.TAG)).items():
                if isinstance(value, int):
                    wait.arguments[name] = _WILDCARDS.get((name, int(value)), value)
        if process.schedule is not None and process.context is not None:
            communicator = self.user_of(process.context, rank.pid)
            wait.collective = self._collective(communicator, process, pending, rank.pid)
            if wait.collective is None:
                wait.pieces = [self._piece(request, wait.call) for request in pending]
        else:
            for request in pending:
                operation = next((op for op in operations if op.request is request), None)
                if isinstance(operation, PairOperation):
                    for half in (operation.send, operation.receive):
                        if half is not None and not half.done:
                            wait.pieces.append(self._piece(half, wait.call))
                    continue
                wait.pieces.append(self._piece(request, wait.call, operation))
                subject = getattr(operation, "subject", None)
                if handle is None and isinstance(subject, Comm):
                    handle = subject
            begun = [
                getattr(op, "contribution", None) for op in operations if op.request in pending
            ]
            if wait.pieces and begun and begun[0] is not None and len(wait.pieces) == 1:
                own = begun[0]
                if own.number >= 0:
                    wait.collective = Collective(
                        own.communicator, own.number, own.label, frozenset()
                    )
            elif len(pending) == 1:
                wait.collective = self._agreement(pending[0], rank.pid)
        if handle is not None:
            wait.communicator, wait.comm = name_comm(rank, handle)
        else:
            communicators = [
                piece.communicator for piece in wait.pieces if piece.communicator is not None
            ]
            if communicators:
                wait.communicator, wait.comm = (
                    communicators[0],
                    describe_communicator(rank, communicators[0]),
                )
        if call is not None and wait.communicator is not None:
            for root in call.having(Role.ROOT).values():
                if isinstance(root, int):
                    wait.arguments["root"] = root
        return wait

    def _agreement(self, request: KernelRequest, pid: int) -> Collective | None:
        """The collective call behind a request, whose messages another process executes."""
        follower = request.payload
        if isinstance(follower, KernelRequest):
            follower = follower.payload
        if not isinstance(follower, Process):
            return None
        communicator = self.user_of(follower.context, pid)
        return self._collective(communicator, follower, list(follower.pending()), pid)

    def _collective(
        self,
        communicator: Communicator | None,
        process: Process,
        pending: list[KernelRequest],
        pid: int,
    ) -> Collective | None:
        """The collective call whose schedule a process executes."""
        if communicator is None or pid not in communicator.group:
            return None
        number, operation = decode(process.tag)
        # Tags hold the low bits of the number; the rank has begun no later call than this.
        latest = max(communicator.begun(communicator.rank_of(pid)), 1) - 1
        number = latest - (latest - number) % agreement._CALLS
        peers: set[int] = set()
        for request in pending:
            if isinstance(request, Send):
                peers.add(request.context.members[request.destination].pid)
            elif isinstance(request, Receive) and request.source != ANY:
                peers.add(self.sources(request.context)[request.source])
        return Collective(communicator, number, operation, frozenset(peers))

    def _piece(
        self, request: KernelRequest, call: str, operation: RequestOperation | None = None
    ) -> Piece:
        piece = self._kind_of(request, call, operation)
        made = self.started_by(request)
        if made is not None and _waits(call):
            piece.name, piece.site = made.name, made.site
            prepared = self.prepared_by(made, request)
            if prepared is not made:
                piece.name, piece.prepared = prepared.name, prepared.site
            for root in made.having(Role.ROOT).values():
                if isinstance(root, int):
                    piece.arguments["root"] = root
        return piece

    def _kind_of(
        self, request: KernelRequest, call: str, operation: RequestOperation | None = None
    ) -> Piece:
        if isinstance(request, Send | Receive) and (
            request.context.number not in self.by_context
            or self.by_context[request.context.number].p2p.number != request.context.number
            or self.by_context[request.context.number].kind == "window"
        ):
            return self._internal(request)
        if isinstance(request, Send):
            name = call if call in _SENDS else "Isend" if _waits(call) else "send"
            context = request.context
            return Piece(
                name,
                {"dest": request.destination, "tag": request.tag},
                request.nbytes,
                request,
                self.communicator_of(context),
                frozenset({context.members[request.destination].pid}),
            )
        if isinstance(request, Receive):
            name = call if call in _RECEIVES else "Irecv" if _waits(call) else "receive"
            sources = self.sources(request.context)
            wild = request.source == ANY
            awaited = sources if wild else [sources[request.source]]
            return Piece(
                name,
                {
                    "source": "ANY_SOURCE" if wild else request.source,
                    "tag": "ANY_TAG" if request.tag == ANY else request.tag,
                },
                request.nbytes if 0 < request.nbytes < _UNLIMITED else None,
                request,
                self.communicator_of(request.context),
                frozenset(awaited),
                wild,
            )
        if isinstance(request.payload, LockClaim):
            return _lock(request, request.payload)
        own = getattr(operation, "contribution", None)
        if own is not None:
            name = f"I{own.call.op}"
            if operation is not None and operation.persistent:
                name = f"{own.call.op.capitalize()}_init"
            return Piece(name, request=request, communicator=own.communicator, operation=operation)
        if isinstance(operation, Partitioned):
            sends = isinstance(operation, PartitionedSend)
            return Piece(
                "Psend" if sends else "Precv",
                {"dest" if sends else "source": operation.peer, "tag": operation.tag},
                operation.nbytes,
                request,
                operation.communicator,
                frozenset({operation.communicator.remote.group[operation.peer]}),
                operation=operation,
            )
        agreed = self._agreement(request, -1 if operation is None else operation.rank.pid)
        if agreed is not None:
            return Piece(public(agreed.operation), request=request)
        if operation is not None:
            return Piece(type(operation).__name__.removesuffix("Operation"), request=request)
        return Piece("", request=request)

    def _internal(self, request: Send | Receive) -> Piece:
        """A message of MPI's own: the call of the peer that it comes from or goes to."""
        sends = isinstance(request, Send)
        context = request.context
        user = self.by_context.get(context.number) or self.by_purpose.get(context.number)
        peer = request.destination if sends else request.source
        members = context.members if sends else (context.peer or context).members
        pids = frozenset({members[peer].pid} if peer >= 0 else ())
        name, arguments = "", {}
        if user is not None and user.kind == "window":
            name = "Post" if request.tag == POSTED else "Complete"
            arguments = {"rank": peer}
        elif user is not None and user.leaders is context:
            name, arguments = "Create_intercomm", {"remote_leader": peer, "tag": request.tag}
        act = f"call {name}" if name else "make the same call"
        return Piece(name, arguments, None, request, user, pids, act=act)


def _lock(request: KernelRequest, claim: LockClaim) -> Piece:
    """A lock of a window that others hold or have requested before."""
    locks = claim.locks
    name = "Lock_all" if claim.target < 0 else "Lock"
    arguments = {} if claim.target < 0 else {"rank": claim.target}
    pids = frozenset(locks.group[rank] for rank in locks.ahead(claim))
    return Piece(name, arguments, request=request, pids=pids)


def name_of_thread(fiber: Fiber) -> str:
    """The name that the program's thread has; empty for one without a `threading.Thread`."""
    threads: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]
    name = threads.get(getattr(fiber, "thread_number", -1))
    return "" if name is None else name.name


def decode(tag: int) -> tuple[int, str]:
    """The number of a collective call and its operation, from the tags of its messages."""
    call = tag // agreement._STEPS
    code = call % agreement._OPERATIONS
    names = {value: name for name, value in agreement._codes.items()}
    return call // agreement._OPERATIONS, names.get(code, "collective call")


def public(operation: str) -> str:
    """The name of the call of an operation by MPI's own names: `Iscan` for `iscan`."""
    for prefix in ("comm_", "file_", "win_"):
        operation = operation.removeprefix(prefix)
    special = {"reduction of objects": "reduce", "dist_graph": "Create_dist_graph"}
    return special.get(operation, operation.capitalize())


def name_comm(rank: Rank, handle: Any) -> tuple[Communicator | None, str]:
    """The communicator of a handle, and its name in reports."""
    impl = handle._impl
    if impl is None:
        return None, "COMM_NULL"
    communicator = impl.find(rank) if isinstance(impl, PredefinedCommunicator) else impl
    if not isinstance(communicator, Communicator):
        return None, ""
    name = local(rank, impl).name
    return communicator, name.removeprefix("MPI_COMM_") if name else describe_communicator(
        rank, communicator
    )


def describe_communicator(rank: Rank, communicator: Communicator) -> str:
    """The name in reports of a communicator, which may have no name."""
    if communicator is rank.world.communicator:
        return "WORLD"
    if communicator is rank.self_communicator:
        return "SELF"
    name = ""
    for impl, own in LOCALS.of(rank).items():
        if impl is communicator:
            name = own.name
    if name:
        return name
    kind = "intercomm" if communicator.inter else communicator.kind
    if communicator.inter:  # the same name for both sides
        communicator = min(communicator, communicator.remote, key=lambda side: side.p2p.number)
    said = f"{kind} of ranks {text.ranges(communicator.group)}"
    if communicator.inter:
        said = f"{said} and {text.ranges(communicator.remote.group)}"
    call, site = communicator.origin
    return f"{said} ({call} at {shorten(site.file)}:{site.line})" if site is not None else said


def unmatched_sends(context: Context) -> Iterator[Send]:
    """The unreceived messages of a context, in the order of their posting."""
    sends: list[Send] = []
    for box in mailboxes_of(context).values():
        sends += box.waiting()
    sends.sort(key=lambda send: send.order)
    yield from sends


def posted_receives(context: Context, destination: int) -> list[Receive]:
    """The receives that wait at one rank of a context."""
    box = mailbox_at(context, destination)
    if box is None:
        return []
    return box.posted()


def accepts(receive: Envelope, send: Envelope) -> bool:
    """Whether source and tag of a send fit a receive."""
    return receive.source in (ANY, send.source) and receive.tag in (ANY, send.tag)


def _waits(call: str) -> bool:
    return call.lower().startswith(("wait", "test"))


def _tests(call: str) -> bool:
    return call.lower().startswith(("test", "iprobe", "improbe"))


_WILDCARDS = {("source", ANY_SOURCE): "ANY_SOURCE", ("tag", ANY_TAG): "ANY_TAG"}
