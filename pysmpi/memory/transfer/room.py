"""One node for messages: its caches, its shared buffers, and its shared resources."""

from math import sqrt
from typing import Any, Final, Optional

from pysmpi.kernel.activities import Constraint
from pysmpi.memory.coherence.protocol import Protocol
from pysmpi.memory.transfer.buffers import Buffers, Location
from pysmpi.memory.transfer.caches import Block, Buffer, Caches
from pysmpi.memory.transfer.kinds import NOBODY, access_of, distance_of, kind_of, level_of
from pysmpi.memory.transfer.library import Library
from pysmpi.memory.transfer.pipeline import copy_seconds
from pysmpi.platform.node_description import NodeDescription

# Most speeds, copies and plans in a cache, before it drops all.
MOST_CACHED: Final = 1 << 14
PAST: Final = kind_of("SNT", NOBODY, 0)
FRESH: Final = kind_of("SMI", NOBODY, 0)
STORED: Final = kind_of("SHM", NOBODY, 1)
LOADED: Final = kind_of("LHM", NOBODY, 1)


class Pool:
    """Shared buffers: `writer` and `reader` are the cores that used them last.

    `warm` is the number of bytes that have been used before.
    """

    def __init__(self, home: int) -> None:
        self.writer: int = NOBODY
        self.reader: int = NOBODY
        self.warm: int = 0
        self.block: Block = Block(0, 0, home)


