"""Collective calls with Python objects, lower-case as in mpi4py.

The messages are those of mpi4py 4.1: a collective of the sizes (8 bytes each), then one of the
pickled bytes. Reductions send from rank to rank along binomial trees, and call the operation on the
rank and at the time at which it has both operands. Pickling and the operation are compute of the
program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import Any, TypeVar

from pysmpi.kernel.schedule import Schedule
from pysmpi.mpi.base import options
from pysmpi.mpi.base.constants import ERR_INTERN, PROC_NULL, ROOT
from pysmpi.mpi.base.exceptions import cint, fail, listed
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.running import calling_rank
from pysmpi.mpi.buffers.pickling import dumped, pickle
from pysmpi.mpi.calls import computing, mpi
from pysmpi.mpi.collective.arguments import check_root
from pysmpi.mpi.collective.contribution import Contribution, WithoutData, run
from pysmpi.mpi.collective.schedules import scheduled_call
from pysmpi.mpi.groups.agreement import tag_of
from pysmpi.mpi.groups.between_groups import joint
from pysmpi.mpi.groups.communicator import Communicator, check_intact, located
from pysmpi.mpi.groups.locks import lock_of
from pysmpi.mpi.internal_errors import touches_program
from pysmpi.mpi.operators.operators import PREDEFINED, Op

SUM = PREDEFINED["SUM"]

SIZE_BYTES = 8  # of a size in the sizes' collective
UNLIMITED = 1 << 62

T = TypeVar("T")


def _locked(key: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Let one thread of a rank at a time do a call on a communicator: it takes two collectives."""

    def wrap(call: Callable[..., T]) -> Callable[..., T]:
        @wraps(call)
        def alone(comm: object, *args: object) -> T:
            with lock_of(comm, key):
                return call(comm, *args)

        return alone

    return wrap


class Objects(Contribution):
    """The sizes' collective: a rank contributes `data`, pickled once or for each rank."""

    __slots__ = ("data",)

    def __init__(
        self,
        rank: Rank,
        communicator: Communicator,
        me: int,
        op: str,
        data: object,
        root: int = 0,
    ) -> None:
        super().__init__(
            rank, communicator, me, scheduled_call(communicator, me, op, 1, SIZE_BYTES, root)
        )
        self.keeps = True
        self.data = data


def _exchange(comm: object, op: str, data: object, root: int = 0) -> Objects:
    """Execute the sizes' collective; its `values` then has the others' contributions."""
    rank = calling_rank()
    communicator, me = located(comm, rank)
    contribution = Objects(rank, communicator, me, op, data, root)
    run(comm, contribution)
    return contribution


def _data_of(contribution: Objects, rank: int) -> Any:
    """The contribution of a rank; an error if it has not entered, because calls of ranks differ."""
    other: Objects | None = contribution.values.get(rank)
    if other is None:
        fail(ERR_INTERN, f"rank {rank} makes another collective call")
    return other.data


def _carry(comm: object, sizes: Objects, op: str, count: int, **counts: Any) -> None:
    """Execute the collective of the pickled bytes for its time, and release the sizes."""
    sizes.forget()
    sizes.communicator.continue_call(sizes.me)
    first = sizes.call
    call = scheduled_call(sizes.communicator, sizes.me, op, count, root=first.root, **counts)
    run(comm, WithoutData(sizes.rank, sizes.communicator, sizes.me, call))


def _load(data: bytes) -> Any:
    return pickle.loads(data) if data else None


def dump_each(items: object, count: int) -> list[bytes]:
    """The pickled items of a list, one for each rank."""
    items = [None] * count if items is None else listed(items)
    if len(items) != count:
        raise ValueError(f"sendobj: expecting {count} items, got {len(items)}")
    return [dumped(item) for item in items]


def _roles(comm: object, root: int) -> tuple[bool, bool]:
    """Whether the rank is at the rooted end of the call, and whether at the other."""
    communicator, me = located(comm, calling_rank())
    if communicator.inter:
        return root == ROOT, root not in (ROOT, PROC_NULL)
    return root == me, True


