"""The methods of mpi4py's classes, wrapped so that each call is noted.

A wrapped method first describes its call, by the function that the table `METHODS` has for it
(`described_calls.py`). Calls that mpi4py makes inside a call are part of it. The classes of mpi4py
are compiled and refuse new attributes, so their dictionaries are changed directly; this also holds
for objects that exist already, such as `COMM_WORLD`.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from mpi4py import MPI

from pysmpi.errors import UsageError
from pysmpi.python import class_dictionary
from pysmpi.record import described_calls as calls
from pysmpi.record.collective_arguments import OPERATIONS
from pysmpi.record.notes import Notes

METHODS: dict[str, dict[calls.Describe, list[str]]] = {
    "Comm": {
        calls.send: "Send Ssend Bsend Rsend send ssend bsend".split(),
        calls.isend: "Isend Issend Ibsend Irsend isend issend ibsend".split(),
        calls.recv: ["Recv", "recv"],
        calls.irecv: ["Irecv", "irecv"],
        calls.sendrecv: ["Sendrecv", "Sendrecv_replace", "sendrecv"],
        calls.persistent: ["Send_init", "Ssend_init", "Bsend_init", "Rsend_init", "Recv_init"],
        calls.nothing: ["Probe", "probe", "Iprobe", "iprobe"],
        calls.collective: [
            spelling for name in OPERATIONS for spelling in (name.capitalize(), name, f"I{name}")
        ],
        calls.makes: "Dup Dup_with_info Clone Split Split_type Create Create_group Create_cart "
        "Create_graph Create_dist_graph Create_dist_graph_adjacent Create_intercomm Merge "
        "Sub".split(),
        calls.forgets: ["Free", "Disconnect"],
        calls.passes: "Spawn Spawn_multiple Accept Connect".split(),
    },
    "Request": {
        calls.wait: ["Wait", "Test", "wait", "test"],
        calls.wait_all: ["Waitall", "Testall", "waitall", "testall"],
        calls.wait_any: ["Waitany", "Testany", "waitany", "testany"],
        calls.wait_some: ["Waitsome", "Testsome", "waitsome", "testsome"],
        calls.free: ["Free"],
    },
    "Prequest": {calls.start: ["Start", "Startall"]},
    "Win": {
        calls.passes: "Allocate Create Create_dynamic Allocate_shared Fence Start Complete Post "
        "Wait Lock Unlock Lock_all Unlock_all Flush Flush_all Flush_local Flush_local_all Put Get "
        "Accumulate Get_accumulate Fetch_and_op Compare_and_swap Rput Rget Free".split(),
    },
    "File": {
        calls.passes: "Open Close Read Write Read_all Write_all Read_at Write_at Read_at_all "
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


def _wrapped(notes: Notes, member: Any, name: str, describe: calls.Describe) -> object:
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
