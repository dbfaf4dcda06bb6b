"""Messages between two cores of a node: the contents of the caches determine their costs."""

from typing import Optional

from mypy_extensions import mypyc_attr

from pysmpi.kernel.activities import Constraint
from pysmpi.kernel.events import INFINITY
from pysmpi.kernel.plan import Plan
from pysmpi.kernel.requests import Pricing, Receive, Send, Transfer
from pysmpi.memory.transfer.buffers import Buffers, Location
from pysmpi.memory.transfer.caches import Block
from pysmpi.memory.transfer.kinds import kind_of
from pysmpi.memory.transfer.packing import pack_seconds
from pysmpi.memory.transfer.pipeline import pipelined
from pysmpi.memory.transfer.room import LOADED, MOST_CACHED, STORED, Pool, Room


class Copy:
    """The latest copy of a short message on one side: the next one is often equal."""

    def __init__(self) -> None:
        self.load: int = 0
        self.store: int = 0
        self.nbytes: int = -1
        self.seconds: float = 0.0  # seconds of the whole message


@mypyc_attr(allow_interpreted_subclasses=True)
class Channel(Pricing):
    """From the ranks on slot `source` to those on `destination`, on cores of one node.

    The pipelined transfer through shared buffers: the sender copies in, the receiver copies out.
    """

    def __init__(
        self, room: Room, source: int, destination: int, sender: int, receiver: int
    ) -> None:
        self.room: Room = room
        self.sender: int = sender  # cores
        self.receiver: int = receiver
        self.pool: Pool = room.pool(sender, receiver)
        self.senders: Buffers = room.of(source, sender)
        self.receivers: Buffers = room.of(destination, receiver)
        distance = room.node.distance(sender, receiver)
        self.distance: int = distance
        # Seconds until the receiver sees the line that announces a message.
        self.signal: float = room.latency("LMM", distance) if sender != receiver else 0.0
        self.plans: dict[object, Plan] = {}
        self.into_pool: Copy = Copy()
        self.out_of_pool: Copy = Copy()
        # The latest transfer, because the next one is often equal.
        self.latest: Optional[Plan] = None
        self.kinds: tuple[int, int, int, int, int] = (0, 0, 0, 0, -1)

    def plan(self, nbytes: int) -> Plan:
        """The plan of messages of a size, before the state of the caches determines the costs."""
        library = self.room.library
        eager = nbytes <= library.eager
        overhead = library.overhead
        bound = self.room.speed(LOADED, nbytes)
        return Plan(
            self.signal, 0.0 if eager else float(nbytes), bound, send_cost=overhead,
            isend_cost=overhead, recv_cost=overhead, eager=eager, detached=eager, pricing=self,
        )  # fmt: skip

    # Called by the kernel.

    def sending(self, send: Send) -> None:
        """Copy a short message into the shared buffer."""
        if send.nbytes == 0 or not (send.eager and send.detached):
            return
        room = self.room
        location = room.location(send.payload)
        nbytes = send.nbytes
        out = self._block_sent(location, send.payload, nbytes)
        load = room.caches.access(self.sender, out, False)
        store = room.store(self.pool, self.sender, self.receiver, nbytes)
        copy = self.into_pool
        if nbytes != copy.nbytes or load != copy.load or store != copy.store:
            shared = max(nbytes, room.footprint(nbytes))
            each = room.copy(load, store, nbytes, shared) + room.after_store(nbytes)
            copy.seconds = room.control + nbytes * each
            copy.nbytes, copy.load, copy.store = nbytes, load, store
        send.start_cost += copy.seconds
        if location is not None and location[3] > 1:
            send.start_cost += pack_seconds(room, load, location, nbytes)

    def matched(self, send: Send, receive: Receive) -> None:
        """Copy a short message out of the shared buffer, or transfer a long one."""
        nbytes = min(send.nbytes, receive.nbytes)
        if nbytes == 0:
            if send.nbytes > 0 and not (send.eager and send.detached):
                send.plan = self._plan(0, 0.0, {})
            return
        room = self.room
        location = room.location(receive.payload)
        into = self.receivers.block(location, receive.payload, nbytes)
        if not (send.eager and send.detached):
            send.plan = self._transfer(send, into, nbytes, location)
            receive.finish_cost = 0.0
            return
        load = room.load(self.pool, self.receiver, self.sender)
        store = room.caches.access(self.receiver, into, True)
        copy = self.out_of_pool
        if nbytes != copy.nbytes or load != copy.load or store != copy.store:
            shared = max(nbytes, room.footprint(nbytes))
            each = room.copy(load, store, shared, nbytes) + room.after_load(nbytes)
            copy.seconds = room.control + nbytes * each
            copy.nbytes, copy.load, copy.store = nbytes, load, store
        seconds = copy.seconds
        if location is not None and location[3] > 1:
            seconds += pack_seconds(room, store, location, nbytes)
        receive.finish_cost = room.overhead + seconds

    def moving(self, transfer: Transfer) -> None:
        """The origin of a one-sided transfer copies the bytes once."""
        room = self.room
        nbytes = transfer.nbytes
        store = kind_of("SMM", self.distance, 0)
        seconds = nbytes * room.copy(LOADED, store, nbytes, nbytes)
        weights: dict[Constraint, float] = {}
        if transfer.reads is not None:
            self._add_line(weights, transfer.reads, nbytes)
        transfer.plan = self._plan(nbytes, seconds, weights)

    def _add_line(self, weights: dict[Constraint, float], memory: object, nbytes: int) -> None:
        """Add the use of the first line of the sender's memory, which the receiver reads."""
        line = self.room.read_line(self.senders, memory)
        if line is not None and nbytes > 0:
            contention = self.room.node.contention
            assert contention is not None
            weights[line] = contention[1] / nbytes

    # The resulting cost.

    def _block_sent(self, location: Optional[Location], payload: object, nbytes: int) -> Block:
        """The block that holds the data of a send.

        A pickled object has just been written. Memory of a first message also counts as just
        written, because programs write their data before they send it; an option changes this.
        """
        room = self.room
        block = self.senders.block(location, payload, nbytes)
        fresh = room.warm and not block.used
        if fresh or (location is None and payload is not None):
            room.caches.access(self.sender, block, True)
        return block

    def _transfer(self, send: Send, into: Block, nbytes: int, location: Optional[Location]) -> Plan:
        """The plan of a message after both sides are ready."""
        room = self.room
        origin = room.location(send.payload)
        out = self._block_sent(origin, send.payload, nbytes)
        plan = self._priced(out, into, nbytes)
        if (origin is None or origin[3] <= 1) and (location is None or location[3] <= 1):
            return plan
        # Packing slows down the copy that it is a part of: the pipelines of both sides slow down.
        seconds = nbytes / plan.bound if plan.bound > 0.0 else 0.0
        if origin is not None and origin[3] > 1:
            seconds += pack_seconds(room, LOADED, origin, nbytes)
        if location is not None and location[3] > 1:
            seconds += pack_seconds(room, STORED, location, nbytes)
        weights = dict(zip(plan.constraints, plan.weights))
        return self._plan(nbytes, seconds, weights)

    def _priced(self, out: Block, into: Block, nbytes: int) -> Plan:
        """The pipelined transfer in the present state of the caches (equation 1)."""
        room = self.room
        load_out = room.caches.access(self.sender, out, False)
        store_pool = room.store(self.pool, self.sender, self.receiver, nbytes)
        load_pool = room.load(self.pool, self.receiver, self.sender)
        store_into = room.caches.access(self.receiver, into, True)
        kinds = self.kinds
        if (
            nbytes == kinds[4]
            and load_out == kinds[0]
            and store_pool == kinds[1]
            and load_pool == kinds[2]
            and store_into == kinds[3]
            and self.latest is not None
        ):
            return self.latest
        key = (load_out, store_pool, load_pool, store_into, nbytes)
        plan = self.plans.get(key)
        if plan is None:
            library = room.library
            shared = max(nbytes, room.footprint(nbytes))
            send = room.copy(load_out, store_pool, nbytes, shared) + room.after_store(nbytes)
            receive = room.copy(load_pool, store_into, shared, nbytes) + room.after_load(nbytes)
            seconds = pipelined(
                nbytes, library.chunk, library.first, send, receive, library.control
            )
            weights: dict[Constraint, float] = {room.cores[self.sender]: send}
            if self.sender != self.receiver:
                weights[room.cores[self.receiver]] = receive
            room.use(weights, self.sender, load_out, nbytes, out.home)
            pooled = room.footprint(nbytes)
            room.use(weights, self.sender, store_pool, pooled, self.pool.block.home)
            room.use(weights, self.receiver, load_pool, pooled, self.pool.block.home)
            room.use(weights, self.receiver, store_into, nbytes, into.home)
            plan = self._plan(nbytes, seconds, weights)
            self._cache_plan(key, plan)
        self.kinds = key
        self.latest = plan
        return plan

    def _cache_plan(self, key: object, plan: Plan) -> None:
        if len(self.plans) >= MOST_CACHED:
            self.plans = {}
        self.plans[key] = plan

    def _plan(self, nbytes: int, seconds: float, weights: dict[Constraint, float]) -> Plan:
        """A transfer of some seconds if it does not share its resources."""
        overhead = self.room.overhead
        bound = nbytes / seconds if seconds > 0.0 else INFINITY
        return Plan(
            self.signal + 2.0 * overhead, float(nbytes), bound, constraints=list(weights),
            weights=list(weights.values()), isend_cost=overhead, detached=False,
        )  # fmt: skip
