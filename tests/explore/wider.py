"""Random programs of all calls whose answers MPI leaves open; `every_order` is their model.

Their messages are numbers in arrays, so that persistent and partitioned requests can have them.
"""

from __future__ import annotations

import os
import random
import tempfile
from typing import Any

from every_order import ANY, Operation, Program, value_of


class Requests:
    """The requests of a rank, with the arrays of their messages."""

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.arrays: dict[Any, Any] = {}
        self.receives: list[Any] = []
        self.wildcards: list[Any] = []
        self.log: list[Any] = []

    def add(self, request: Any, array: Any = None, receives: bool = False) -> Any:
        """Remember a request that was started."""
        self.open.append(request)
        self.arrays[id(request)] = request, array
        if receives:
            self.receives.append(request)
        return request

    def result(self, request: Any) -> int:
        """The value that the log gets for a complete request."""
        array = self.arrays[id(request)][1]
        return int(array[0]) if any(one is request for one in self.receives) else -1

    def end(self, *indices: int) -> list[int]:
        """Forget complete requests; return what is logged of them."""
        ended = [self.open[i] for i in indices]
        self.open = [one for i, one in enumerate(self.open) if i not in indices]
        return [self.result(one) for one in ended]


def run(program: Program) -> list[Any]:
    """The program of a rank for mpi4py; returns its log."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comms = comm, comm.Dup()
    barriers = comm.Dup()
    status = MPI.Status()
    requests = Requests()
    log = requests.log
    persistent: dict[int, Any] = {}
    kinds = {op[0] for ops in program for op in ops}
    origins = []  # of accesses that may be under way
    first = second = file = None
    if "words" in kinds:
        first, second = (MPI.Win.Allocate(8, 8, comm=comm) for _ in range(2))
        for win in (first, second):
            np.frombuffer(win.tomemory(), "i8")[0] = 0
        name = ""
        if comm.rank == 0:
            descriptor, name = tempfile.mkstemp(suffix=".orders")
            os.close(descriptor)
        file = MPI.File.Open(comm, comm.bcast(name), MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
        comm.Barrier()
        first.Lock_all()

    def number(value: int = -1) -> Any:
        return np.array([value], "i8")

    def origin(value: int) -> Any:
        origins.append(number(value + 1))
        return origins[-1]

    for step, (kind, *rest) in enumerate(program[comm.rank]):
        value = value_of(comm.rank, step)
        open_requests = requests.open
        here, (source, tag) = comm, (MPI.ANY_SOURCE, MPI.ANY_TAG)
        if len(rest) >= 2 and kind not in ("pready", "parrived", "swap", "lock"):
            here = comms[rest[2] if len(rest) == 3 else 0]
            source = MPI.ANY_SOURCE if rest[0] == ANY else rest[0]
            tag = MPI.ANY_TAG if rest[1] == ANY else rest[1]
        array = number()
        if kind in ("send", "ssend"):
            getattr(here, kind.title())(number(value), source, tag)
        elif kind in ("isend", "issend"):
            array[0] = value
            requests.add(getattr(here, kind.title())(array, source, tag), array)
        elif kind == "recv":
            here.Recv(array, source, tag)
            log.append(int(array[0]))
        elif kind == "irecv":
            request = requests.add(here.Irecv(array, source, tag), array, receives=True)
            if rest[0] == ANY:
                requests.wildcards.append(request)
        elif kind == "init_send":
            array[0] = value
            persistent[step] = requests.add(here.Ssend_init(array, source, tag), array)
            persistent[step].Start()
        elif kind == "init_recv":
            persistent[step] = requests.add(here.Recv_init(array, source, tag), array, True)
            persistent[step].Start()
            if rest[0] == ANY:
                requests.wildcards.append(persistent[step])
        elif kind == "start":
            request = persistent[rest[0]]
            if not any(one is request for one in open_requests):
                if not any(one is request for one in requests.receives):
                    requests.arrays[id(request)][1][0] = value
                open_requests.append(request)
                request.Start()
        elif kind == "psend":
            array = np.array([value, value], "i8")
            persistent[step] = requests.add(comm.Psend_init(array, 2, source, tag), array)
            persistent[step].Start()
        elif kind == "precv":
            array = np.zeros(2, "i8")
            persistent[step] = requests.add(comm.Precv_init(array, 2, source, tag), array)
            persistent[step].Start()
        elif kind == "pready":
            persistent[rest[0]].Pready(rest[1])
        elif kind == "parrived":
            log.append(1 if persistent[rest[0]].Parrived(rest[1]) else None)
        elif kind == "probe":
            here.Probe(source, tag, status)
            log.append(status.source)
            here.Recv(array, source, tag)
            log.append(int(array[0]))
        elif kind == "follow":
            here.Probe(source, tag, status)
            here.Recv(array, status.source, status.tag)
            log.append(int(array[0]))
        elif kind == "mprobe":
            here.Mprobe(source, tag).Recv(array)
            log.append(int(array[0]))
        elif kind == "poll":
            while (message := here.Improbe(source, tag)) is None:
                pass
            message.Recv(array)
            log.append(int(array[0]))
        elif kind == "iprobe":
            log.append(status.source if here.Iprobe(source, tag, status) else None)
        elif kind == "improbe":
            message = here.Improbe(source, tag)
            if message is not None:
                message.Recv(array)
            log.append(None if message is None else int(array[0]))
        elif kind == "ibarrier":
            requests.add(barriers.Ibarrier())
        elif kind == "barrier":
            comm.Barrier()
        elif kind == "waitall":
            MPI.Request.Waitall(open_requests)
            log += requests.end(*range(len(open_requests)))
        elif kind in ("add", "fetch", "swap", "flush"):
            (target, *expected) = rest
            if kind == "add":
                first.Accumulate(origin(value), target)
            elif kind == "fetch":
                first.Fetch_and_op(origin(value), array, target)
                first.Flush(target)
                log.append(int(array[0]))
            elif kind == "swap":
                first.Compare_and_swap(origin(value), number(*expected), array, target)
                first.Flush(target)
                log.append(int(array[0]))
            else:
                first.Flush(target)
        elif kind == "lock":
            second.Lock(rest[0], MPI.LOCK_EXCLUSIVE if rest[1] else MPI.LOCK_SHARED)
        elif kind == "unlock":
            second.Unlock(rest[0])
        elif kind == "put":
            second.Put(origin(value), rest[0])
            second.Flush(rest[0])
        elif kind == "get":
            second.Get(array, rest[0])
            second.Flush(rest[0])
            log.append(int(array[0]))
        elif kind == "plus":
            second.Accumulate(origin(value), rest[0])
        elif kind == "write":
            file.Write_shared(origin(value))
        elif kind == "words":
            first.Unlock_all()
            comm.Barrier()
            log += [int(np.frombuffer(win.tomemory(), "i8")[0]) for win in (first, second)]
            content = np.empty(file.Get_size() // 8, "i8")
            file.Read_at(0, content)
            log += map(int, content)
            comm.Barrier()
            first.Free()
            second.Free()
            file.Close()
        elif kind == "testall":
            if not open_requests:
                continue
            if MPI.Request.Testall(open_requests):
                log += requests.end(*range(len(open_requests)))
            else:
                log.append(None)
        elif not open_requests:
            continue
        elif kind == "cancel":
            request = open_requests[0]
            if any(one is request for one in requests.wildcards):
                request.Cancel()
                request.Wait(status)
                (result,) = requests.end(0)
                log.append(-1 if status.Is_cancelled() else result)
        elif kind == "test":
            log += requests.end(0) if open_requests[0].Test() else [None]
        elif kind == "spin":
            while not open_requests[0].Test():
                pass
            log += requests.end(0)
        elif kind == "status":
            log.append(1 if open_requests[0].Get_status() else None)
        elif kind == "testany":
            i, done = MPI.Request.Testany(open_requests)
            log += requests.end(i) if done else [None]
        elif kind == "waitany":
            log += requests.end(MPI.Request.Waitany(open_requests))
        elif kind in ("waitsome", "testsome"):
            indices = getattr(MPI.Request, kind.title())(open_requests)
            if indices or kind == "waitsome":
                log.append(tuple(requests.end(*indices)))
            else:
                log.append(None)
        else:
            raise AssertionError(kind)
    return log


TESTS = ("test", "testany", "testsome", "testall", "status")
ENDS = ("waitany", "waitsome", "waitall", "spin", "cancel")


class Draft:
    """A random program of 2 to 4 ranks in the making."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.count = self.draw.choice((2, 3, 3, 3, 4))
        self.parts: list[list[Operation]] = [[] for _ in range(self.count)]
        self.tested: set[int] = set()

    def two(self) -> tuple[int, int]:
        source, target = self.draw.sample(range(self.count), 2)
        return source, target

    def test(self, rank: int, *, most: float) -> None:
        """Sometimes insert a test; a search refuses one only once in a row."""
        if rank not in self.tested and self.draw.random() < most:
            self.tested.add(rank)
            parts = self.parts[rank]
            test: Operation = (self.draw.choice(TESTS),)
            if self.draw.random() < 0.4:
                test = (self.draw.choice(("iprobe", "improbe")), ANY, self.draw.choice((ANY, 0)))
            parts.insert(len(parts) - self.draw.randrange(2), test)

    def message(self, center: int) -> None:
        """A message, and mostly a receive."""
        draw = self.draw
        source, target = self.two()
        if source != center and draw.random() < 0.6:
            target = center
        tag = draw.randrange(2)
        comm = (1,) if draw.random() < 0.25 else ()
        kind = draw.choice(("send", "ssend", "isend", "issend", "init_send"))
        if kind == "init_send":
            comm = ()
        self.parts[source].append((kind, target, tag, *comm))
        if draw.random() < 0.05:
            return
        wanted = ANY if draw.random() < 0.7 else source
        label = ANY if draw.random() < 0.5 else tag
        kind = draw.choice(("recv", "irecv", "irecv", "probe", "follow", "mprobe", "poll",
                            "init_recv"))  # fmt: skip
        if kind == "init_recv" and comm:
            kind = "irecv"
        self.parts[target].append((kind, wanted, label, *comm))
        self.test(target, most=0.3)
        if draw.random() < 0.3:
            self.parts[target].append((draw.choice(ENDS),))

    def again(self) -> None:
        """A second message of a persistent request, and its receive."""
        for rank, ops in enumerate(self.parts):
            for i, op in enumerate(ops):
                if op[0] in ("init_send", "init_recv") and self.draw.random() < 0.5:
                    other = op[1]
                    if other == ANY:
                        other = (rank + 1) % self.count
                    tag = max(op[2], 0)
                    if op[0] == "init_send":
                        self.parts[other].append(("irecv", ANY, tag))
                    else:
                        self.parts[other].append(("send", rank, tag))
                    ops += [("waitall",), ("start", i)]
                    return

    def partitions(self) -> None:
        """A partitioned message."""
        draw = self.draw
        source, target = self.two()
        tag = draw.randrange(2)
        sends, receives = self.parts[source], self.parts[target]
        i = len(sends)
        sends.append(("psend", target, tag))
        order = draw.sample(range(2), 2)
        sends += [("pready", i, order[0]), *self.some_message(source), ("pready", i, order[1])]
        j = len(receives)
        receives.append(("precv", source, tag))
        if target not in self.tested:
            self.tested.add(target)
            receives.append(("parrived", j, draw.randrange(2)))

    def some_message(self, source: int) -> list[Operation]:
        """Perhaps a send that another rank receives."""
        if self.draw.random() < 0.5:
            return []
        target = self.draw.choice([rank for rank in range(self.count) if rank != source])
        self.parts[target].append(("irecv", ANY, 0))
        return [("send", target, 0)]

    def access(self, center: int) -> None:
        """Accesses to a window, or to the file."""
        draw = self.draw
        rank = draw.randrange(self.count)
        ops = self.parts[rank]
        kind = draw.choice(("add", "add", "fetch", "swap", "flush", "exclusive", "shared", "write"))
        if kind == "exclusive":
            inner = [(draw.choice(("put", "get")), center) for _ in range(draw.randint(1, 2))]
            ops += [("lock", center, True), *inner, ("unlock", center)]
        elif kind == "shared":
            ops += [("lock", center, False), ("plus", center), ("unlock", center)]
        elif kind == "swap":
            ops.append(("swap", center, draw.choice((0, 0, value_of(rank, len(ops)) + 1))))
        elif kind == "write":
            ops.append(("write",))
        else:
            ops.append((kind, center))

    def barrier(self) -> None:
        """A barrier that does not block, and perhaps a request that is complete after it."""
        for rank, ops in enumerate(self.parts):
            ops.append(("ibarrier",))
            if self.draw.random() < 0.4:
                ops.append((self.draw.choice(("waitany", "waitsome", "spin")),))
            self.test(rank, most=0.3)


