"""An interpreter of small MPI programs that are data, for comparing MPI implementations.

    random_program.py PROGRAMS.json RESULTS.json

A program is {"comms": [...], "steps": [...]}. Ranks, roots and counts in it are any numbers >= 0;
they are taken modulo the size of the communicator, so a program is valid for every number of ranks.
All members of a communicator do a step together and finish it before the next, which keeps programs
free of deadlocks; the messages of a step depend on nothing but the program.
"""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np
from mpi4py import MPI

ELEMENTS = {"i2": MPI.INT16_T, "i4": MPI.INT32_T, "u8": MPI.UINT64_T, "f8": MPI.DOUBLE}
SENTINEL = 0xA5


def show(data):
    """Received bytes, short enough to compare and to read."""
    data = bytes(data)
    return data.hex() if len(data) <= 64 else hashlib.sha1(data).hexdigest()


# Datatypes


def build(spec):
    """The committed datatype of a description such as ["vector", 2, 1, 3, "i4"]."""
    if isinstance(spec, str):
        return ELEMENTS[spec].Dup().Commit()
    kind, *arguments, inner = spec
    parts = [build(part) for part in inner] if kind == "struct" else [build(inner)]
    base = parts[0]
    _, extent = base.Get_extent()
    if kind == "contiguous":
        made = base.Create_contiguous(*arguments)
    elif kind == "vector":
        count, block, gap = arguments
        made = base.Create_vector(count, block, block + gap)
    elif kind == "hvector":
        count, block, gap = arguments
        made = base.Create_hvector(count, block, (block + gap) * extent)
    elif kind in ("indexed", "hindexed"):
        lengths, gaps = arguments
        starts, at = [], 0
        for length, gap in zip(lengths, gaps, strict=True):
            starts.append(at + gap)
            at += gap + length
        if kind == "indexed":
            made = base.Create_indexed(lengths, starts)
        else:
            made = base.Create_hindexed(lengths, [start * extent for start in starts])
    elif kind == "indexed_block":
        length, gaps = arguments
        starts = [sum(gaps[: i + 1]) + i * length for i in range(len(gaps))]
        made = base.Create_indexed_block(length, starts)
    elif kind == "struct":
        (lengths,) = arguments
        starts, at = [], 0
        for part, length in zip(parts, lengths, strict=True):
            starts.append(at)
            lower, extent = part.Get_extent()
            # The next multiple of 16 keeps elements aligned and blocks apart.
            at = (at + max(lower, 0) + length * extent + 31) // 16 * 16
        plain = MPI.Datatype.Create_struct(lengths, starts, parts)
        # A lower bound of a part above its data would let elements overlap.
        made = plain.Create_resized(min(plain.lb, 0), at - min(plain.lb, 0))
        plain.Free()
    elif kind == "subarray":
        sizes, parts_of, starts, fortran = arguments
        order = MPI.ORDER_FORTRAN if fortran else MPI.ORDER_C
        made = base.Create_subarray(sizes, parts_of, starts, order)
    elif kind == "resized":
        lower, more = arguments
        true_lower, true_extent = base.Get_true_extent()
        made = base.Create_resized(lower, true_lower + true_extent + more)
    else:
        raise ValueError(kind)
    for part in parts:
        part.Free()
    return made.Commit()


def element_of(spec):
    """The one predefined datatype that a description is made of; None: several."""
    if isinstance(spec, str):
        return spec
    inner = spec[-1]
    found = {element_of(part) for part in inner} if spec[0] == "struct" else {element_of(inner)}
    return found.pop() if len(found) == 1 else None


class Place:
    """Memory for some items of a datatype; bytes around them show stray writes."""

    def __init__(self, datatype, count, salt=None, blocks=1):
        lower, extent = datatype.Get_extent()
        true_lower, true_extent = datatype.Get_true_extent()
        room = 64 + abs(lower) + abs(true_lower)
        room += (count * blocks + 1) * max(extent, true_extent, 1)
        self.memory = np.full(room, SENTINEL, "u1")
        if salt is not None:
            self.memory[:] = (np.arange(room) * 31 + salt * 17 + 5) % 251
        self.spec = [self.memory, count, datatype]

    def shown(self):
        return show(self.memory)


def numbers(dtype, count, salt):
    """Small numbers: sums and products in any order are the same."""
    return ((np.arange(count) * 5 + salt * 3) % 4 + 1).astype(dtype)


