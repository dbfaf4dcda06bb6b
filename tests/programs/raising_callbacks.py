"""Functions and objects of the program that raise while MPI calls them, on two ranks.

raising_callbacks.py OUTCOMES.json
"""

from __future__ import annotations

import json
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
peer = 1 - comm.rank
outcomes = {}


def raises(*args, **kwargs):
    raise LookupError("on purpose")


def leaves(*args, **kwargs):
    sys.exit(5)


def fails(*args, **kwargs):
    raise MPI.Exception(MPI.ERR_TAG)


class Unloadable:
    def __reduce__(self):
        return raises, ()


class Undumpable:
    def __reduce__(self):
        raise LookupError("on purpose")


def note(name, call, *arguments, **keywords):
    """Keep the result of a call, or the type of its exception and its error class."""
    try:
        result = call(*arguments, **keywords)
    except MPI.Exception as error:
        outcomes[name] = ["MPI.Exception", error.Get_error_class()]
    except BaseException as error:
        outcomes[name] = [type(error).__name__]
    else:
        plain = isinstance(result, (int, list, tuple, type(None)))
        outcomes[name] = repr(result) if plain else "ok"


def attributes():
    for function in (raises, leaves, fails):
        name = function.__name__
        for family, thing in (
            (MPI.Comm, comm.Dup()), (MPI.Datatype, MPI.INT.Dup()), (MPI.Win, MPI.Win.Allocate(8)),
        ):  # fmt: skip
            what = f"{family.__name__} {name}"
            if family is not MPI.Win:
                key = family.Create_keyval(copy_fn=function)
                thing.Set_attr(key, 1)
                note(f"copy {what}", thing.Dup)
                thing.Delete_attr(key)
            key = family.Create_keyval(delete_fn=function)
            thing.Set_attr(key, 1)
            note(f"delete {what}", thing.Delete_attr, key)
            note(f"get {what}", thing.Get_attr, key)
            thing.Set_attr(key, 1)
            note(f"replace {what}", thing.Set_attr, key, 2)
            note(f"free {what}", thing.Free)


def generalized():
    for function in (raises, leaves, fails):
        for place in range(3):
            functions = [None, None, None]
            functions[place] = function
            what = f"grequest {function.__name__} {place}"
            for name in (
                "Wait", "Test", "Get_status", "Free", "Cancel", "wait", "test",
                "Waitall", "Waitany", "Waitsome", "Testall", "Testany", "Testsome",
                "Get_status_all", "Get_status_any", "Get_status_some", "waitall",
            ):  # fmt: skip
                request = MPI.Grequest.Start(*functions)
                request.Complete()
                several = "any" in name or "some" in name or "all" in name
                call = getattr(MPI.Request, name) if several else getattr(request, name)
                note(f"{what} {name}", call, *([[request]] if several else []))


def pickling():
    bad = Undumpable()
    for name in ("send", "isend", "ssend", "issend", "bsend", "sendrecv"):
        note(f"dump {name}", getattr(comm, name), bad, peer)
    note("dump bcast", comm.bcast, bad, comm.rank)
    for name in ("gather", "allgather", "reduce", "allreduce", "scan"):
        note(f"dump {name}", getattr(comm, name), bad)
    note("dump scatter", comm.scatter, [bad, bad], comm.rank)
    note("dump alltoall", comm.alltoall, [bad, bad])
    bad = Unloadable()
    for name in ("recv", "irecv", "mprobe", "waitall", "waitany", "waitsome", "testall"):
        sent = comm.isend(bad, peer)
        if name == "recv":
            note("load recv", comm.recv, source=peer)
        elif name == "mprobe":
            note("load mprobe", comm.mprobe(peer).recv)
        else:
            request = comm.irecv(source=peer)
            if name == "irecv":
                note("load irecv", request.wait)
            else:
                if name == "testall":
                    poll(request.Get_status)
                note(f"load {name}", getattr(MPI.Request, name), [request])
        sent.wait()
    note("load sendrecv", comm.sendrecv, bad, peer)
    note("load bcast", comm.bcast, bad)
    for name in ("gather", "allgather"):
        note(f"load {name}", getattr(comm, name), bad)
    for name in ("scatter", "alltoall"):
        note(f"load {name}", getattr(comm, name), [bad, bad])
    for name in ("reduce", "allreduce", "scan"):
        note(f"load {name}", getattr(MPI.COMM_SELF, name), bad)
    for data in (b"", b"\x80\x04K", bytes(20)):
        sent = comm.Isend([data, MPI.BYTE], peer)
        note(f"load {data!r}", comm.recv, source=peer)
        sent.Wait()
    for number, dumps in enumerate((lambda o: "text", lambda o: 7, lambda o: bytearray(3))):
        MPI.pickle.__init__(dumps)
        note(f"no bytes {number} isend", comm.isend, 1, peer)
        note(f"no bytes {number} bcast", comm.bcast, 1, comm.rank)
        note(f"no bytes {number} alltoall", comm.alltoall, [1, 2])
    MPI.pickle.__init__()
    MPI.pickle.PROTOCOL = 99
    note("protocol", comm.isend, 1, peer)
    MPI.pickle.__init__()


def truncated():
    request = comm.irecv(10, source=peer)
    comm.send(list(range(100)), peer)
    for name in ("Get_status", "Get_status"):
        note(f"truncated {name}", poll, getattr(request, name))
    for name in ("Get_status_all", "Get_status_any", "Get_status_some"):
        note(f"truncated {name}", getattr(MPI.Request, name), [request])
    note("truncated wait", request.wait)


def poll(test):
    while not test():
        pass


def others():
    note("spawn", MPI.COMM_SELF.Spawn, 3)
    note("words", MPI.COMM_SELF.Spawn, sys.executable, [1])
    note("surrogates", comm.Set_name, "\ud800")
    note("iterator", MPI.Request.Waitall, iter([MPI.REQUEST_NULL]))
    note("handler", comm.Set_errhandler, raises)


for kind in (attributes, generalized, pickling, truncated, others):
    kind()
    comm.Barrier()
everything = comm.gather(outcomes)
if everything is not None:
    with open(sys.argv[1], "w") as stream:
        json.dump(everything, stream)
