"""The contents of the caches of one node: parts of buffers, by least recent use, with states.

Caches hold `Block`s, consecutive bytes that a program uses together; a cache holds a block as a
whole or not at all. Private caches of cores are coherent by the table of a protocol. A cache that
several cores share holds the blocks of its sharers.

An access returns a *kind*, which determines its throughput.
"""

from bisect import bisect_left
from typing import Final, Optional

from pysmpi.memory.coherence.protocol import Protocol
from pysmpi.memory.transfer.kinds import ACCESS, DISTANCE, NOBODY, NUMBERS
from pysmpi.platform.node_description import NodeDescription

SEVERAL: Final = -2  # instead of a core: several cores hold the block
INVALID: Final = 0  # the core does not hold the block; valid states count from 1, the strongest
LETTERS: Final = "MOESFI"
# Most blocks of one buffer. Beyond, the caches forget the buffer: the search for a block would take
# ever longer.
MOST_BLOCKS: Final = 4096


class Step:
    """The new states of a block after an access: in the core, and in others by the old state."""

    def __init__(self, becomes: int, others: "list[int]") -> None:
        self.becomes: int = becomes
        self.others: list[int] = others


class Block:
    """Bytes `start` to `end` of a buffer; `size` is the number of bytes that they use in a cache.

    `core` is the only core whose private caches hold it, in `state`. With `SEVERAL`, `holders` has
    the state of each core. `below` is its state in shared caches. `home` is the NUMA node of its
    memory. `last` is the core that used it last. `spread` is whether caches outside the path of
    this core may hold it.
    """

    def __init__(self, start: int, end: int, home: int) -> None:
        self.start: int = start
        self.end: int = end
        self.size: int = end - start
        self.home: int = home
        self.core: int = NOBODY
        self.state: int = INVALID
        self.below: int = INVALID
        self.holders: dict[int, int] = {}
        self.used: bool = False
        self.last: int = NOBODY
        self.spread: bool = False


class Buffer:
    """Memory of one rank, in disjoint blocks, as messages have used it."""

    def __init__(self, home: int) -> None:
        self.home: int = home
        self.blocks: dict[int, Block] = {}  # by start
        self.starts: list[int] = []  # the starts of the blocks, increasing


class Cache:
    """One cache of `capacity` bytes; `core` is its only core, or `NOBODY` if it is shared.

    `content` has the bytes of each block, least recently used first. A block that leaves the cache
    goes to the `next` cache, if there is one.
    """

    def __init__(self, capacity: int, core: int, first: int) -> None:
        self.capacity: int = capacity
        self.core: int = core
        self.first: int = first  # the first of the cores that share it
        self.used: int = 0
        self.content: dict[Block, int] = {}
        self.next: Optional[Cache] = None

    def drop(self, block: Block) -> None:
        """Remove a block, if the cache holds it."""
        if block in self.content:
            self.used -= self.content[block]
            del self.content[block]


def kind_from(access: str) -> int:
    """The kind of an access, at no distance and no level; -1 if there is no such access."""
    return NUMBERS[access] * ACCESS if access in NUMBERS else -1


