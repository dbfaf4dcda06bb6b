"""The methods of mpi4py's classes, wrapped so that each call is noted.

A wrapped method first describes its call: a function of the table at the end reads the arguments,
and may return a function that reads the result. Calls that mpi4py makes inside a call are part of
it. The classes of mpi4py are compiled and refuse new attributes, so their dictionaries are changed
directly; this also holds for objects that exist already, such as `COMM_WORLD`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from pysmpi.collectives.call import REDUCING
from pysmpi.errors import UsageError
from pysmpi.kernel.matching import ANY
from pysmpi.python import class_dictionary
from pysmpi.record.collective_arguments import OPERATIONS, of_buffers, of_objects
from pysmpi.record.notes import UNLIMITED, Notes, Pending
from pysmpi.record.sizes import message

Given = dict[str, Any]  # the arguments of a call by name
After = Callable[[Any], None] | None
Describe = Callable[[Notes, str, Given], After]

STANDARD, SYNCHRONOUS, BUFFERED = 0, 1, 2
_MODES = {"s": SYNCHRONOUS, "b": BUFFERED}


def _bytes(given: object) -> int:
    found = message(given)
    return 0 if found is None else found[0] * found[1]


# Point-to-point messages.


def _send_operation(notes: Notes, name: str, comm: object, dest: int, tag: int, nbytes: int) -> int:
    """Note a send; its number, 0 if it goes nowhere."""
    known = notes.known(comm)
    if dest == MPI.PROC_NULL or known.inter:
        return 0
    plain = name.lower()
    immediate = plain.startswith("i")
    kind = plain.removeprefix("i")
    mode = _MODES.get(kind[0]) if kind != "send" else STANDARD
    number = notes.next_request()
    notes.sent += nbytes
    notes.operations.append(
        ["send", number, known.key, known.rank, dest, tag, nbytes, mode or STANDARD, immediate]
    )
    return number


def _receive_operation(notes: Notes, comm: object, source: int, tag: int, nbytes: int) -> Any:
    """Note a receive: the operation, whose end may still be unknown; None if it has no message."""
    known = notes.known(comm)
    if source == MPI.PROC_NULL or known.inter:
        return None
    number = notes.next_request()
    operation = [
        "receive", number, known.key, ANY if source == MPI.ANY_SOURCE else source, known.rank,
        ANY if tag == MPI.ANY_TAG else tag, nbytes,
    ]  # fmt: skip
    notes.operations.append(operation)
    return operation


def _took(notes: Notes, operation: list[Any], status: Any) -> None:
    """The message of a blocking receive."""
    nbytes = status.Get_count(MPI.BYTE)
    notes.received += nbytes
    operation += [status.Get_source(), status.Get_tag(), nbytes]
    notes.operations.append(["wait", [operation[1]], True])


def send(notes: Notes, name: str, given: Given) -> After:
    """A blocking send."""
    comm, dest, tag = given["self"], given["dest"], given["tag"]
    if "buf" in given:
        number = _send_operation(notes, name, comm, dest, tag, _bytes(given["buf"]))
        if number:
            notes.operations.append(["wait", [number], True])
        return None

    def after(result: object) -> None:
        number = _send_operation(notes, name, comm, dest, tag, sum(notes.dumped))
        if number:
            notes.operations.append(["wait", [number], True])

    return after


def isend(notes: Notes, name: str, given: Given) -> After:
    """A send that a request completes."""

    def after(request: object) -> None:
        nbytes = _bytes(given["buf"]) if "buf" in given else sum(notes.dumped)
        number = _send_operation(notes, name, given["self"], given["dest"], given["tag"], nbytes)
        if number:
            notes.pending[id(request)] = Pending(request, number, False, False)

    return after


def _status(given: Given) -> Any:
    """The status of a call; a new one if the program passes none."""
    if given["status"] is None:
        given["status"] = MPI.Status()
    return given["status"]


def recv(notes: Notes, name: str, given: Given) -> After:
    """A blocking receive."""
    status = _status(given)
    nbytes = _bytes(given["buf"]) if name == "Recv" else UNLIMITED
    operation = _receive_operation(notes, given["self"], given["source"], given["tag"], nbytes)
    if operation is None:
        return None
    return lambda result: _took(notes, operation, status)


def irecv(notes: Notes, name: str, given: Given) -> After:
    """A receive that a request completes."""
    nbytes = _bytes(given["buf"]) if name == "Irecv" else UNLIMITED
    operation = _receive_operation(notes, given["self"], given["source"], given["tag"], nbytes)
    if operation is None:
        return None

    def after(request: object) -> None:
        wild = operation[3] < 0 or operation[5] < 0 or nbytes == UNLIMITED
        notes.pending[id(request)] = Pending(request, operation[1], True, wild)

    return after


def sendrecv(notes: Notes, name: str, given: Given) -> After:
    """A send and a receive."""
    status = _status(given)
    comm = given["self"]
    out = given.get("sendbuf", given.get("buf"))
    back = given.get("recvbuf", given.get("buf"))
    upper = name[0] == "S"
    operation = _receive_operation(
        notes, comm, given["source"], given["recvtag"], _bytes(back) if upper else UNLIMITED
    )

    def after(result: object) -> None:
        nbytes = _bytes(out) if upper else sum(notes.dumped)
        number = _send_operation(notes, "isend", comm, given["dest"], given["sendtag"], nbytes)
        if operation is not None:
            _took(notes, operation, status)
        if number:
            notes.operations.append(["wait", [number], True])

    return after


# Requests.


def _completed(notes: Notes, pending: Pending, status: Any) -> None:
    if not pending.persistent:
        notes.pending.pop(id(pending.request), None)
    elif not pending.active:
        return
    pending.active = False
    if pending.receives and status is not None:
        nbytes = status.Get_count(MPI.BYTE)
        notes.received += nbytes
        if pending.wild:
            notes.write(["match", pending.number, status.Get_source(), status.Get_tag(), nbytes])


def wait(notes: Notes, name: str, given: Given) -> After:
    """`Wait` and `Test` of one request."""
    pending = notes.pending.get(id(given["self"]))
    if pending is None or not pending.active:
        return None
    status = _status(given)

    def after(result: Any) -> None:
        done = result[0] if name == "test" else result if name == "Test" else True
        if done:
            notes.operations.append(["wait", [pending.number], True])
            _completed(notes, pending, status)

    return after


def wait_all(notes: Notes, name: str, given: Given) -> After:
    """`Waitall` and `Testall`."""
    requests = given["requests"] = list(given["requests"])
    statuses = given["statuses"]
    if statuses is None:
        statuses = given["statuses"] = [MPI.Status() for _ in requests]
    found = [(notes.pending.get(id(request)), i) for i, request in enumerate(requests)]

    def after(result: Any) -> None:
        done = result[0] if name == "testall" else result if name == "Testall" else True
        if done:
            numbers = []
            for pending, i in found:
                if pending is not None and pending.active:
                    numbers.append(pending.number)
                    _completed(notes, pending, statuses[i] if i < len(statuses) else None)
            if numbers:
                notes.operations.append(["wait", numbers, True])

    return after


def wait_any(notes: Notes, name: str, given: Given) -> After:
    """`Waitany` and `Testany`."""
    requests = given["requests"] = list(given["requests"])
    status = _status(given)
    found = [notes.pending.get(id(request)) for request in requests]

    def after(result: Any) -> None:
        index = result[0] if isinstance(result, tuple) else result
        if name == "Testany" or name == "testany":
            index = result[0] if result[1] else MPI.UNDEFINED
        if index != MPI.UNDEFINED:
            pending = found[index]
            if pending is not None and pending.active:
                notes.operations.append(["wait", [pending.number], True])
                _completed(notes, pending, status)

    return after


def wait_some(notes: Notes, name: str, given: Given) -> After:
    """`Waitsome` and `Testsome`."""
    requests = given["requests"] = list(given["requests"])
    statuses = given["statuses"]
    if statuses is None:
        statuses = given["statuses"] = [MPI.Status() for _ in requests]
    found = [notes.pending.get(id(request)) for request in requests]

    def after(result: Any) -> None:
        indices = result[0] if isinstance(result, tuple) else result
        for i, index in enumerate(indices or ()):
            pending = found[index]
            if pending is not None and pending.active:
                notes.operations.append(["wait", [pending.number], True])
                _completed(notes, pending, statuses[i])

    return after


def persistent(notes: Notes, name: str, given: Given) -> After:
    """`Send_init` and `Recv_init`."""

    def after(request: object) -> None:
        before = notes.operations
        notes.operations = []
        receives = name == "Recv_init"
        nbytes = _bytes(given["buf"])
        sent = notes.sent
        if receives:
            _receive_operation(notes, given["self"], given["source"], given["tag"], nbytes)
        else:
            kind = f"i{name.removesuffix('_init')}"
            _send_operation(notes, kind, given["self"], given["dest"], given["tag"], nbytes)
        made, notes.operations = notes.operations, before
        notes.sent = sent
        if made:
            pending = Pending(request, 0, receives, receives and min(made[0][3], made[0][5]) < 0)
            pending.persistent, pending.active = True, False
            pending.operation = made[0]
            notes.pending[id(request)] = pending

    return after


def start(notes: Notes, name: str, given: Given) -> After:
    """`Start` and `Startall`."""
    for request in given["requests"] if "requests" in given else [given["self"]]:
        pending = notes.pending.get(id(request))
        if pending is not None:
            pending.number = notes.next_request()
            pending.active = True
            operation = list(pending.operation)
            operation[1] = pending.number
            notes.operations.append(operation)
            if not pending.receives:
                notes.sent += operation[6]
    return None


def free(notes: Notes, name: str, given: Given) -> After:
    """`Request.Free`."""
    notes.pending.pop(id(given["self"]), None)
    return None


# Collective calls.


def collective(notes: Notes, name: str, given: Given) -> After:
    """A collective call; in the background if it returns a request."""
    comm = given["self"]
    known = notes.known(comm)
    upper = name[0].isupper()
    operation = name.lower()
    background = upper and operation[0] == "i"
    if background:
        operation = operation[1:]
    if known.inter:
        return None
    index = known.calls
    known.calls += 1
    arguments = of_buffers(operation, given, known.size, known.rank) if upper else {}

    def after(result: object) -> None:
        nonlocal arguments
        if not upper:
            arguments = of_objects(
                operation, given, known.size, known.rank, notes.dumped, notes.loaded
            )
            if operation in REDUCING:
                notes.largest[f"{known.key}|{index}"] = arguments["count"]
        notes.operations.append(["collective", known.key, index, background, arguments])
        if background:
            notes.pending[id(result)] = Pending(result, 0, False, False)
            notes.pending[id(result)].number = [known.key, index]  # type: ignore[assignment]

    return after


# Communicators.


def makes(notes: Notes, name: str, given: Given) -> After:
    """A call that makes a communicator."""
    comm = given["self"]
    known = notes.known(comm)
    order = known.made
    known.made += 1
    if not known.inter:
        # The ranks agree on the new communicator.
        index = known.calls
        known.calls += 1
        arguments = {"op": "allreduce", "count": 8}
        if name != "Create_group":
            notes.operations.append(["collective", known.key, index, False, arguments])

    def after(made: object) -> None:
        if isinstance(made, MPI.Comm) and made != MPI.COMM_NULL:
            notes.learn(made, f"{known.key}/{order}")

    return after


def forgets(notes: Notes, name: str, given: Given) -> After:
    """`Comm.Free` and `Comm.Disconnect`: the handle may be used again."""
    handle = given["self"].handle

    def after(result: object) -> None:
        notes.comms.pop(handle, None)

    return after


def passes(notes: Notes, name: str, given: Given) -> After:
    """A call whose time is noted, and nothing else."""
    begun = time.perf_counter()

    def after(result: object) -> None:
        notes.operations.append(["pass", time.perf_counter() - begun])

    return after


def nothing(notes: Notes, name: str, given: Given) -> After:
    """A call that waits for the message of another call."""
    return None


METHODS: dict[str, dict[Describe, list[str]]] = {
    "Comm": {
        send: "Send Ssend Bsend Rsend send ssend bsend".split(),
        isend: "Isend Issend Ibsend Irsend isend issend ibsend".split(),
        recv: ["Recv", "recv"],
        irecv: ["Irecv", "irecv"],
        sendrecv: ["Sendrecv", "Sendrecv_replace", "sendrecv"],
        persistent: ["Send_init", "Ssend_init", "Bsend_init", "Rsend_init", "Recv_init"],
        nothing: ["Probe", "probe", "Iprobe", "iprobe"],
        collective: [
            spelling for name in OPERATIONS for spelling in (name.capitalize(), name, f"I{name}")
        ],
        makes: "Dup Dup_with_info Clone Split Split_type Create Create_group Create_cart "
        "Create_graph Create_dist_graph Create_dist_graph_adjacent Create_intercomm Merge "
        "Sub".split(),
        forgets: ["Free", "Disconnect"],
        passes: "Spawn Spawn_multiple Accept Connect".split(),
    },
    "Request": {
        wait: ["Wait", "Test", "wait", "test"],
        wait_all: ["Waitall", "Testall", "waitall", "testall"],
        wait_any: ["Waitany", "Testany", "waitany", "testany"],
        wait_some: ["Waitsome", "Testsome", "waitsome", "testsome"],
        free: ["Free"],
    },
    "Prequest": {start: ["Start", "Startall"]},
    "Win": {
        passes: "Allocate Create Create_dynamic Allocate_shared Fence Start Complete Post Wait "
        "Lock Unlock Lock_all Unlock_all Flush Flush_all Flush_local Flush_local_all Put Get "
        "Accumulate Get_accumulate Fetch_and_op Compare_and_swap Rput Rget Free".split(),
    },
    "File": {
        passes: "Open Close Read Write Read_all Write_all Read_at Write_at Read_at_all "
        "Write_at_all Set_view Sync Set_size".split(),
    },
}


def install(notes: Notes) -> None:
    """Wrap the methods of mpi4py's classes, and its pickling."""
    subclasses = {"Comm": [MPI.Comm, *_below(MPI.Comm)]}
    for owner, table in METHODS.items():
        for cls in subclasses.get(owner, [getattr(MPI, owner)]):
            space = class_dictionary.writable(cls)
            if space is None:
                version = ".".join(map(str, sys.version_info[:3]))
                raise UsageError(
                    f"Python {version} does not show the methods of {cls.__name__}: record with "
                    "Python 3.11 to 3.14"
                )
            new = {
                name: _wrapped(notes, space[name], name, describe)
                for describe, names in table.items()
                for name in names
                if name in space
            }
            class_dictionary.update(cls, space, new)
    plain: Any = MPI.pickle
    before = MPI.Pickle()

    def dump(obj: object, *protocol: object) -> bytes:
        data: bytes = before.dumps(obj)
        notes.dumped.append(len(data))
        return data

    def load(data: Any) -> Any:
        notes.loaded.append(memoryview(data).nbytes)
        return before.loads(data)

    plain.__init__(dump, load, plain.PROTOCOL)