@_locked("gather")
def gathered(comm: object, sendobj: object, root: int) -> list[bytes] | None:
    """The pickled objects of all ranks, at the root."""
    receives, sends = _roles(comm, root)
    data = dumped(sendobj) if sends else b""
    communicator, _ = located(comm, calling_rank())
    check_root(comm, communicator, root)
    contribution = _exchange(comm, "gather", data, root)
    if not receives:
        _carry(comm, contribution, "gatherv", len(data))
        return None
    objects = [_data_of(contribution, rank) for rank in range(len(contribution.values))]
    _carry(comm, contribution, "gatherv", len(data), recv_counts=tuple(map(len, objects)))
    return objects


@_locked("scatter")
def scattered(comm: object, items: list[bytes] | None, root: int) -> bytes:
    """The bytes that the root has for this rank."""
    _, receives = _roles(comm, root)
    communicator, me = located(comm, calling_rank())
    check_root(comm, communicator, root)
    contribution = _exchange(comm, "scatter", items, root)
    data = _data_of(contribution, root)[me] if receives else b""
    counts = None if items is None else tuple(map(len, items))
    _carry(comm, contribution, "scatterv", len(data), send_counts=counts)
    return data


@_locked("bcast")
def spread(comm: object, data: bytes, root: int) -> bytes:
    """The root's bytes, at all ranks."""
    _, receives = _roles(comm, root)
    communicator, _ = located(comm, calling_rank())
    check_root(comm, communicator, root)
    contribution = _exchange(comm, "bcast", data, root)
    if receives:
        data = _data_of(contribution, root)
    _carry(comm, contribution, "bcast", len(data))
    return data if receives else b""


@_locked("allgather")
def allgathered(comm: object, sendobj: object) -> list[bytes]:
    """The pickled objects of all ranks."""
    data = dumped(sendobj)
    contribution = _exchange(comm, "allgather", data)
    other = contribution.other
    if other.result is None:
        objects = [_data_of(contribution, rank) for rank in range(len(contribution.values))]
        other.result = (objects, tuple(map(len, objects)))
    objects, counts = other.result
    _carry(comm, contribution, "allgatherv", len(data), recv_counts=counts)
    return list(objects)


@_locked("alltoall")
def traded(comm: object, items: list[bytes]) -> list[bytes]:
    """The bytes of each rank for this one, in exchange for those of this one for each."""
    _, me = located(comm, calling_rank())
    contribution = _exchange(comm, "alltoall", items)
    received = [_data_of(contribution, rank)[me] for rank in range(len(contribution.values))]
    _carry(
        comm, contribution, "alltoallv", 0,
        send_counts=tuple(map(len, items)), recv_counts=tuple(map(len, received)),
    )  # fmt: skip
    return received


class Outbox(dict[tuple[bool, int], bytes]):
    """The pickled objects that a rank has sent in a reduction: by side and rank.

    `root` is that of the call, None if it has none.
    """

    __slots__ = ("root",)

    def __init__(self, root: int | None) -> None:
        super().__init__()
        self.root = root