THEMES = ("messages", "persistent", "partitions", "accesses", "mixed", "barriers")


def wider_program(seed: int) -> Program:
    """A program of one of the themes in turn."""
    draft = Draft(seed)
    draw = draft.draw
    theme = THEMES[seed % len(THEMES)]
    accesses = theme in ("accesses", "mixed")
    center = draw.randrange(draft.count)
    for _ in range(draw.randint(1, 2) if theme != "messages" else draw.randint(2, 4)):
        draft.message(center)
    if theme == "persistent":
        draft.again()
        draft.message(center)
    elif theme == "partitions":
        for _ in range(draw.randint(1, 2)):
            draft.partitions()
    elif accesses:
        for _ in range(draw.randint(2, 4) if theme == "accesses" else 2):
            draft.access(center)
        if theme == "mixed":
            draft.message(center)
            draft.access(center)
    elif theme == "barriers":
        draft.barrier()
        draft.message(center)
    for ops in draft.parts:
        ops.append(("waitall",))
        if accesses:
            ops.append(("words",))
    return tuple(tuple(ops) for ops in draft.parts)


def waiting(program: Program) -> Program:
    """The program as it is where standard sends wait for their receives."""
    kinds = {"send": "ssend", "isend": "issend"}
    return tuple(tuple((kinds.get(op[0], op[0]), *op[1:]) for op in ops) for ops in program)
