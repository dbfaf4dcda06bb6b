"""The ranks that hold each shared block of memory.

A block belongs to a line of the program, a class of sizes, and an ordinal. If earlier arrays of the
same line and class are still alive, an allocation of the rank gets the next block. Two living
arrays of one rank therefore never share memory, and the n-th array of each rank shares with the
n-th of every other rank.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush

PAGE = 4096
# Unused blocks are kept up to this number of bytes: memory that is freed and allocated again
# and again need not be mapped each time.
IDLE = 256 << 20


def size_class(nbytes: int) -> int:
    """The bytes of the block for an array; ranks with one row more or less share a block.

    Class sizes are an eighth of a power of two apart, and whole pages.
    """
    step = max(PAGE, 1 << max(0, nbytes.bit_length() - 4))
    return -(-nbytes // step) * step


class HeldBlock:
    """A piece of memory, and the number of ranks that hold it. `fresh` until a rank has used it."""

    __slots__ = ("address", "fresh", "holders", "line", "nbytes", "ordinal")

    def __init__(self, address: int, nbytes: int) -> None:
        self.address = address
        self.nbytes = nbytes
        self.holders = 0
        self.fresh = True
        self.line: AllocationSite | None = None
        self.ordinal = 0


class Tally:
    """The allocations of one line of the program, in bytes.

    `live` is the size of the living arrays of all ranks, `taken` that of their blocks.
    """

    __slots__ = ("arrays", "live", "most_live", "most_taken", "taken")

    def __init__(self) -> None:
        self.arrays = self.live = self.taken = self.most_live = self.most_taken = 0

    def add(self, nbytes: int) -> None:
        """Add an array."""
        self.arrays += 1
        self.live += nbytes
        if self.live > self.most_live:
            self.most_live = self.live

    def grow(self, nbytes: int) -> None:
        """Add a block."""
        self.taken += nbytes
        if self.taken > self.most_taken:
            self.most_taken = self.taken


class AllocationSite:
    """The blocks of one line of the program and one class of sizes, by ordinal."""

    __slots__ = ("blocks", "tally")

    def __init__(self, tally: Tally) -> None:
        self.blocks: list[HeldBlock | None] = []
        self.tally = tally


class Ordinals:
    """The free ordinals of a line in one rank: those freed, and all from `following`."""

    __slots__ = ("following", "freed")

    def __init__(self) -> None:
        self.following = 0
        self.freed: list[int] = []

    def take(self) -> int:
        """Take the lowest ordinal."""
        if self.freed:
            return heappop(self.freed)
        self.following += 1
        return self.following - 1

    def give(self, ordinal: int) -> None:
        """Free an ordinal."""
        heappush(self.freed, ordinal)


class MemoryOwner:
    """One rank: its blocks and requested bytes by address, and its current and largest bytes."""

    __slots__ = ("held", "live", "ordinals", "peak")

    def __init__(self) -> None:
        self.held: dict[int, tuple[HeldBlock, int]] = {}
        self.ordinals: dict[AllocationSite, Ordinals] = {}
        self.live = 0
        self.peak = 0


class Ledger:
    """All blocks of a run.

    `allocate(nbytes)` returns the address of fresh memory, `release(address, nbytes)` takes it
    back.
    """

    def __init__(
        self,
        allocate: Callable[[int], int],
        release: Callable[[int, int], object],
        most_idle: int = IDLE,
    ) -> None:
        self.allocate = allocate
        self.release = release
        self.most_idle = most_idle
        self.lines: dict[tuple[Hashable, int], AllocationSite] = {}
        self.tallies: dict[Hashable, Tally] = {}
        self.owners: list[MemoryOwner] = []
        self.idle: dict[int, list[HeldBlock]] = {}
        self.idle_bytes = 0
        self.taken = 0  # bytes of all blocks, idle ones included
        self.most_taken = 0

    @property
    def needed(self) -> int:
        """Bytes that the arrays of all ranks would take unfolded, each rank's at its peak."""
        return sum(owner.peak for owner in self.owners)

    def owner(self) -> MemoryOwner:
        """Add a rank."""
        owner = MemoryOwner()
        self.owners.append(owner)
        return owner

    def take(self, owner: MemoryOwner, place: Hashable, nbytes: int) -> HeldBlock:
        """A block of at least `nbytes` for a rank, allocated at a place of the program."""
        size = size_class(nbytes)
        line = self.lines.get((place, size))
        if line is None:
            line = self.lines[place, size] = AllocationSite(self.tallies.setdefault(place, Tally()))
        ordinals = owner.ordinals.get(line)
        if ordinals is None:
            ordinals = owner.ordinals[line] = Ordinals()
        ordinal = ordinals.take()
        blocks = line.blocks
        if ordinal >= len(blocks):
            blocks.extend([None] * (ordinal + 1 - len(blocks)))
        block = blocks[ordinal]
        if block is None:
            try:
                block = self._block(size)
            except BaseException:
                ordinals.give(ordinal)
                raise
            blocks[ordinal] = block
            block.line, block.ordinal = line, ordinal
            line.tally.grow(size)
        block.holders += 1
        owner.held[block.address] = (block, nbytes)
        line.tally.add(nbytes)
        owner.live += nbytes
        owner.peak = max(owner.peak, owner.live)
        return block

    def give(self, owner: MemoryOwner, address: int) -> int:
        """Release a rank's array at an address; return the bytes of the array."""
        block, nbytes = owner.held.pop(address)
        line = block.line
        assert line is not None
        owner.live -= nbytes
        owner.ordinals[line].give(block.ordinal)
        tally = line.tally
        tally.live -= nbytes
        block.holders -= 1
        block.fresh = False
        if block.holders == 0:
            line.blocks[block.ordinal] = block.line = None
            tally.taken -= block.nbytes
            self._idle(block)
        return nbytes

    def close(self) -> None:
        """Release the blocks that no rank holds, now and from now on."""
        self.most_idle = 0
        for blocks in self.idle.values():
            for block in blocks:
                self._give_back(block)
        self.idle.clear()
        self.idle_bytes = 0

    def _block(self, size: int) -> HeldBlock:
        """An unused block: the one used last, else a new one."""
        idle = self.idle.get(size)
        if idle:
            self.idle_bytes -= size
            return idle.pop()
        block = HeldBlock(self.allocate(size), size)
        self.taken += size
        self.most_taken = max(self.most_taken, self.taken)
        return block

    def _idle(self, block: HeldBlock) -> None:
        """Keep an unused block, and release others if there are too many."""
        if block.nbytes > self.most_idle:
            self._give_back(block)
            return
        self.idle.setdefault(block.nbytes, []).append(block)
        self.idle_bytes += block.nbytes
        while self.idle_bytes > self.most_idle:
            # Blocks of the least recently used size are released first.
            size = next(iter(self.idle))
            blocks = self.idle[size]
            if blocks:
                self.idle_bytes -= size
                self._give_back(blocks.pop(0))
            if not blocks:
                del self.idle[size]

    def _give_back(self, block: HeldBlock) -> None:
        self.taken -= block.nbytes
        self.release(block.address, block.nbytes)