class Tree:
    """A lower-case reduction: objects are sent from rank to rank and combined at each.

    With an intercommunicator, ranks are those of the own group by default.
    """

    def __init__(self, comm: object, root: int | None = None) -> None:
        communicator, me = located(comm, calling_rank())
        self.comm = comm
        self.communicator = communicator
        self.me = me
        self.size = communicator.size
        self.number = communicator.next_call(me)
        self.tag = tag_of(self.number, "reduction of objects")
        self.shared = communicator.enter(self.number, "reduction of objects", me, Outbox(root))
        self.remote_shared = self.shared.remote or self.shared
        self.context = communicator.coll
        self.first = self.remote_first = 0
        if communicator.inter:
            self.context, self.first, _ = joint(communicator)
            _, self.remote_first, _ = joint(communicator.remote)

    def _execute(self, schedule: Schedule) -> None:
        rank = current()
        rank.process.execute(schedule, self.context, self.first + self.me, self.tag)
        if self.communicator.revoked:
            check_intact(self.comm, self.communicator)

    def _side(self, remote: bool) -> tuple[int, Any]:
        return (self.remote_first, self.remote_shared) if remote else (self.first, self.shared)

    def _leave_for(self, obj: object, target: int, remote: bool) -> int:
        """Pickle an object for a rank; return its size."""
        data = dumped(obj)
        self.shared.values[self.me][remote, target] = data
        return len(data)

    def _arrived(self, source: int, remote: bool) -> Any:
        """The object that a rank has sent to this one."""
        _, shared = self._side(remote)
        return _load(shared.values[source].pop((remote, self.me)))

    def send(self, obj: object, target: int, remote: bool = False) -> None:
        """Send an object: its size, then its bytes."""
        first, _ = self._side(remote)
        nbytes = self._leave_for(obj, target, remote)
        schedule = Schedule()
        schedule.send(first + target, SIZE_BYTES)
        schedule.send(first + target, nbytes)
        self._execute(schedule)

    def receive(self, source: int, remote: bool = False) -> object:
        """Receive an object."""
        first, _ = self._side(remote)
        schedule = Schedule()
        schedule.recv(first + source, SIZE_BYTES)
        schedule.recv(first + source, UNLIMITED)
        self._execute(schedule)
        return self._arrived(source, remote)

    def swap(self, obj: object, peer: int, remote: bool = False) -> object:
        """Send an object to a rank and receive one from it."""
        first, _ = self._side(remote)
        nbytes = self._leave_for(obj, peer, remote)
        peer_rank = first + peer
        schedule = Schedule()
        schedule.sendrecv(peer_rank, SIZE_BYTES, peer_rank, SIZE_BYTES)
        schedule.sendrecv(peer_rank, nbytes, peer_rank, UNLIMITED)
        self._execute(schedule)
        return self._arrived(peer, remote)

    @touches_program
    def reduce(self, obj: object, op: Callable[[object, object], object], root: int) -> object:
        """Combine along a binomial tree to rank 0, in the order of ranks; then to the root.

        As in mpi4py, ranks that have sent their object still take part in later rounds.
        """
        me = self.me
        result = _load(dumped(obj))
        mask = 1
        while mask < self.size:
            if me & mask:
                self.send(result, me & ~mask)
            elif me | mask < self.size:
                other = self.receive(me | mask)
                with computing():
                    result = op(result, other)
            mask <<= 1
        if root != 0:
            if me == 0:
                self.send(result, root)
            elif me == root:
                result = self.receive(0)
        return result if me == root else None

    @touches_program
    def scan(self, obj: object, op: Callable[[object, object], object], exclusive: bool) -> object:
        """Combine by recursive doubling; `partial` holds the result of a block of ranks."""
        me = self.me
        result = _load(dumped(obj))
        partial = result
        fresh = exclusive
        mask = 1
        while mask < self.size:
            peer = me ^ mask
            if peer < self.size:
                other = self.swap(partial, peer)
                with computing():
                    if me > peer:
                        partial = op(other, partial)
                        result = other if fresh else op(other, result)
                        fresh = False
                    else:
                        partial = op(partial, other)
            mask <<= 1
        return None if exclusive and me == 0 else result

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *exception: object) -> None:
        """The rank is done, or the operation has raised."""
        self.communicator.exit(self.shared, self.me)


def _fast() -> bool:
    """Whether `mpi4py.rc.fast_reduce` is set (the default)."""
    return options.of_rank().options.fast_reduce


@touches_program
def _folded(items: Sequence[object], op: Callable[[object, object], object]) -> object:
    with computing():
        return reduce(op, items)


@touches_program
def _running(items: Sequence[object], op: Callable[[object, object], object]) -> list[object]:
    with computing():
        results = list(items[:1])
        for item in items[1:]:
            results.append(op(results[-1], item))
    return results


def _prefixes(
    comm: object, sendobj: object, op: Callable[[object, object], object], exclusive: bool
) -> object:
    """A scan without trees: rank 0 does all the work."""
    data = gathered(comm, sendobj, 0)
    items = None
    if data is not None:
        results = _running([_load(item) for item in data], op)
        if exclusive:
            results = [None, *results[:-1]]
        items = dump_each(results, len(data))
    communicator, me = located(comm, calling_rank())
    communicator.continue_call(me)
    return _load(scattered(comm, items, 0))


