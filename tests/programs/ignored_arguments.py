"""Calls with arguments that MPI ignores, or that are null, empty or in place, on two ranks.

ignored_arguments.py OUTCOMES.json
"""

# ruff: noqa: B023  calls are made at once

from __future__ import annotations

import json
import os
import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
peer = 1 - rank
outcomes = {}

NOTHING = {
    "None": None, "BOTTOM": MPI.BOTTOM, "[None, 0]": [None, 0], "[None, INT]": [None, MPI.INT],
    "[None, 0, INT]": [None, 0, MPI.INT], "[None, 0, null]": [None, 0, MPI.DATATYPE_NULL],
    "[BOTTOM, 0, null]": [MPI.BOTTOM, 0, MPI.DATATYPE_NULL],
    "[BOTTOM, 0, INT]": [MPI.BOTTOM, 0, MPI.INT], "[BOTTOM, INT]": [MPI.BOTTOM, MPI.INT],
    "[None, 1, INT]": [None, 1, MPI.INT], "[BOTTOM, 1, null]": [MPI.BOTTOM, 1, MPI.DATATYPE_NULL],
    "empty": np.zeros(0, "i4"), "b''": b"", "IN_PLACE": MPI.IN_PLACE, "3": 3, "x": "x",
    "uncommitted": [np.zeros(4, "i4"), 1, MPI.INT.Create_contiguous(1)],
    "[]": [], "other type": np.zeros(3, "f8"), "read-only": b"abcd", "short": np.zeros(1, "i2"),
    "[None, null]": [None, MPI.DATATYPE_NULL], "(None, 0, 'i')": (None, 0, "i"),
    "address 0": [MPI.BOTTOM, 1, MPI.INT],
}  # fmt: skip


READ = ("3", "x", "[]", "uncommitted")
SIMULATED = "pysmpi" in MPI.Get_library_version()


def note(name, call):
    try:
        result = call()
    except MPI.Exception as error:
        result = f"MPI {error.Get_error_class()}"
    except Exception as error:
        result = type(error).__name__
    outcomes[name] = result.tolist() if isinstance(result, np.ndarray) else str(result)
    comm.Barrier()


def ints(*values):
    return np.array(values, "i4")


def accumulates():
    window = MPI.Win.Allocate(16, 4, comm=comm)
    memory = np.frombuffer(window.tomemory(), "i4")
    for what, origin in NOTHING.items():
        for word in ("NO_OP", "REPLACE", "SUM"):
            op = getattr(MPI, word)
            for name in ("Get_accumulate", "Rget_accumulate", "Fetch_and_op"):
                for target in (peer, MPI.PROC_NULL):
                    if target >= 0 and what not in READ and not SIMULATED:
                        if name == "Fetch_and_op" or op != MPI.NO_OP:
                            continue  # MPICH crashes
                    if what == "address 0" and target >= 0 and op != MPI.NO_OP:
                        continue
                    memory[:] = rank + 5
                    comm.Barrier()
                    result = ints(-1)
                    window.Lock(peer, MPI.LOCK_EXCLUSIVE)
                    place = 0 if name == "Fetch_and_op" else [0, 1, MPI.INT]

                    def call():
                        request = getattr(window, name)(origin, result, target, place, op)
                        if request is not None:
                            request.Wait()
                        window.Flush(peer)
                        return result

                    try:
                        got = call().tolist()
                    except MPI.Exception as error:
                        got = f"MPI {error.Get_error_class()}"
                    except Exception as error:
                        got = type(error).__name__
                    window.Unlock(peer)
                    comm.Barrier()
                    # Stored data would be undefined where the origin has another type.
                    outcomes[f"{name} {word} {what} {target < 0}"] = [got, int(memory[0])]
    for name in ("Put", "Get", "Accumulate", "Rput", "Rget", "Raccumulate"):
        for what, origin in NOTHING.items():
            for target in (MPI.PROC_NULL, peer):
                if target >= 0 and what not in ("None", "[None, 0]", "[None, 0, INT]", "empty"):
                    continue
                window.Lock(peer)

                def call():
                    request = getattr(window, name)(origin, target)
                    return None if request is None else request.Wait()

                note(f"{name} {what} {target < 0}", call)
                window.Unlock(peer)
    window.Free()


def ignored_peers():
    for what, buf in NOTHING.items():
        for name in ("Send", "Ssend", "Bsend", "Rsend", "Recv"):
            note(f"{name} null {what}", lambda: getattr(comm, name)(buf, MPI.PROC_NULL))
            form = f"I{name.lower()}"
            note(f"{form} null {what}", lambda: getattr(comm, form)(buf, MPI.PROC_NULL).Wait())
            note(f"{name}_init null {what}", lambda: again(name, buf))
        note(f"Sendrecv null {what}", lambda: comm.Sendrecv(
            buf, MPI.PROC_NULL, recvbuf=buf, source=MPI.PROC_NULL))  # fmt: skip
        note(f"Sendrecv_replace null {what}", lambda: comm.Sendrecv_replace(
            buf, MPI.PROC_NULL, source=MPI.PROC_NULL))  # fmt: skip
    for name in ("send", "ssend", "bsend"):
        note(f"{name} null", lambda: getattr(comm, name)(lambda: 3, MPI.PROC_NULL))
    for name in ("isend", "issend", "ibsend"):
        note(f"{name} null", lambda: getattr(comm, name)(lambda: 3, MPI.PROC_NULL).wait())
    note("recv null", lambda: comm.recv(source=MPI.PROC_NULL))
    note("irecv null", lambda: comm.irecv(source=MPI.PROC_NULL).wait())
    note("sendrecv null", lambda: comm.sendrecv(
        lambda: 3, MPI.PROC_NULL, source=MPI.PROC_NULL))  # fmt: skip
    for tag in (-1, 1 << 30, 5):
        note(f"tag {tag}", lambda: comm.Send(ints(1), MPI.PROC_NULL, tag))
        note(f"tag {tag} recv", lambda: comm.Recv(ints(1), MPI.PROC_NULL, tag))
    for name in ("Probe", "Iprobe", "Mprobe", "Improbe"):
        note(f"{name} null", lambda: bool(getattr(comm, name)(MPI.PROC_NULL)))
    status = MPI.Status()
    comm.Recv(ints(1), MPI.PROC_NULL, status=status)
    note("status null", lambda: [status.source, status.tag, status.Get_count(MPI.INT)])


