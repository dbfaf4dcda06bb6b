"""The calls of a recording: one function for each form describes a call of mpi4py.

It reads the arguments, and may return a function that reads the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from pysmpi.collectives.call import REDUCING
from pysmpi.kernel.matching import ANY
from pysmpi.record.collective_arguments import of_buffers, of_objects
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