class Caches:
    """All caches of one node. Cores are numbered as in its description."""

    def __init__(self, node: NodeDescription, protocol: Protocol) -> None:
        self.node: NodeDescription = node
        self.line: int = node.line
        self.private: int = 0  # number of levels of private caches
        self.paths: list[list[Cache]] = [[] for _ in range(node.cores)]
        self.shared: list[Cache] = []
        for level in node.caches:
            if level.cores == 1:
                self.private += 1
            for first in range(0, node.cores, level.cores):
                cache = Cache(level.size, first if level.cores == 1 else NOBODY, first)
                if level.cores > 1:
                    self.shared.append(cache)
                for core in range(first, first + level.cores):
                    self.paths[core].append(cache)
        for path in self.paths:
            for i in range(len(path) - 1):
                path[i].next = path[i + 1]
        self.distances: list[list[int]] = [
            [node.distance(one, other) for other in range(node.cores)] for one in range(node.cores)
        ]
        self.letters: list[str] = [protocol.invalid] + [
            letter for letter in protocol.states if letter != protocol.invalid
        ]
        count = len(self.letters)
        number = {letter: i for i, letter in enumerate(self.letters)}
        # By the state of the core, then by the strongest state of other cores; None without a rule.
        self.reads: list[Optional[Step]] = [None] * (count * count)
        self.writes: list[Optional[Step]] = [None] * (count * count)
        for (operation, own, other), rule in protocol.rules.items():
            others = [number[rule.others.get(letter, letter)] for letter in self.letters]
            step = Step(number[rule.becomes], others)
            where = number[own] * count + number[other]
            if operation == "read":
                self.reads[where] = step
            elif operation == "write":
                self.writes[where] = step
        self.dirty: list[bool] = [protocol.states[letter].dirty for letter in self.letters]
        names = [self.name(letter) for letter in self.letters]
        self.sharing: list[bool] = [name in "SF" for name in names]
        # Kinds of hits and misses, by state.
        self.load_hits: list[int] = [kind_from("LH" + name) for name in names]
        self.load_misses: list[int] = [kind_from("LM" + name) for name in names]
        self.store_hits: list[int] = [kind_from("SH" + name) for name in names]
        self.store_misses: list[int] = [kind_from("SM" + name) for name in names]

    def name(self, letter: str) -> str:
        """The corresponding state for which throughputs are known.

        States with other names have the throughput of shared ones.
        """
        if letter == self.letters[INVALID]:
            return "I"
        return letter if letter in LETTERS else "S"

    def distance(self, first: int, second: int) -> int:
        """The number of the distance between two cores."""
        return self.distances[first][second]

    # Blocks.

    def block(self, buffer: Buffer, start: int, end: int) -> Block:
        """The block of whole lines that holds bytes `start` to `end` of a buffer."""
        line = self.line
        start -= start % line
        end += -end % line
        block = buffer.blocks.get(start)
        if block is not None and block.end == end:
            return block
        return self._cut(buffer, start, end)

    def _cut(self, buffer: Buffer, start: int, end: int) -> Block:
        """A new block for some bytes; the blocks that had them lose them.

        It is in the caches that held its largest part, if that is larger than the part without a
        block.
        """
        if len(buffer.blocks) > MOST_BLOCKS:
            for old in buffer.blocks.values():
                self._forget(old)
            buffer.blocks = {}
            buffer.starts = []
        overlapping = self._overlapping(buffer, start, end)
        block = Block(start, end, buffer.home)
        largest: Optional[Block] = None
        share = 0
        uncovered = end - start
        for old in overlapping:
            common = min(old.end, end) - max(old.start, start)
            uncovered -= common
            if common > share:
                share = common
                largest = old
        holders = [self._holders(old) for old in overlapping]
        for old in overlapping:
            self._forget(old)
            del buffer.blocks[old.start]
            buffer.starts.remove(old.start)
        for i in range(len(overlapping)):
            old = overlapping[i]
            if old.start < start:
                self._insert(buffer, self._part(old, holders[i], old.start, start))
            if old.end > end:
                self._insert(buffer, self._part(old, holders[i], end, old.end))
            if old is largest and share >= uncovered:
                self._copy(old, holders[i], block)
        self._insert(buffer, block)
        return block

    def _overlapping(self, buffer: Buffer, start: int, end: int) -> "list[Block]":
        blocks: list[Block] = []
        i = bisect_left(buffer.starts, start)
        if i > 0:
            before = buffer.blocks[buffer.starts[i - 1]]
            if before.end > start:
                blocks.append(before)
        while i < len(buffer.starts) and buffer.starts[i] < end:
            blocks.append(buffer.blocks[buffer.starts[i]])
            i += 1
        return blocks

    def _part(self, old: Block, caches: "list[Cache]", start: int, end: int) -> Block:
        block = Block(start, end, old.home)
        self._copy(old, caches, block)
        return block

    def _insert(self, buffer: Buffer, block: Block) -> None:
        if block.start not in buffer.blocks:
            buffer.starts.insert(bisect_left(buffer.starts, block.start), block.start)
        buffer.blocks[block.start] = block

    def _copy(self, old: Block, caches: "list[Cache]", block: Block) -> None:
        """Put `block` into the caches that held `old`, in the same states, as far as it fits."""
        block.core = old.core
        block.state = old.state
        block.below = old.below
        block.holders = dict(old.holders)
        block.used = old.used
        block.last = old.last
        block.spread = old.spread
        for cache in caches:
            cache.content[block] = block.size
            cache.used += block.size
        for cache in caches:
            if cache.used > cache.capacity:
                self._evict(cache)

    def _forget(self, block: Block) -> None:
        for cache in self._holders(block):
            cache.drop(block)

    def _holders(self, block: Block) -> "list[Cache]":
        """The caches that hold a block."""
        caches = [cache for cache in self.shared if block in cache.content]
        cores = list(block.holders) if block.core == SEVERAL else [block.core]
        for core in cores:
            if core >= 0:
                for i in range(self.private):
                    if block in self.paths[core][i].content:
                        caches.append(self.paths[core][i])
        return caches

    # Accesses.

    def access(self, core: int, block: Block, write: bool) -> int:
        """A core loads a block, or stores to it; return the kind of the access."""
        block.used = True
        if block.core == core:
            kind = self._access_own(core, block, write)
        elif block.core == NOBODY:
            kind = self._fetch(core, block, write)
        else:
            kind = self._access_others(core, block, write)
        self.touch(core, block)
        return kind

    def touch(self, core: int, block: Block) -> None:
        """A block passes through the caches of a core, which then hold it as far as it fits.

        The caches beyond the first one that held it take no part.
        """
        path = self.paths[core]
        i = 0
        last = len(path)
        while i < last:
            i += 1
            if block in path[i - 1].content:
                break
        while i > 0:
            i -= 1
            cache = path[i]
            if block.size > cache.capacity:
                self._flush_through(cache, block)
                continue
            content = cache.content
            size = block.size
            if block in content:
                cache.used -= content[block]
                del content[block]
            cache.used += size
            content[block] = size
            if cache.used > cache.capacity:
                self._evict(cache)

    def _flush_through(self, cache: Cache, block: Block) -> None:
        """A block larger than a cache evicts everything else and does not stay."""
        if cache.used > 0:
            cache.drop(block)
            for evicted in list(cache.content):
                self._push_out(cache, evicted)
        self._move_down(cache, block, block.size)

    def _access_own(self, core: int, block: Block, write: bool) -> int:
        """The only core that holds a block accesses it."""
        path = self.paths[core]
        level = 1
        while block not in path[level - 1].content:
            level += 1
        state = block.state
        if not write:
            return self.load_hits[state] + level
        if block.spread:
            self._withdraw(core, block)
        step = self.writes[state * len(self.letters) + INVALID]
        assert step is not None
        block.state = block.below = step.becomes
        return self.store_hits[state] + level

    def _fetch(self, core: int, block: Block, write: bool) -> int:
        """A core accesses a block that no private cache holds."""
        kind = self._below(core, block, write)
        step = self.writes[INVALID] if write else self.reads[INVALID]
        assert step is not None
        self._leave_below(core, block, step.becomes, write)
        if self.private > 0:
            block.core = core
            block.state = step.becomes
        return kind

    def _below(self, core: int, block: Block, write: bool) -> int:
        """The kind of an access to a block in a shared cache, or in memory."""
        path = self.paths[core]
        for i in range(self.private, len(path)):
            if block in path[i].content:
                return (self.store_hits if write else self.load_hits)[block.below] + i + 1
        misses = self.store_misses if write else self.load_misses
        for cache in self.shared:
            if block in cache.content:
                away = self.distance(core, cache.first)
                return misses[block.below] + (away + 1) * DISTANCE
        block.below = INVALID  # memory has the current value
        away = NOBODY
        if self.node.numa_of(core) != block.home:
            away = self.distance(core, block.home * self.node.cores // self.node.numa)
        return misses[INVALID] + (away + 1) * DISTANCE

    def _access_others(self, core: int, block: Block, write: bool) -> int:
        """A core accesses a block that private caches of other cores hold."""
        own = other = INVALID
        if block.core == SEVERAL:
            own = block.holders.get(core, own)
            for peer, state in block.holders.items():
                if peer != core and (other == INVALID or state < other):
                    other = state
        else:
            other = block.state
        kind = self._kind(core, block, write, own, other)
        index = own * len(self.letters) + other
        step = self.writes[index] if write else self.reads[index]
        assert step is not None
        self._leave_below(core, block, step.becomes, write)
        self._change(core, block, step)
        return kind

    def _kind(self, core: int, block: Block, write: bool, own: int, other: int) -> int:
        """The kind of an access, by the state of the core's own copy and the strongest other."""
        path = self.paths[core]
        hits = self.store_hits if write else self.load_hits
        if own != INVALID:
            level = 1
            while block not in path[level - 1].content:
                level += 1
            far = self._farthest(core, block) + 1 if write else 0
            return hits[own] + far * DISTANCE + level
        if self.sharing[other]:
            for i in range(self.private, len(path)):
                if block in path[i].content:
                    far = self._farthest(core, block) + 1 if write else 0
                    return hits[other] + far * DISTANCE + i + 1
        misses = self.store_misses if write else self.load_misses
        return misses[other] + (self._nearest(core, block, other) + 1) * DISTANCE

    def _nearest(self, core: int, block: Block, state: int) -> int:
        """The distance of the nearest core that holds a block in a state."""
        if block.core != SEVERAL:
            return self.distance(core, block.core)
        near = len(self.node.distances)
        for peer, held in block.holders.items():
            if held == state and peer != core:
                near = min(near, self.distance(core, peer))
        return near

    def _farthest(self, core: int, block: Block) -> int:
        """The distance of the farthest core that holds a block."""
        if block.core != SEVERAL:
            return self.distance(core, block.core) if block.core >= 0 else NOBODY
        far = NOBODY
        for peer in block.holders:
            far = max(far, self.distance(core, peer))
        return far

    def _leave_below(self, core: int, block: Block, becomes: int, write: bool) -> None:
        """Update the entries of a block in shared caches."""
        if block.last != core:
            block.spread = block.spread or block.last != NOBODY
            block.last = core
        if write and block.spread:
            self._withdraw(core, block)
        if write or block.below == INVALID:
            block.below = becomes

    def _change(self, core: int, block: Block, step: Step) -> None:
        """Update the states of a block in the caches of other cores."""
        holders: dict[int, int] = {}
        if block.core == SEVERAL:
            for peer, held in block.holders.items():
                state = step.becomes if peer == core else step.others[held]
                if state == INVALID:
                    self._invalidate(peer, block)
                else:
                    holders[peer] = state
        else:
            state = step.others[block.state]
            if state == INVALID:
                self._invalidate(block.core, block)
            else:
                holders[block.core] = state
        holders[core] = step.becomes
        if len(holders) == 1:
            block.core = core
            block.state = step.becomes
            block.holders = {}
        else:
            block.core = SEVERAL
            block.holders = holders

    def _invalidate(self, core: int, block: Block) -> None:
        """A block is invalid in a core's own caches."""
        path = self.paths[core]
        for i in range(self.private):
            path[i].drop(block)

    def _withdraw(self, core: int, block: Block) -> None:
        """A core has written a block: remove it from the shared caches of other cores."""
        path = self.paths[core]
        for cache in self.shared:
            if cache not in path:
                cache.drop(block)
        block.spread = False

    # Blocks that no longer fit.

    def _evict(self, cache: Cache) -> None:
        """Evict the least recently used blocks until the rest fits."""
        content = cache.content
        while cache.used > cache.capacity:
            for oldest in content:
                self._push_out(cache, oldest)
                break

    def _push_out(self, cache: Cache, block: Block) -> None:
        size = cache.content[block]
        del cache.content[block]
        cache.used -= size
        self._move_down(cache, block, size)

    def _move_down(self, cache: Cache, block: Block, size: int) -> None:
        """A block has left a cache: put it into the next one."""
        below = cache.next
        if below is not None and block not in below.content:
            below.content[block] = size
            below.used += size
            if below.used > below.capacity:
                self._evict(below)
        if cache.core >= 0:
            self._note_left(cache.core, block)

    def _note_left(self, core: int, block: Block) -> None:
        """A block has left a private cache of a core, perhaps the last one that held it."""
        if block.core == NOBODY:
            return
        path = self.paths[core]
        for i in range(self.private):
            if block in path[i].content:
                return
        if block.core == core:
            block.below = block.state
            block.core = NOBODY
        elif block.core == SEVERAL and core in block.holders:
            state = block.holders.pop(core)
            if self.dirty[state]:
                block.below = state
            if len(block.holders) == 1:
                for peer, held in block.holders.items():
                    block.core = peer
                    block.state = held
                block.holders = {}

    def holds(self, core: int, block: Block) -> "list[int]":
        """The levels of the caches of a core that hold a block."""
        path = self.paths[core]
        return [i + 1 for i in range(len(path)) if block in path[i].content]

    def state(self, core: int, block: Block) -> str:
        """The letter of the state of a block in the private caches of a core."""
        if block.core == core:
            return self.letters[block.state]
        held = block.holders.get(core, INVALID) if block.core == SEVERAL else INVALID
        return self.letters[held]