def again(name, buf):
    request = getattr(comm, f"{name}_init")(buf, MPI.PROC_NULL)
    request.Start()
    request.Wait()
    request.Free()


def not_significant():
    """Arguments of ranks for which they are not significant."""
    for what, buf in NOTHING.items():
        out, into = ints(rank, rank), ints(-1, -1, -1, -1)
        mine = into if rank == 0 else buf

        def reduce():
            comm.Reduce(out, into[:2] if rank == 0 else buf)
            return into

        for name in ("Gather", "Gatherv"):
            note(f"{name} {what}", lambda: (getattr(comm, name)(out, mine), into)[1])
            form = f"I{name.lower()}"
            note(f"{form} {what}", lambda: (getattr(comm, form)(out, mine).Wait(), into)[1])
        for name in ("Scatter", "Scatterv"):
            sent = ints(1, 2, 3, 4) if rank == 0 else buf
            take = ints(-1, -1)
            note(f"{name} {what}", lambda: (getattr(comm, name)(sent, take), take)[1])
        note(f"Reduce {what}", reduce)


def in_place():
    """IN_PLACE where MPI allows it, and elsewhere."""
    place = MPI.IN_PLACE
    for name in ("Allgather", "Alltoall", "Allreduce", "Scan", "Exscan", "Reduce_scatter_block"):
        for form in (name, f"I{name.lower()}", f"{name}_init"):

            def call():
                data = ints(*range(10 * rank, 10 * rank + 4))
                request = getattr(comm, form)(place, data)
                if form.endswith("init"):
                    request.Start()
                if request is not None:
                    request.Wait()
                count = 2 if name == "Reduce_scatter_block" else 4
                return None if name == "Exscan" and rank == 0 else data[:count]

            note(f"{form} in place", call)
    for name in ("Allgatherv", "Alltoallv"):
        data = ints(rank, rank + 1, rank + 2, rank + 3)
        blocks = [data, ([2, 2], [0, 2]), MPI.INT]
        note(f"{name} in place", lambda: (getattr(comm, name)(place, blocks), data)[1])
    data = ints(rank, rank + 1)
    note("Alltoallw in place", lambda: (comm.Alltoallw(
        place, [data, ([1, 1], [0, 4]), [MPI.INT] * 2]), data)[1])  # fmt: skip
    for name in ("Reduce", "Gather", "Scatter"):
        data = ints(*range(10 * rank, 10 * rank + 4))
        if name == "Reduce":
            pair = (place, data) if rank == 0 else (data, None)
        elif name == "Gather":
            pair = (place, data) if rank == 0 else (data[:2], None)
        else:
            pair = (data, place) if rank == 0 else (None, data[:2])
        note(f"{name} in place", lambda: (getattr(comm, name)(*pair), data)[1])
    # One rank alone can find these errors.
    one = MPI.COMM_SELF
    note("Bcast of IN_PLACE", lambda: one.Bcast(place))
    for name in ("Allgather", "Allreduce", "Scan", "Alltoall", "Gather", "Reduce", "Exscan"):
        note(f"{name} into IN_PLACE", lambda: getattr(one, name)(ints(1), place))
        note(f"{name} IN_PLACE twice", lambda: getattr(one, name)(place, place))


def zero_counts():
    for count in (0, None):
        for datatype in (MPI.INT, MPI.DOUBLE):  # MPICH aborts with DATATYPE_NULL
            kind = datatype.name
            buf = [None, count, datatype]
            note(f"Bcast {count} {kind}", lambda: comm.Bcast(buf))
            note(f"Allreduce {count} {kind}", lambda: comm.Allreduce(buf, buf))
            note(f"Gather {count} {kind}", lambda: comm.Gather(buf, buf))
            note(f"Alltoall {count} {kind}", lambda: comm.Alltoall(buf, buf))
            note(f"Allgather {count} {kind}", lambda: comm.Allgather(buf, buf))
            note(f"Scan {count} {kind}", lambda: comm.Scan(buf, buf))
            note(f"Send {count} {kind}", lambda: comm.Isend(buf, peer).Free())
            note(f"Recv {count} {kind}", lambda: comm.Recv(buf, peer))
    with_file()


def with_file():
    path = sys.argv[1] + ".data"
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    for what in ("None", "[None, 0]", "[None, 0, INT]", "empty", "b''", "[]", "3", "IN_PLACE",
                 "uncommitted"):  # fmt: skip
        for name in ("Write", "Read", "Write_at_all", "Read_at_all", "Write_ordered"):
            arguments = ([0] if "_at" in name else []) + [NOTHING[what]]
            note(f"{name} {what}", lambda: getattr(file, name)(*arguments))
    file.Close()
    if rank == 0:
        os.unlink(path)


for kind in (accumulates, ignored_peers, not_significant, in_place, zero_counts):
    kind()
everything = comm.gather(outcomes)
if everything is not None:
    with open(sys.argv[1], "w") as stream:
        json.dump(everything, stream)
