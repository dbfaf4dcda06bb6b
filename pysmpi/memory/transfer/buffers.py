"""Buffers of ranks, identified independently of addresses.

Memory is identified by the object that owns it, during the lifetime of this object, so a repeated
run finds the same buffers. Memory without an owner (pickled objects, the messages of a collective's
schedule) goes through one buffer of the rank.
"""

from typing import Any, Final, Optional
from weakref import ref

from pysmpi.memory.transfer.caches import Block, Buffer, Caches

# The place of a message's bytes: the object that owns the memory, the first and the last + 1 of its
# bytes, and the number of separate pieces (1: contiguous).
Place = tuple[object, int, int, int]

NAMELESS: Final = 1024  # lengths of objects without a name that a rank remembers


class Buffers:
    """The buffers of the ranks on one slot; its core belongs to the NUMA node `home`."""

    def __init__(self, caches: Caches, core: int, home: int) -> None:
        self.caches: Caches = caches
        self.core: int = core
        self.home: int = home
        self.known: dict[int, Buffer] = {}
        self.guards: dict[int, Any] = {}
        self.scratch: Buffer = Buffer(home)
        self.pickles: Buffer = Buffer(home)
        self.nameless: dict[int, Buffer] = {}

    def of(self, owner: object) -> Buffer:
        """The buffer that an object is."""
        key = id(owner)
        found = self.known.get(key)
        if found is None:
            try:
                self.guards[key] = ref(owner, self._gone(key))
            except TypeError:
                return self._nameless(owner)
            found = Buffer(self.home)
            self.known[key] = found
        return found

    def _gone(self, key: int) -> Any:
        def forget(_: object) -> None:
            self.known.pop(key, None)
            self.guards.pop(key, None)

        return forget

    def _nameless(self, owner: Any) -> Buffer:
        """Objects without identity: all those of one length count as one."""
        length = len(owner)
        found = self.nameless.get(length)
        if found is None:
            if len(self.nameless) >= NAMELESS:
                del self.nameless[next(iter(self.nameless))]
            found = Buffer(self.home)
            self.nameless[length] = found
        return found

    def block(self, place: Optional[Place], payload: object, nbytes: int) -> Block:
        """The block of a message."""
        caches = self.caches
        if place is None:
            return caches.block(self.scratch if payload is None else self.pickles, 0, nbytes)
        owner, start, end, pieces = place
        block = caches.block(self.of(owner), start, end)
        if pieces > 1:
            # Whole lines between the pieces may not be accessed.
            lines = min(pieces * (1 + (nbytes // pieces) // caches.line), block.size // caches.line)
            block.size = min(block.end - block.start, lines * caches.line)
        return block