class Room:
    """A node of a run."""

    def __init__(
        self, node: NodeDescription, protocol: Protocol, library: Library, locate: Any
    ) -> None:
        self.node: NodeDescription = node
        self.library: Library = library
        self.locate: Any = locate  # callable(payload) -> Location or None
        self.caches: Caches = Caches(node, protocol)
        self.sizes: list[int] = [cache.size for cache in node.caches]
        # Values of the library that each message needs.
        self.control: float = library.control
        self.overhead: float = library.overhead
        self.pooled: int = library.cells * library.chunk
        self.in_turn: bool = library.in_turn
        self.warm: bool = library.warm
        self.buffers: dict[int, Buffers] = {}  # by slot
        self.pools: dict[int, Pool] = {}
        self.read_lines: dict[tuple[Buffer, int], Constraint] = {}
        self.speeds: dict[tuple[int, int], float] = {}
        self.copies: dict[tuple[int, int, int, int], float] = {}
        self.drain: float = library.drain / library.chunk
        self.flushed: bool = library.stores == "flush"
        self.past_caches: bool = library.stores == "non-temporal"
        self.released: bool = library.released
        # The states of a line of a shared buffer in the caches of its writer and its reader, after
        # the reader has read it.
        written, _ = protocol.write(protocol.initial(2), 0)
        if library.stores != "cached":
            written = protocol.initial(2)  # memory alone has it
        states, _ = protocol.read(written, 1)
        if library.released:
            states = (states[0], protocol.invalid)
        self.dirty: str = self.caches.name(written[0])
        self.writers: str = self.caches.name(states[0])
        self.readers: str = self.caches.name(states[1])
        # Kinds of stores by the last writer and by the last reader, and of loads by the reader, by
        # the distance of the other core.
        far = range(-1, len(node.distances))
        self.again: list[int] = [self._reused(self.writers, self.readers, d) for d in far]
        self.turned: list[int] = [self._reused(self.readers, self.writers, d) for d in far]
        self.loads: list[int] = [
            LOADED if d < 0 and self.dirty != "I" else kind_of("LM" + self.dirty, d, 0) for d in far
        ]
        # A core makes one copy at a time: each second of a copy uses a second of the core.
        self.cores: list[Constraint] = [Constraint(1.0, f"core {i}") for i in range(node.cores)]
        self.controllers: list[Optional[Constraint]] = [None] * node.numa
        if node.memory_bandwidth is not None:
            self.controllers = [
                Constraint(node.memory_bandwidth, f"memory {i}") for i in range(node.numa)
            ]
        self.buses: dict[tuple[int, int], Constraint] = {}
        for number, distance in enumerate(node.distances):
            if distance.bandwidth is not None:
                for group in range(node.cores // distance.cores):
                    self.buses[number, group] = Constraint(
                        distance.bandwidth, f"{distance.name} {group}"
                    )
        self.shared: dict[tuple[int, int], Constraint] = {}
        for cache in node.caches:
            if cache.bandwidth is not None:
                for group in range(node.cores // cache.cores):
                    self.shared[cache.level, group] = Constraint(
                        cache.bandwidth, f"L{cache.level} {group}"
                    )

    # Places of messages.

    def of(self, slot: int, core: int) -> Buffers:
        """The buffers of the ranks on a slot."""
        buffers = self.buffers.get(slot)
        if buffers is None:
            buffers = Buffers(self.caches, core, self.node.numa_of(core))
            self.buffers[slot] = buffers
        return buffers

    def location(self, payload: object) -> Optional[Location]:
        """The place of a payload, if it is in a buffer of the program."""
        if payload is None or self.locate is None:
            return None
        location: Optional[Location] = self.locate(payload)
        return location

    def read_line(self, owners: Buffers, memory: object) -> Optional[Constraint]:
        """The first line of memory that other cores read; each reader needs it for some time.

        A reader uses it for the slope of the node's contention (s). None if readers do not disturb
        each other, or if the place is unknown.
        """
        if self.node.contention is None or self.node.contention[1] == 0.0:
            return None
        location = self.location(memory)
        if location is None:
            return None
        key = (owners.of(location[0]), location[1] // self.node.line)
        line = self.read_lines.get(key)
        if line is None:
            if len(self.read_lines) >= MOST_CACHED:
                self.read_lines = {}
            line = Constraint(1.0, "cache line")
            self.read_lines[key] = line
        return line

    def pool(self, sender: int, receiver: int) -> Pool:
        """The shared buffers from one core to another."""
        key = sender
        if self.library.paired:
            low, high = min(sender, receiver), max(sender, receiver)
            key = (low + 1) * self.node.cores + high
        pool = self.pools.get(key)
        if pool is None:
            pool = Pool(self.node.numa_of(sender))
            self.pools[key] = pool
        return pool

    def footprint(self, nbytes: int) -> int:
        """The bytes of shared buffers that a message uses before it uses the first one again."""
        if self.in_turn or nbytes > self.pooled:
            return self.pooled
        return nbytes

    def store(self, pool: Pool, core: int, reader: int, nbytes: int) -> int:
        """The kind of a sender's stores to shared buffers that `reader` will read."""
        footprint = self.footprint(nbytes)
        fresh = pool.writer == NOBODY or pool.warm < footprint
        if fresh:
            pool.warm = min(pool.warm + nbytes, footprint) if self.in_turn else footprint
            pool.block.size = pool.warm
            pool.block.end = pool.warm
        writer, last_reader = pool.writer, pool.reader
        pool.writer, pool.reader = core, reader
        if self.past_caches:
            return PAST
        if not self.flushed:
            self.caches.touch(core, pool.block)
        if fresh:
            return FRESH
        if core == writer:
            return self.again[self.caches.distances[core][last_reader] + 1]
        return self.turned[self.caches.distances[core][writer] + 1]

    def _reused(self, own: str, other: str, distance: int) -> int:
        far = NOBODY if other == "I" else distance
        if distance < 0:
            return kind_of("SMI", NOBODY, 0) if own == other == "I" else STORED
        if own == "I":
            return kind_of("SM" + other, far, 0)
        return kind_of("SH" + own, far if own in "SOF" else NOBODY, 1)

    def load(self, pool: Pool, core: int, writer: int) -> int:
        """The kind of a receiver's loads of data that `writer` has just stored there."""
        if not self.released:
            self.caches.touch(core, pool.block)
        if self.dirty == "I":
            # The memory of the buffer has the data; it may be the memory of the core's NUMA node.
            home = pool.block.home
            if self.node.numa_of(core) == home:
                return self.loads[0]
            first = home * self.node.cores // self.node.numa
            return self.loads[self.caches.distances[core][first] + 1]
        return self.loads[self.caches.distances[core][writer] + 1]

    # The costs.

    def speed(self, kind: int, nbytes: int) -> float:
        """Bytes/s of an access to a buffer of some bytes.

        Curves give the throughput by the size of a buffer, which implies the cache that holds it. A
        buffer in a farther cache than its size implies has the throughput of a buffer that fills
        half of that cache, on the logarithmic scale.
        """
        key = (kind, nbytes)
        speed = self.speeds.get(key)
        if speed is None:
            size = float(nbytes)
            level = level_of(kind)
            if level > 1 and nbytes <= self.sizes[level - 2]:
                size = sqrt(float(self.sizes[level - 2]) * self.sizes[level - 1])
            speed = self.node.throughput(access_of(kind), distance_of(kind), size)
            if len(self.speeds) >= MOST_CACHED:
                self.speeds = {}
            self.speeds[key] = speed
        return speed

    def copy(self, load: int, store: int, from_size: int, to_size: int) -> float:
        """Seconds a byte of a copy between buffers of these sizes."""
        key = (load, store, from_size, to_size)
        seconds = self.copies.get(key)
        if seconds is None:
            overlap = self.library.overlap
            if overlap is None:
                overlap = self.node.overlap.at(min(from_size, to_size))
            seconds = copy_seconds(self.speed(load, from_size), self.speed(store, to_size), overlap)
            if len(self.copies) >= MOST_CACHED:
                self.copies = {}
            self.copies[key] = seconds
        return seconds

    def after_store(self, nbytes: int) -> float:
        """Seconds a byte of a sender's work after its stores to shared buffers."""
        if self.flushed:
            return 1.0 / self.node.throughput("FHM", NOBODY, float(nbytes))
        return self.drain if self.past_caches else 0.0

    def after_load(self, nbytes: int) -> float:
        """Seconds a byte of a receiver's work after its loads from shared buffers."""
        if self.released:
            return 1.0 / self.node.throughput("FHS", NOBODY, float(nbytes))
        return 0.0

    def latency(self, access: str, distance: int) -> float:
        """Seconds of one line's access; 0 if the description has no latencies."""
        return self.node.latency(access, distance) if self.node.latencies else 0.0

    # Shared resources.

    def use(self, weights: dict[Constraint, float], core: int, kind: int, nbytes: int,
            home: int) -> None:  # fmt: skip
        """Add the use of the node's resources by a byte of an access."""
        access = access_of(kind)
        past = access == "SNT"
        # A store fetches the line and writes it back.
        part = 2.0 if access[0] == "S" and not past else 1.0
        from_memory = past or access[1:] == "MI" or (access[1] == "H" and nbytes > self.sizes[-1])
        if from_memory:
            controller = self.controllers[home]
            if controller is not None:
                _add(weights, controller, part)
        distance = distance_of(kind)
        if distance >= 0 and access != "SHS":
            bus = self.buses.get((distance, core // self.node.distances[distance].cores))
            if bus is not None:
                _add(weights, bus, part if from_memory else 1.0)
        for cache in self.node.caches:
            if cache.bandwidth is not None and (
                cache.level == 1 or nbytes > self.sizes[cache.level - 2]
            ):
                _add(weights, self.shared[cache.level, core // cache.cores], 1.0)


def _add(weights: dict[Constraint, float], constraint: Constraint, weight: float) -> None:
    weights[constraint] = weights.get(constraint, 0.0) + weight
