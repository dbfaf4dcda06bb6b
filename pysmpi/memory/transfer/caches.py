"""What the caches of one node hold: parts of buffers, by least recent use, in which states.

Caches are followed in `Block`s, consecutive bytes that a program uses together: a block is in a
cache as a whole, or not. The caches of one core alone are coherent with those of others by the
table of a protocol; a cache that several cores share has what its sharers had.

An access answers with a *kind*, which says what throughput it has.
"""

from bisect import bisect_left
from typing import Final, Optional

from pysmpi.memory.coherence.protocol import Protocol
from pysmpi.memory.transfer.kinds import ACCESS, DISTANCE, NOBODY, NUMBERS
from pysmpi.platform.node_description import NodeDescription

SEVERAL: Final = -2
LETTERS: Final = "MOESFI"
# More pieces of one buffer than this are forgotten, and the buffer is new.
PIECES: Final = 4096


class Step:
    """What an access makes of the states of a line: its own, and others' by the old one."""

    def __init__(self, becomes: str, others: "dict[str, str]") -> None:
        self.becomes: str = becomes
        self.others: dict[str, str] = others


class Block:
    """Bytes `start` to `end` of a buffer; `size` is what they take in a cache.

    `core` is the one core whose own caches hold it, in the state `letter`; with `SEVERAL`,
    `holders` has the state of each. `below` is its state in caches that cores share, as they left
    it. `home` is the NUMA node of its memory. `last` is the core that used it last; `spread` says
    whether caches off the path of that core may have it.
    """

    def __init__(self, start: int, end: int, home: int) -> None:
        self.start: int = start
        self.end: int = end
        self.size: int = end - start
        self.home: int = home
        self.core: int = NOBODY
        self.letter: str = "I"
        self.below: str = "I"
        self.holders: dict[int, str] = {}
        self.used: bool = False
        self.last: int = NOBODY
        self.spread: bool = False


class Buffer:
    """Memory of one rank, in disjoint blocks, as messages have used it."""

    def __init__(self, home: int) -> None:
        self.home: int = home
        self.blocks: dict[int, Block] = {}  # by start
        self.starts: list[int] = []  # increasing


class Cache:
    """One cache of `capacity` bytes; `core` is the one that has it for itself, else `NOBODY`.

    `content` has the bytes of each block, least recently used first. What leaves the cache is in
    the `next` one, if there is one.
    """

    def __init__(self, capacity: int, core: int, first: int) -> None:
        self.capacity: int = capacity
        self.core: int = core
        self.first: int = first  # of the cores that share it
        self.used: int = 0
        self.content: dict[Block, int] = {}
        self.next: Optional[Cache] = None

    def drop(self, block: Block) -> None:
        """Take a block out, if it is here."""
        self.used -= self.content.pop(block, 0)