def thing(kind, salt):
    """A Python object."""
    if kind == "int":
        return salt * 7 + 1
    if kind == "str":
        return "x" * (salt % 5) + str(salt)
    if kind == "dict":
        return {"rank": salt, "list": [salt] * 3, "none": None}
    if kind == "bytes":
        return bytes([salt % 256]) * 3000
    return numbers("f8", 4 + salt % 3, salt).tolist()


# Communicators


def communicator(parent, spec):
    """A new communicator from its parent."""
    kind, a, b = spec["kind"], spec["a"], spec["b"]
    rank, size = parent.Get_rank(), parent.Get_size()
    if kind == "dup":
        return parent.Dup()
    if kind == "clone":
        return parent.Clone()
    if kind == "split":
        color = MPI.UNDEFINED if (rank + b) % 5 == 4 else (rank * a + b) % 2
        return parent.Split(color, (rank * (a + 1)) % 3 - 1)
    if kind in ("create", "create_group"):
        # Any order of some of the ranks.
        chosen = [(i * (1 if b % 2 else -1) + a) % size for i in range(1 + (a + b) % size)]
        everybody = parent.Get_group()
        group = everybody.Incl(chosen)
        everybody.Free()
        if kind == "create":
            made = parent.Create(group)
        else:
            made = parent.Create_group(group, 3) if rank in chosen else MPI.COMM_NULL
        group.Free()
        return made
    if kind == "cart":
        dims = MPI.Compute_dims(size, 1 + a % 2)
        return parent.Create_cart(dims, [bool((b >> i) & 1) for i in range(len(dims))])
    if kind == "ring":
        near = [(rank + 1 + a) % size, (rank + b) % size]
        back = [(rank - 1 - a) % size, (rank - b) % size]
        return parent.Create_dist_graph_adjacent(back, near)
    raise ValueError(kind)


def describe(comm, parent):
    """The view of a rank on its communicator."""
    if comm == MPI.COMM_NULL:
        return "null"
    group, above = comm.Get_group(), parent.Get_group()
    seen = [
        comm.Get_rank(), comm.Get_size(), MPI.Comm.Compare(comm, parent), comm.Get_topology(),
        list(group.Translate_ranks(range(group.Get_size()), above)),
    ]  # fmt: skip
    if comm.Get_topology() == MPI.CART:
        seen += [[list(x) for x in comm.Get_topo()], list(comm.Shift(0, 1))]
    group.Free()
    above.Free()
    return seen


# Point-to-point


def start_send(comm, how, spec, dest, tag):
    """Begin to send; the request, or None where the call is blocking."""
    if how == "Send_init":
        request = comm.Send_init(spec, dest, tag)
        request.Start()
        return request
    return getattr(comm, how)(spec, dest, tag)


def receive(comm, how, spec, source, tag):
    """Receive one message; its status."""
    status = MPI.Status()
    if how == "Irecv":
        comm.Irecv(spec, source, tag).Wait(status)
    elif how == "Recv_init":
        request = comm.Recv_init(spec, source, tag)
        request.Start()
        request.Wait(status)
        request.Free()
    elif how == "Mprobe":
        comm.Mprobe(source, tag).Recv(spec, status)
    elif how == "Probe":
        comm.Probe(source, tag, status)
        comm.Recv(spec, status.Get_source(), status.Get_tag(), status)
    elif how == "Improbe":
        while (message := comm.Improbe(source, tag)) is None:
            pass
        message.Irecv(spec).Wait(status)
    else:
        comm.Recv(spec, source, tag, status)
    return status


def told(status, datatype, spec):
    """The values of a status of a message; `spec` describes the datatype."""
    seen = [
        status.Get_source(), status.Get_tag(), status.Get_count(datatype),
        status.Get_count(MPI.BYTE),
    ]  # fmt: skip
    # Of some structs MPICH 5.0.2 cannot count the elements: it stops with a floating point error.
    return seen if "struct" in json.dumps(spec) else [*seen, status.Get_elements(datatype)]


def finish(request):
    if request is not None:
        request.Wait()
        if request != MPI.REQUEST_NULL:
            request.Free()


