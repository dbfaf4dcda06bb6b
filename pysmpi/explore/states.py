"""The state of a program where something is decided: equal digests mean equal futures.

The state of a rank has the positions and the variables of its functions, the global variables of
its own modules, its random numbers, its open requests and the call in which it waits. The state of
the program also has the messages under way, the collective calls that some ranks have begun, and
the output so far.

Where this cannot be seen completely, the history of a rank takes the place of its variables: the
events that had to happen before. Windows, files, threads of ranks, and clocks that a program reads
while time passes, leave no digest at all.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable
from hashlib import blake2b
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy

from pysmpi.explore.alike import alike
from pysmpi.explore.files import FileWatch
from pysmpi.explore.liveness import MOST_CODE, unused_after
from pysmpi.explore.values import Opaque, Values
from pysmpi.kernel.choices import SOME, TEST, Control
from pysmpi.kernel.requests import Receive, Send, Transfer
from pysmpi.mpi.base.handles import Handle
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.mpi.buffers.contiguous import MessageRegion
from pysmpi.mpi.collective.background import CollectiveOperation
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.groups.communicator import PredefinedCommunicator
from pysmpi.mpi.point_to_point.envelopes import ObjectBuffer
from pysmpi.mpi.point_to_point.operations import MessageOperation, NoOperation, PersistentOperation
from pysmpi.python import facts
from pysmpi.python.frames import BOUNDARY, is_own, variables_of, whole_stack
from pysmpi.ranks.simulation import Simulation

_read: Callable[[FrameType, FrameType], tuple[object, ...] | None] | None = None
if facts.holds("frame-stacks"):
    try:
        from pysmpi.isolation.frame_stacks import values as _read
    except ImportError:  # pysmpi was installed without a C compiler
        pass

# Whether the stacks of ranks can be read: not in Python 3.14, nor without a C compiler.
MEETS = _read is not None and sys.version_info < (3, 14)

# A rank has its own.
_pread, _fstat = os.pread, os.fstat

# Calls whose progress their arguments and their requests show.
_SHOWN = frozenset(
    "send Send ssend Ssend bsend Bsend recv Recv probe Probe mprobe Mprobe iprobe Iprobe improbe "
    "Improbe sendrecv Sendrecv wait Wait waitany Waitany waitall Waitall waitsome Waitsome test "
    "Test testany Testany testall Testall testsome Testsome Get_status get_status Get_status_any "
    "Get_status_all Get_status_some get_status_any get_status_all get_status_some Barrier barrier "
    "Cancel".split()
)
_BARRIERS = ("barrier", "ibarrier")
_LIBRARIES = ("pysmpi", "mpi4py")
_ATOMS = (int, float, complex, str, bytes, type(None), numpy.ndarray, numpy.generic)
_MOST_OPAQUE = 8  # descriptions of a rank that fail, until no more are tried
DIGEST = 12  # bytes of a digest


class States:
    """Computes digests of the states of one execution.

    `history(pid)` describes the past of a rank, None if it is not known completely. `output` is the
    descriptor of the file of the output. `describing` says that ranks will be compared (`alike`).
    """

    def __init__(
        self,
        simulation: Simulation,
        control: Control,
        history: Callable[[int], object],
        output: int,
        files: FileWatch,
        describing: bool = False,
    ) -> None:
        # The descriptions of ranks, if they are wanted and complete.
        self.descriptions: dict[int, list[object]] | None = {} if describing else None
        self.universe = simulation.universe
        self.control = control
        self.history = history
        self.output = output
        self.outcome = simulation.outcome
        self.files = files
        self.clocks = 0  # readings of clocks by the program
        self._note = self._read_clock
        self.universe.noting_clocks = self._note
        self.changed: set[int] = set()  # ranks whose state may have changed
        self.refused_at: dict[int, bytes] = {}  # states of ranks at their latest refused tests
        self._ranks: dict[int, bytes] = {}
        self._opaque: dict[int, int] = {}
        self._lines: list[bytes] = []
        self._read_bytes = 0
        self._rest = b""

    def prepare(self) -> None:
        """Analyse the code of the program before many executions go on from here."""
        seen: set[CodeType] = set()
        for rank in self.universe.ranks:
            modules = [] if rank.program is None else rank.program.state.modules.items()
            for name, module in modules:
                if name.partition(".")[0] not in _LIBRARIES:
                    for value in vars(module).values() if isinstance(module, ModuleType) else ():
                        if type(value) is FunctionType and value.__module__ == name:
                            _analyse(value.__code__, seen)
            if rank.fiber is not None and not rank.fiber.dead:
                for frame in whole_stack(rank.fiber):
                    if not is_own(frame.f_code.co_filename):
                        _analyse(frame.f_code, seen)

    def digest(self) -> bytes | None:
        """The digest of the present state; None if there is none."""
        universe, control = self.universe, self.control
        engine = control.engine
        if not MEETS or not engine.queue.empty() or self.files.written:
            return None
        if engine.now > 0.0 and (self.clocks or universe.noting_clocks is not self._note):
            return None
        for rank in universe.ranks:
            if rank.program is not None and rank.program.threaded:
                return None
        calls = self._calls()
        if calls is None:
            return None
        whole: list[object] = [calls, self._written()]
        requests = self._requests()
        if requests is None:
            return None
        for rank in universe.ranks:
            pid = rank.pid
            state = self._ranks.get(pid)
            if state is None or pid in self.changed:
                state = self._of_rank(rank, requests.get(pid, []))
                if state is None:
                    return None
                self._ranks[pid] = state
            refused = control.refused.get(pid, 0)
            if refused and self.refused_at.get(pid) == state:
                refused = 0  # a test that changes nothing can be refused again
            whole.append((state, refused))
        self.changed.clear()
        return _digest(whole)

    def _read_clock(self, universe: Universe) -> None:
        self.clocks += 1

    def refused(self, pid: int) -> bytes | None:
        """A test of a rank is refused; return the state of the rank."""
        state = self.at_test(pid)
        if state is None:
            self.refused_at.pop(pid, None)
        else:
            self.refused_at[pid] = state
        return state

    def at_test(self, pid: int) -> bytes | None:
        """The state of a rank that waits for the answer to a test."""
        if pid in self._ranks and pid not in self.changed:
            return self._ranks[pid]
        requests = self._requests() if MEETS else None
        if requests is None:
            return None
        state = self._of_rank(self.universe.ranks[pid], requests.get(pid, []))
        if state is not None:
            self._ranks[pid] = state
            self.changed.discard(pid)
        return state

    def described(self) -> bool:
        """Whether no history is part of the latest digest; after `digest`."""
        return self.descriptions is not None and len(self.descriptions) == len(self.universe.ranks)

    def alike(self, first: int, second: int) -> bool:
        """Whether two ranks differ only by their numbers; after `digest`."""
        assert self.descriptions is not None
        one, other = self.descriptions.get(first), self.descriptions.get(second)
        if one is None or other is None or not alike(one, other, first, second):
            return False
        if self.control.refused.get(first, 0) != self.control.refused.get(second, 0):
            return False
        everyone = list(range(len(self.universe.ranks)))
        for communicator in self.universe.communicators.values():
            calls, group = communicator.calls, list(communicator.group)
            if group != everyone:
                if len(group) > 1 or any(calls):
                    return False
                continue
            if calls[first] != calls[second]:
                return False
            for (_, operation), shared in communicator.collective_states.items():
                if (first in shared.values) != (second in shared.values):
                    return False
                if first in shared.values and operation not in _BARRIERS:
                    return False
        return True

    # The parts of a state.

    def _written(self) -> object:
        """The lines of the output so far, in any order."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                continue
        size = _fstat(self.output).st_size
        if size > self._read_bytes:
            data = self._rest + _pread(self.output, size - self._read_bytes, self._read_bytes)
            self._read_bytes = size
            *lines, self._rest = data.split(b"\n")
            self._lines = sorted(self._lines + lines)
        return self._rest, tuple(self._lines)

    def _calls(self) -> object:
        """The collective calls under way; None if they, or windows, hide a part of the state."""
        found: list[object] = []
        seen = set()
        if self.universe.purposes:
            return None
        for communicator in list(self.universe.communicators.values()):
            if communicator.p2p.number in seen:
                continue
            seen.add(communicator.p2p.number)
            if communicator.kind != "comm" or communicator.revoked or communicator.inter:
                return None
            calls = communicator.calls
            least = min(calls, default=0)
            found.append((communicator.p2p.number, [count - least for count in calls]))
            for (call, operation), shared in communicator.collective_states.items():
                entered = sorted(shared.values)
                found.append((call - least, operation, entered, shared.left))
                if operation in _BARRIERS:
                    continue
                for member in entered:
                    past = self.history(communicator.group[member])
                    if past is None:
                        return None
                    found.append(past)
        found.sort(key=repr)
        return found

    def _requests(self) -> dict[int, list[Send | Receive]] | None:
        """The messages and receives that have no partner, by their rank; None with windows."""
        found: dict[int, list[Send | Receive]] = {}
        control = self.control
        for request in control.numbers:
            if isinstance(request, Send):
                if isinstance(request, Transfer):
                    return None
                if request.payload is not None:
                    pid = request.sender().pid
                    found.setdefault(pid, []).append(request)
        for receive in control.own_numbers:
            # The calls show probes, and the receives of collective calls.
            if not receive.done and receive.message is None and receive.payload is not None:
                pid = receive.context.members[receive.destination].pid
                found.setdefault(pid, []).append(receive)
        return found

    def _of_rank(self, rank: Rank, requests: list[Send | Receive]) -> bytes | None:
        if self._opaque.get(rank.pid, 0) < _MOST_OPAQUE:
            try:
                description = RankReader(self, rank, requests).read()
                if self.descriptions is not None:
                    self.descriptions[rank.pid] = description
                return _digest(description)
            except (Opaque, RecursionError):
                self._opaque[rank.pid] = self._opaque.get(rank.pid, 0) + 1
        if self.descriptions is not None:
            self.descriptions.pop(rank.pid, None)
        past = self.history(rank.pid)
        return None if past is None else _digest(["history", past])