class Caches:
    """All caches of one node. Cores are numbered as in its description."""

    def __init__(self, node: NodeDescription, protocol: Protocol) -> None:
        self.node: NodeDescription = node
        self.invalid: str = protocol.invalid
        self.line: int = node.line
        self.private: int = 0  # levels of caches that belong to one core
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
            [node.distance(one, other) for other in range(node.cores)]
            for one in range(node.cores)
        ]
        self.steps: dict[str, Step] = {}
        for key, rule in protocol.rules.items():
            self.steps[key[0][0] + key[1] + key[2]] = Step(rule.becomes, dict(rule.others))
        ranks = list(protocol.states)
        self.dirty: list[str] = [name for name, state in protocol.states.items() if state.dirty]
        self.ranks: dict[str, int] = {letter: i for i, letter in enumerate(ranks)}
        # States under names of their own are shared ones, as far as throughput goes.
        self.alias: dict[str, str] = {
            letter: letter if letter in LETTERS else "S" for letter in ranks
        }
        self.numbers: dict[str, int] = {}
        for letter in ranks:
            for what in ("LH", "LM", "SH", "SM"):
                access = what + self.alias[letter]
                if access in NUMBERS:
                    self.numbers[what + letter] = NUMBERS[access] * ACCESS

    def distance(self, one: int, other: int) -> int:
        """The number of the distance between two cores."""
        return self.distances[one][other]

    # Blocks.

    def block(self, buffer: Buffer, start: int, end: int) -> Block:
        """The block of whole lines that holds bytes `start` to `end` of a buffer."""
        line = self.line
        start -= start % line
        end += -end % line
        found = buffer.blocks.get(start)
        if found is not None and found.end == end:
            return found
        return self._cut(buffer, start, end)

    def _cut(self, buffer: Buffer, start: int, end: int) -> Block:
        """A block of its own for some bytes; other blocks give up what they have of them.

        It is where the largest part of it has been.
        """
        if len(buffer.blocks) > PIECES:
            for old in buffer.blocks.values():
                self._forget(old)
            buffer.blocks = {}
            buffer.starts = []
        overlapping = self._overlapping(buffer, start, end)
        made = Block(start, end, buffer.home)
        most: Optional[Block] = None
        share = 0
        fresh = end - start
        for old in overlapping:
            common = min(old.end, end) - max(old.start, start)
            fresh -= common
            if common > share:
                share = common
                most = old
        places = [self._with(old) for old in overlapping]
        for old in overlapping:
            self._forget(old)
            del buffer.blocks[old.start]
            buffer.starts.remove(old.start)
        for i in range(len(overlapping)):
            old = overlapping[i]
            if old.start < start:
                self._insert(buffer, self._part(old, places[i], old.start, start))
            if old.end > end:
                self._insert(buffer, self._part(old, places[i], end, old.end))
            if old is most and share >= fresh:
                self._copy(old, places[i], made)
        self._insert(buffer, made)
        return made

    def _overlapping(self, buffer: Buffer, start: int, end: int) -> "list[Block]":
        found: list[Block] = []
        i = bisect_left(buffer.starts, start)
        if i > 0:
            before = buffer.blocks[buffer.starts[i - 1]]
            if before.end > start:
                found.append(before)
        while i < len(buffer.starts) and buffer.starts[i] < end:
            found.append(buffer.blocks[buffer.starts[i]])
            i += 1
        return found

    def _part(self, old: Block, places: "list[Cache]", start: int, end: int) -> Block:
        made = Block(start, end, old.home)
        self._copy(old, places, made)
        return made

    def _insert(self, buffer: Buffer, block: Block) -> None:
        if block.start not in buffer.blocks:
            buffer.starts.insert(bisect_left(buffer.starts, block.start), block.start)
        buffer.blocks[block.start] = block

    def _copy(self, old: Block, places: "list[Cache]", made: Block) -> None:
        """Let `made` be where `old` was, in the same states, as far as it fits."""
        made.core = old.core
        made.letter = old.letter
        made.below = old.below
        made.holders = dict(old.holders)
        made.used = old.used
        made.last = old.last
        made.spread = old.spread
        for cache in places:
            cache.content[made] = made.size
            cache.used += made.size
        for cache in places:
            if cache.used > cache.capacity:
                self._evict(cache)

    def _forget(self, block: Block) -> None:
        for cache in self._with(block):
            cache.drop(block)

    def _with(self, block: Block) -> "list[Cache]":
        """The caches that have a block."""
        found = [cache for cache in self.shared if block in cache.content]
        cores = list(block.holders) if block.core == SEVERAL else [block.core]
        for core in cores:
            if core >= 0:
                for i in range(self.private):
                    if block in self.paths[core][i].content:
                        found.append(self.paths[core][i])
        return found

    # Accesses.

    def access(self, core: int, block: Block, write: bool) -> int:
        """A core loads a block, or stores to it; the kind of the access."""
        block.used = True
        if block.core == core:
            kind = self._own(core, block, write)
        else:
            kind = self._general(core, block, write)
        self.touch(core, block)
        return kind

    def touch(self, core: int, block: Block) -> None:
        """A block passes through the caches of a core, which hold it then as far as it fits.

        The caches beyond the one that had it do not see it.
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
            content = cache.content
            cache.used += block.size - content.pop(block, 0)
            content[block] = block.size
            if cache.used > cache.capacity:
                self._evict(cache)

    def _own(self, core: int, block: Block, write: bool) -> int:
        """The only core that holds a block accesses it."""
        path = self.paths[core]
        level = 1
        while block not in path[level - 1].content:
            level += 1
        letter = block.letter
        if not write:
            return self.numbers["LH" + letter] + level
        if block.spread:
            self._gather(core, block)
        block.letter = block.below = self.steps["w" + letter + self.invalid].becomes
        return self.numbers["SH" + letter] + level

    def _general(self, core: int, block: Block, write: bool) -> int:
        """Other cores hold a block, or none does."""
        own = self.invalid
        other = self.invalid
        if block.core == SEVERAL:
            own = block.holders.get(core, own)
            for peer, letter in block.holders.items():
                if peer != core and self.ranks[letter] < self.ranks[other]:
                    other = letter
        elif block.core >= 0:
            other = block.letter
        kind = self._kind(core, block, write, own, other)
        step = self.steps[("w" if write else "r") + own + other]
        self._change(core, block, step, write)
        return kind

    def _kind(self, core: int, block: Block, write: bool, own: str, other: str) -> int:
        """What an access is, by the state of the core's own copy and the strongest other."""
        path = self.paths[core]
        operation = "S" if write else "L"
        if own != self.invalid:
            level = 1
            while block not in path[level - 1].content:
                level += 1
            far = self._farthest(core, block) + 1 if write else 0
            return self.numbers[operation + "H" + own] + far * DISTANCE + level
        nobody = other == self.invalid
        if nobody or self.alias[other] in "SF":
            for i in range(self.private, len(path)):
                if block in path[i].content:
                    letter = block.below if nobody else other
                    far = self._farthest(core, block) + 1 if write and not nobody else 0
                    return self.numbers[operation + "H" + letter] + far * DISTANCE + i + 1
        if not nobody:
            near = self._nearest(core, block, other)
            return self.numbers[operation + "M" + other] + (near + 1) * DISTANCE
        for cache in self.shared:
            if block in cache.content:
                away = self.distance(core, cache.first)
                return self.numbers[operation + "M" + block.below] + (away + 1) * DISTANCE
        block.below = self.invalid  # memory has it as it is
        away = NOBODY
        if self.node.numa_of(core) != block.home:
            away = self.distance(core, block.home * self.node.cores // self.node.numa)
        return self.numbers[operation + "M" + self.invalid] + (away + 1) * DISTANCE

    def _nearest(self, core: int, block: Block, letter: str) -> int:
        """The distance of the nearest core that holds a block in a state."""
        if block.core != SEVERAL:
            return self.distance(core, block.core)
        near = len(self.node.distances)
        for peer, held in block.holders.items():
            if held == letter and peer != core:
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

    def _change(self, core: int, block: Block, step: Step, write: bool) -> None:
        """Bring the states up to date."""
        holders = block.holders if block.core == SEVERAL else {}
        if block.core >= 0:
            holders[block.core] = block.letter
        for peer in list(holders):
            if peer == core:
                continue
            letter = step.others.get(holders[peer], holders[peer])
            if letter == self.invalid:
                for i in range(self.private):
                    self.paths[peer][i].drop(block)
                del holders[peer]
            else:
                holders[peer] = letter
        if block.last != core:
            block.spread = block.spread or block.last != NOBODY
            block.last = core
        if write and block.spread:
            self._gather(core, block)
        if write or block.below == self.invalid:
            block.below = step.becomes
        if self.private == 0:
            return
        holders[core] = step.becomes
        if len(holders) == 1:
            block.core = core
            block.letter = step.becomes
            block.holders = {}
        else:
            block.core = SEVERAL
            block.holders = holders

    def _gather(self, core: int, block: Block) -> None:
        """A core has written a block: shared caches of other cores lose it."""
        path = self.paths[core]
        for cache in self.shared:
            if cache not in path:
                cache.drop(block)
        block.spread = False

    # What does not fit any more.

    def _evict(self, cache: Cache) -> None:
        """Let the least recently used blocks go until the rest fits."""
        content = cache.content
        while cache.used > cache.capacity:
            oldest = next(iter(content))
            size = content.pop(oldest)
            cache.used -= size
            below = cache.next
            if below is not None and oldest not in below.content:
                below.content[oldest] = size
                below.used += size
                if below.used > below.capacity:
                    self._evict(below)
            if cache.core >= 0:
                self._left(cache.core, oldest)

    def _left(self, core: int, block: Block) -> None:
        """A block has left one of a core's own caches, perhaps the last one that had it."""
        path = self.paths[core]
        for i in range(self.private):
            if block in path[i].content:
                return
        if block.core == core:
            block.below = block.letter
            block.core = NOBODY
        elif block.core == SEVERAL and core in block.holders:
            letter = block.holders.pop(core)
            if letter in self.dirty:
                block.below = letter
            if len(block.holders) == 1:
                for peer, held in block.holders.items():
                    block.core = peer
                    block.letter = held
                block.holders = {}

    def holds(self, core: int, block: Block) -> "list[int]":
        """The levels of a core's caches that have a block."""
        path = self.paths[core]
        return [i + 1 for i in range(len(path)) if block in path[i].content]

    def state(self, core: int, block: Block) -> str:
        """The state of a block in a core's own caches."""
        if block.core == core:
            return block.letter
        return block.holders.get(core, self.invalid) if block.core == SEVERAL else self.invalid