def pair(comm, step):
    """One message from a rank to another, of perhaps fewer items than the receiver has room."""
    rank, size = comm.Get_rank(), comm.Get_size()
    source = step["a"] % size
    dest = (source + 1 + step["b"] % max(size - 1, 1)) % size
    datatype, count, tag = build(step["type"]), step["count"], step["salt"]
    out, into = Place(datatype, count, tag + 1), Place(datatype, count + step["b"] % 3)
    seen, request = None, None
    flat = element_of(step["type"]) if step["flat"] else None
    if flat:
        room = count * datatype.Get_size() // ELEMENTS[flat].Get_size() + step["b"] % 3
        into = Place(ELEMENTS[flat], room)
    if rank == source:
        how = step["send"] if source != dest else "Isend"
        if how == "Bsend":
            MPI.Attach_buffer(bytearray(datatype.Get_size() * count + MPI.BSEND_OVERHEAD + 64))
        request = start_send(comm, how, out.spec, dest, tag)
    if rank == dest:
        where = MPI.ANY_SOURCE if step["any"] else source
        status = receive(comm, step["recv"], into.spec, where, MPI.ANY_TAG if step["any"] else tag)
        seen = [into.shown(), *told(status, into.spec[2], step["type"])]
    finish(request)
    if rank == source and step["send"] == "Bsend" and source != dest:
        MPI.Detach_buffer()
    # A wildcard must not take a message of the next step.
    comm.Barrier()
    datatype.Free()
    return seen


def shift(comm, step):
    """All ranks send to the rank some places on."""
    rank, size = comm.Get_rank(), comm.Get_size()
    dest, source = (rank + step["a"]) % size, (rank - step["a"]) % size
    datatype, count, tag = build(step["type"]), step["count"], step["salt"]
    out, into = Place(datatype, count, rank + tag), Place(datatype, count)
    how = step["send"]
    if how in ("Send", "Ssend", "Bsend"):
        status = MPI.Status()
        if how == "Ssend":
            into = out
            comm.Sendrecv_replace(out.spec, dest, tag, source, tag, status)
        else:
            comm.Sendrecv(out.spec, dest, tag, into.spec, source, tag, status)
    else:
        request = start_send(comm, how, out.spec, dest, tag)
        status = receive(comm, step["recv"], into.spec, source, tag)
        finish(request)
    seen = [into.shown(), *told(status, datatype, step["type"])]
    datatype.Free()
    return seen


def fan(comm, step):
    """All ranks send messages with tags of their own to a root that takes them from any source."""
    rank, size, root = comm.Get_rank(), comm.Get_size(), step["a"] % comm.Get_size()
    each, count = 1 + step["b"] % 3, step["count"]
    datatype = build(step["type"])
    requests, places, slots = [], [], []
    if rank == root:
        slots = [(who, k) for who in range(size) for k in range(each)]
        slots.sort(key=lambda slot: (slot[0] * 7 + slot[1] * 3 + step["salt"]) % 11)
        for who, k in slots:
            places.append(Place(datatype, count + k))
            requests.append(comm.Irecv(places[-1].spec, MPI.ANY_SOURCE, who * 10 + k))
    outs = [Place(datatype, count, rank * 3 + k) for k in range(each)]
    sends = [comm.Isend(out.spec, root, rank * 10 + k) for k, out in enumerate(outs)]
    statuses = [MPI.Status() for _ in requests]
    way = step["wait"]
    if way == "any":
        for _ in range(len(requests)):
            status = MPI.Status()
            index = MPI.Request.Waitany(requests, status)
            statuses[index] = status
    elif way == "some":
        left = len(requests)
        while left:
            some = [MPI.Status() for _ in requests]
            done = MPI.Request.Waitsome(requests, some)
            for index, status in zip(done, some):
                statuses[index] = status
            left -= len(done)
    elif way == "test":
        while not MPI.Request.Testall(requests, statuses):
            pass
    else:
        MPI.Request.Waitall(requests, statuses)
    MPI.Request.Waitall(sends)
    # A wildcard must not take a message of the next step.
    comm.Barrier()
    seen = [
        [place.shown(), *told(status, datatype, step["type"])]
        for place, status in zip(places, statuses)
    ]
    datatype.Free()
    return seen