def _below(cls: type[Any]) -> list[type[Any]]:
    result: list[type[Any]] = []
    sub: type[Any]
    for sub in cls.__subclasses__():
        if sub.__module__ == "mpi4py.MPI":
            result += [sub, *_below(sub)]
    return result


def _wrapped(notes: Notes, member: Any, name: str, describe: Describe) -> object:
    """A method that notes its calls."""
    original = getattr(member, "__func__", member)
    code = original.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = original.__defaults__ or ()
    usual = dict(zip(names[len(names) - len(defaults) :], defaults))

    def method(*args: Any, **kwargs: Any) -> Any:
        if notes.inside or notes.world is None:
            return original(*args, **kwargs)
        entered = time.perf_counter()
        before = notes.elapsed(entered)
        notes.inside = True
        notes.operations = []
        notes.dumped, notes.loaded = [], []
        notes.sent = notes.received = 0
        start = end = entered
        try:
            given = {**usual, **dict(zip(names, args)), **kwargs}
            if len(given) < len(names) or len(given) > len(names):
                return original(*args, **kwargs)  # raises TypeError
            comm = given.get("self")
            key = notes.known(comm).key if isinstance(comm, MPI.Comm) else ""
            after = describe(notes, name, given)
            values = [given[argument] for argument in names]
            start = time.perf_counter()
            result = original(*values)
            end = time.perf_counter()
            if after is not None:
                after(result)
            notes.calls += 1
            peers = [[role, given[role]] for role in ("dest", "source", "root") if role in given]
            notes.write(
                ["call", notes.calls, name, start, end, key, notes.site(), notes.sent,
                 notes.received, peers, [*before, *notes.operations]]
            )  # fmt: skip
            return result
        finally:
            notes.inside = False
            notes.resume()

    method.__name__ = name
    method.__qualname__ = getattr(original, "__qualname__", name)
    method.__doc__ = original.__doc__
    if isinstance(member, classmethod):
        return classmethod(method)
    return method
