"""Buffers of ranks, identified independently of addresses.

Memory is identified by the object that owns it, during the lifetime of this object, so a repeated
run finds the same buffers. Memory without an owner (pickled objects, the messages of a collective's
schedule) goes through one buffer of the rank.
"""

from typing import Any, Final, Optional
from weakref import ref

from pysmpi.memory.transfer.caches import Block, Buffer, Caches

# The place of a message's bytes: the object that owns the memory, the offsets of the first byte and
# behind the last byte in it, and the number of separate pieces (1: contiguous).
Location = tuple[object, int, int, int]

MOST_UNNAMED: Final = 1024  # lengths of objects without identity for which a rank has buffers


class Buffers:
    """The buffers of the ranks on one slot; its core belongs to the NUMA node `home`."""

    def __init__(self, caches: Caches, core: int, home: int) -> None:
        self.caches: Caches = caches
        self.core: int = core
        self.home: int = home
        self.named: dict[int, Buffer] = {}
        self.references: dict[int, Any] = {}
        self.scratch: Buffer = Buffer(home)
        self.pickles: Buffer = Buffer(home)
        self.unnamed: dict[int, Buffer] = {}

    def of(self, owner: object) -> Buffer:
        """The buffer of an object that owns memory."""
        key = id(owner)
        buffer = self.named.get(key)
        if buffer is None:
            try:
                self.references[key] = ref(owner, self._forgetting(key))
            except TypeError:
                return self._unnamed(owner)
            buffer = Buffer(self.home)
            self.named[key] = buffer
        return buffer

    def _forgetting(self, key: int) -> Any:
        def forget(_: object) -> None:
            self.named.pop(key, None)
            self.references.pop(key, None)

        return forget

    def _unnamed(self, owner: Any) -> Buffer:
        """The buffer of an object without identity: all objects of one length have the same."""
        length = len(owner)
        buffer = self.unnamed.get(length)
        if buffer is None:
            if len(self.unnamed) >= MOST_UNNAMED:
                del self.unnamed[next(iter(self.unnamed))]
            buffer = Buffer(self.home)
            self.unnamed[length] = buffer
        return buffer

    def block(self, location: Optional[Location], payload: object, nbytes: int) -> Block:
        """The block of a message."""
        caches = self.caches
        if location is None:
            return caches.block(self.scratch if payload is None else self.pickles, 0, nbytes)
        owner, start, end, pieces = location
        block = caches.block(self.of(owner), start, end)
        if pieces > 1:
            # Whole lines between the pieces may not be accessed.
            lines = min(pieces * (1 + (nbytes // pieces) // caches.line), block.size // caches.line)
            block.size = min(block.end - block.start, lines * caches.line)
        return block