def objects(comm, step):
    """Python objects from all ranks to the rank some places on."""
    rank, size = comm.Get_rank(), comm.Get_size()
    dest, source = (rank + step["a"]) % size, (rank - step["a"]) % size
    tag, mine = step["salt"], thing(step["kind"], rank + step["salt"])
    way, status = step["way"], MPI.Status()
    if way == "sendrecv":
        got = comm.sendrecv(mine, dest, tag, None, source, tag, status)
    elif way == "blocking" and source != rank and step["a"] % size:
        # Some ranks must receive first: those for which no lower rank waits.
        first = rank < dest
        send = comm.ssend if step["b"] % 2 else comm.send
        if first:
            send(mine, dest, tag)
        got = comm.recv(None, source, tag, status)
        if not first:
            send(mine, dest, tag)
    else:
        request = (comm.issend if step["b"] % 2 else comm.isend)(mine, dest, tag)
        if way == "mprobe":
            got = comm.mprobe(source, tag).recv(status)
        elif way == "irecv":
            got = comm.irecv(None, source, tag).wait(status)
        else:
            got = comm.recv(None, MPI.ANY_SOURCE, tag, status)
        request.wait()
    # A wildcard must not take a message of the next step.
    comm.Barrier()
    return [got, status.Get_source(), status.Get_tag()]


# Everything else


def packing(comm, step):
    """Items through pack and unpack, and the properties of the datatype."""
    plain, count = build(step["type"]), step["count"]
    # Pack counts by the extent and the length of a buffer: items must lie inside of theirs.
    end = sum(plain.Get_true_extent())
    datatype = plain.Create_resized(0, (end + 7) // 8 * 8).Commit()
    out, into = Place(datatype, count, step["salt"]), Place(datatype, count)
    length = count * datatype.Get_extent()[1]
    box = np.full(datatype.Pack_size(count, comm) + 8, SENTINEL, "u1")
    end = datatype.Pack(out.memory[:length], box, 4, comm)
    datatype.Unpack(box, 4, into.memory[:length], comm)
    seen = [
        plain.Get_size(), *plain.Get_extent(), *plain.Get_true_extent(), plain.Get_envelope()[:-1],
        *datatype.Get_extent(), show(box[4:end]), end, into.shown(),
    ]  # fmt: skip
    if "struct" not in json.dumps(step["type"]):
        seen += external(datatype, count, out, length)
    datatype.Free()
    plain.Free()
    return seen


def external(datatype, count, out, length):
    """Items through external32: MPICH 5.0.2 crashes on some structs."""
    size = datatype.Pack_external_size("external32", count)
    outer, back = np.zeros(size, "u1"), Place(datatype, count)
    datatype.Pack_external("external32", out.memory[:length], outer, 0)
    datatype.Unpack_external("external32", outer, 0, back.memory[:length])
    return [size, show(outer), back.shown()]


def perform(comm, step):
    """Do a step; return the data that this rank has received."""
    from random_program_chapters import CHAPTERS
    from random_program_collectives import COLLECTIVES

    known = {"pair": pair, "shift": shift, "fan": fan, "objects": objects, "packing": packing}
    known |= COLLECTIVES | CHAPTERS
    return known[step["do"]](comm, step)


def run(program, world):
    """Do a program; return the observations of this rank at each communicator and step."""
    comms, seen = [world], []
    for spec in program["comms"]:
        parent = comms[spec["parent"] % len(comms)]
        made = MPI.COMM_NULL if parent == MPI.COMM_NULL else communicator(parent, spec)
        comms.append(made)
        seen.append("null" if parent == MPI.COMM_NULL else describe(made, parent))
    for step in program["steps"]:
        comm = comms[step["comm"] % len(comms)]
        seen.append(None if comm == MPI.COMM_NULL else perform(comm, step))
    for comm in comms[:0:-1]:
        if comm != MPI.COMM_NULL:
            comm.Free()
    return seen


def main(source, target):
    with open(source) as stream:
        programs = json.load(stream)
    found = []
    for number, program in enumerate(programs):
        try:
            found.append(run(program, MPI.COMM_WORLD))
        except BaseException:
            print(f"program {number}: {json.dumps(program)}", file=sys.stderr, flush=True)
            raise
    # Bytes are not JSON's.
    everything = MPI.COMM_WORLD.gather(json.dumps(found, default=show))
    if everything is not None:
        with open(target, "w") as stream:
            json.dump([json.loads(one) for one in everything], stream)


if __name__ == "__main__":
    # The collective steps import this file by its name.
    sys.modules["random_program"] = sys.modules["__main__"]
    main(sys.argv[1], sys.argv[2])