class RankReader:
    """Describes the state of one rank that waits."""

    def __init__(self, states: States, rank: Rank, requests: list[Send | Receive]) -> None:
        self.states = states
        self.rank = rank
        self.requests = sorted(requests, key=_place_of)
        modules = rank.program.state.modules if rank.program is not None else {}
        self.modules = {
            name: module
            for name, module in modules.items()
            if name.partition(".")[0] not in _LIBRARIES and hasattr(module, "__dict__")
        }
        self.values = Values(self.modules, self._handle)
        self.parts = self.values.parts

    def read(self) -> list[object]:
        """The description."""
        rank, values, parts = self.rank, self.values, self.parts
        fiber = rank.fiber
        if fiber is None or fiber.dead:
            parts.append("ended")
            outcome = self.states.outcome(rank)
            parts.append((outcome.status, str(outcome.state)))
            values.value(outcome.value)
            self._messages()
            return parts
        frames = self._frames()
        for request in self.requests:
            values.met(request)
        unused: frozenset[str] = frozenset()
        for frame, callee in frames:
            unused = self._frame(frame, callee)
        program = rank.program
        if program.state.own or program.state.values:
            raise Opaque  # it has changed its working directory, or the like
        parts.append(program.generators)
        for one in (program.random, program.numpy_random, program.environ):
            values.value(one)
        for name, module in self.modules.items():
            parts.append(("module", name))
            space = vars(module)
            if values.met(space):
                continue
            hidden = unused if name == "__main__" else ()
            for key, one in list(space.items()):
                if key[:2] == "__" and key[-2:] == "__":
                    continue
                if key in hidden and isinstance(one, _ATOMS):
                    continue
                parts.append(key)
                values.value(one)
        self._messages()
        self._gates()
        return parts

    def _frames(self) -> list[tuple[FrameType, FrameType]]:
        """The program's functions that have not returned, the innermost first, with their callees.

        The call of MPI in which the rank waits is described.
        """
        frames = whole_stack(self.rank.fiber)
        own = [is_own(frame.f_code.co_filename) for frame in frames]
        if False not in own:
            raise Opaque
        first = own.index(False)
        program = frames[first : own.index(True, first)] if True in own[first:] else frames[first:]
        if not first or False in own[first + len(program) :]:
            raise Opaque  # a function of MPI has called this part of the program
        call = frames[first - 1]
        code = call.f_code
        if code.co_filename != BOUNDARY or code.co_qualname.rpartition(".")[2] not in _SHOWN:
            raise Opaque
        self.parts.append(("call", code.co_qualname))
        for key, one in variables_of(call)[1].items():
            if not key.startswith("_") and key != "cls":
                self.parts.append(key)
                self.values.value(one)
        return list(zip(program, [call, *program]))

    def _frame(self, frame: FrameType, callee: FrameType) -> frozenset[str]:
        """Describe a function; return the variables that it does not use any more."""
        assert _read is not None
        code = frame.f_code
        found = _read(frame, callee)
        if found is None:
            raise Opaque
        self.parts.append((code.co_filename, code.co_qualname, code.co_firstlineno, frame.f_lasti))
        table = unused_after(code)
        unused = frozenset() if table is None else table.get(frame.f_lasti, frozenset())
        names = code.co_varnames
        for i, one in enumerate(found):
            if i < len(names) and names[i] in unused and isinstance(one, _ATOMS):
                self.parts.append("unused")
            else:
                self.values.value(one)
        if code.co_name != "<module>" and not code.co_flags & 1:  # not optimized: of a class
            raise Opaque
        return unused if code.co_name == "<module>" else frozenset()

    # Objects of MPI.

    def _handle(self, value: object) -> None:
        parts = self.parts
        if isinstance(value, Status):
            parts.append(("status", tuple(value._fields)))
        elif not isinstance(value, Handle):
            raise Opaque
        elif value._family.__name__ == "Comm":
            impl = value._impl
            if isinstance(impl, PredefinedCommunicator):
                name: object = impl.name
            else:
                name = None if impl is None else impl.p2p.number
            parts.append((type(value).__name__, name))
            if type(value).__module__ in self.modules:
                values = getattr(value, "__dict__", {})
                self.values.mapping(values)
        elif value._family.__name__ == "Request":
            self._operation(value._impl)
        elif value._impl is None or getattr(value, "is_predefined", False):
            parts.append((value._family.__name__, value.handle))
        else:
            raise Opaque

    def _operation(self, operation: Any) -> None:
        if operation is None:
            self.parts.append("null")
        elif self.values.met(operation):
            return
        elif isinstance(operation, CollectiveOperation):
            contribution = operation.contribution
            if type(operation) is not CollectiveOperation or contribution.label != "ibarrier":
                raise Opaque
            communicator = contribution.communicator
            ago = communicator.calls[contribution.me] - contribution.number
            self.parts.append(("ibarrier", operation.finished, operation.done(), ago,
                               communicator.p2p.number))  # fmt: skip
        elif isinstance(operation, (MessageOperation, NoOperation)):
            if isinstance(operation, PersistentOperation):
                raise Opaque
            cancelled = getattr(operation, "cancelled", False)
            self.parts.append((type(operation).__name__, cancelled))
            self._request(operation.request)
        else:
            raise Opaque

    def _request(self, request: Any) -> None:
        """A request that has no partner, one that is complete, or that of a decision."""
        if request is None or self.values.met(request):
            return
        self.parts.append((type(request).__name__, request.done))
        if isinstance(request, Receive):
            message = request.message
            if message is not None:
                self.parts.append((message.source, message.tag, message.nbytes, message.mode))
            self._payload(request.payload)
        elif isinstance(request, Send):
            self.parts.append((request.mode, request.destination, request.tag))

    def _messages(self) -> None:
        """Messages of the rank that wait for a receive, and its receives."""
        seen = self.states.control.seen
        for request in self.requests:
            self.parts.append((
                type(request).__name__, request.context.number, request.source,
                request.destination, request.tag, request.nbytes,
            ))  # fmt: skip
            if isinstance(request, Send):
                self.parts.append((request.mode, request.detached, request in seen))
            self._payload(request.payload)
        for pending in self.rank.process.waits:
            self._request(pending)

    def _payload(self, payload: Any) -> None:
        parts = self.parts
        if payload is None:
            parts.append("nothing")
        elif isinstance(payload, ObjectBuffer):
            if payload.buffer is not None:
                raise Opaque
            parts.append(None if payload.data is None else bytes(payload.data))
        elif isinstance(payload, MessageRegion):
            view: Any = payload.data
            if view is None:
                raise Opaque
            if not payload.nbytes:
                return
            address = numpy.frombuffer(view, numpy.uint8).__array_interface__["data"][0]
            owner: object = view.obj
            if isinstance(owner, numpy.ndarray):
                address -= owner.__array_interface__["data"][0]
            elif isinstance(owner, (bytes, bytearray)):
                address -= numpy.frombuffer(owner, numpy.uint8).__array_interface__["data"][0]
            else:
                raise Opaque
            parts.append((address, payload.nbytes))
            self.values.value(owner)
        elif isinstance(payload, (bytes, bytearray, memoryview)):
            parts.append(bytes(payload))
        else:
            raise Opaque

    def _gates(self) -> None:
        process = self.rank.process
        for gate in self.states.control.gates:
            if gate.process is process:
                if gate.kind not in (TEST, SOME) and not gate.name.startswith("cancel "):
                    raise Opaque
                self.parts.append((gate.kind, gate.place))


def _analyse(code: CodeType, seen: set[CodeType]) -> None:
    """Find the unused variables of a function and of those in it."""
    if code in seen or len(seen) > MOST_CODE:
        return
    seen.add(code)
    unused_after(code)
    for one in code.co_consts:
        if isinstance(one, CodeType):
            _analyse(one, seen)


def _place_of(request: Send | Receive) -> tuple[object, ...]:
    """Requests between two ranks keep their order; others have none."""
    sends = isinstance(request, Send)
    other = request.destination if sends else 0
    return sends, request.context.number, other, request.order


def _digest(parts: Any) -> bytes:
    try:
        data = marshal.dumps(parts, 2)
    except ValueError:
        data = repr(parts).encode()
    return blake2b(data, digest_size=DIGEST).digest()