class ObjectCollectives:
    """The lower-case collective methods of every communicator."""

    __slots__ = ()

    @mpi.collective("6.3")
    def barrier(self) -> None:
        """Barrier synchronization.

        .. note:: This method is equivalent to `Comm.Barrier`.
        """
        rank = calling_rank()
        communicator, me = located(self, rank)
        run(self, WithoutData(rank, communicator, me, scheduled_call(communicator, me, "barrier")))

    @mpi.collective("6.4")
    def bcast(self, obj: object, root: int = 0) -> Any:
        """Broadcast."""
        root = cint(root)
        sends, receives = _roles(self, root)
        if sends:
            data = spread(self, dumped(obj), root)
            return _load(data) if _is_intra(self) else None
        data = spread(self, b"", root)
        return _load(data) if receives else None

    @mpi.collective("6.5")
    def gather(self, sendobj: object, root: int = 0) -> list[Any] | None:
        """Gather."""
        data = gathered(self, sendobj, cint(root))
        return None if data is None else [_load(item) for item in data]

    @mpi.collective("6.6")
    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Scatter."""
        root = cint(root)
        communicator, _ = located(self, calling_rank())
        sends, receives = _roles(self, root)
        items = dump_each(sendobj, communicator.remote.size) if sends else None
        data = scattered(self, items, root)
        return _load(data) if receives else None

    @mpi.collective("6.7")
    def allgather(self, sendobj: object) -> list[Any]:
        """Gather to All."""
        return [_load(item) for item in allgathered(self, sendobj)]

    @mpi.collective("6.8")
    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """All to All Scatter/Gather."""
        communicator, _ = located(self, calling_rank())
        return [_load(item) for item in traded(self, dump_each(sendobj, communicator.remote.size))]

    @mpi.collective("6.9.1")
    def reduce(
        self, sendobj: object, op: Op | Callable[[Any, Any], Any] = SUM, root: int = 0
    ) -> Any | None:
        """Reduce to Root."""
        root = cint(root)
        communicator, me = located(self, calling_rank())
        if not _fast():
            data = gathered(self, sendobj, root)
            return None if data is None else _folded([_load(item) for item in data], op)
        check_root(self, communicator, root)
        with Tree(self, root) as tree:
            if not communicator.inter:
                return tree.reduce(sendobj, op, root)
            if root == ROOT:
                return tree.receive(0, remote=True)
            if root != PROC_NULL:
                result = tree.reduce(sendobj, op, 0)
                if me == 0:
                    tree.send(result, root, remote=True)
        return None

    @mpi.collective("6.9.6")
    def allreduce(self, sendobj: object, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Reduce to All."""
        if not _fast():
            return _folded([_load(item) for item in allgathered(self, sendobj)], op)
        with Tree(self) as tree:
            result = tree.reduce(sendobj, op, 0)
            if tree.communicator.inter:
                if tree.me == 0:
                    result = tree.swap(result, 0, remote=True)
                return _spread_locally(tree, result)
        tree.communicator.continue_call(tree.me)
        data = spread(self, dumped(result) if tree.me == 0 else b"", 0)
        return _load(data)


class ObjectScans:
    """The lower-case scans of communicators that have one group only."""

    __slots__ = ()

    @mpi.collective("6.11.1")
    def scan(self, sendobj: object, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Inclusive Scan."""
        return _scanned(self, sendobj, op, False)

    @mpi.collective("6.11.2")
    def exscan(self, sendobj: object, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Exclusive Scan."""
        return _scanned(self, sendobj, op, True)


def _scanned(
    comm: object, sendobj: object, op: Callable[[object, object], object], exclusive: bool
) -> object:
    if not _fast():
        return _prefixes(comm, sendobj, op, exclusive)
    with Tree(comm) as tree:
        return tree.scan(sendobj, op, exclusive)


def _is_intra(comm: Any) -> bool:
    return not comm._communicator().inter


def _spread_locally(tree: Tree, obj: object) -> object:
    """Rank 0's object, at all ranks of the own group of an intercommunicator."""
    me = tree.me
    mask = 1
    while mask < tree.size:
        if me & mask:
            obj = tree.receive(me & ~mask)
            break
        mask <<= 1
    mask >>= 1
    while mask:
        if me | mask < tree.size:
            tree.send(obj, me | mask)
        mask >>= 1
    return obj
