"""Blocks of folded memory: their holders and their addresses."""

from __future__ import annotations

import ctypes
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.errors import UsageError
from pysmpi.folding.arena import HUGE, Pages, Space
from pysmpi.folding.ledger import PAGE, Ledger, size_class
from pysmpi.folding.partial import Partial, runs_of, whole_pages

linux = pytest.mark.skipif(sys.platform != "linux", reason="folding needs Linux")


class Heap:
    """Addresses without memory; remembers allocations."""

    def __init__(self) -> None:
        self.top = PAGE
        self.live: dict[int, int] = {}

    def allocate(self, nbytes: int) -> int:
        address = self.top
        self.top += nbytes
        self.live[address] = nbytes
        return address

    def release(self, address: int, nbytes: int) -> None:
        assert self.live.pop(address) == nbytes


@given(st.integers(1, 1 << 40))
def test_a_block_has_room_and_wastes_little(nbytes):
    size = size_class(nbytes)
    assert size >= nbytes and size % PAGE == 0
    assert size - nbytes < max(PAGE, nbytes / 7)
    assert size_class(size) == size


def test_ranks_share_by_line_size_and_order():
    heap = Heap()
    ledger = Ledger(heap.allocate, heap.release)
    one, two = ledger.owner(), ledger.owner()
    first = ledger.take(one, "line 1", 100_000).address
    second = ledger.take(one, "line 1", 100_000).address
    assert first != second
    assert ledger.take(two, "line 1", 100_008).address == first  # a row more or less
    assert ledger.take(two, "line 1", 100_000).address == second
    assert ledger.take(two, "line 2", 100_000).address not in (first, second)
    assert ledger.take(two, "line 1", 200_000).address not in (first, second)
    assert ledger.needed == 200_000 + 500_008
    assert ledger.taken == sum(heap.live.values())


def test_memory_stays_while_somebody_holds_it():
    heap = Heap()
    ledger = Ledger(heap.allocate, heap.release, most_idle=0)
    one, two = ledger.owner(), ledger.owner()
    address = ledger.take(one, "line", PAGE).address
    ledger.take(two, "line", PAGE)
    ledger.give(one, address)
    assert heap.live
    ledger.give(two, address)
    assert not heap.live and ledger.taken == 0


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.integers(0, 3), st.sampled_from("abc"), st.sampled_from([5000, 5100, 9000, 70_000])
        ),
        st.tuples(st.integers(0, 3), st.integers(0, 30)),
    ),
    max_size=120,
)


@given(STEPS, st.sampled_from([0, 3 * PAGE, 1 << 30]))
@settings(deadline=None)
def test_no_sequence_makes_arrays_of_one_rank_overlap(steps, most_idle):
    """Allocations and frees of four ranks in any order."""
    heap = Heap()
    ledger = Ledger(heap.allocate, heap.release, most_idle)
    owners = [ledger.owner() for _ in range(4)]
    held = [{} for _ in owners]
    for rank, *what in steps:
        mine = held[rank]
        if len(what) == 2:
            place, nbytes = what
            address = ledger.take(owners[rank], place, nbytes).address
            for other, length in mine.items():
                assert address + nbytes <= other or other + length <= address
            # Allocated memory is usable.
            assert any(
                start <= address and address + nbytes <= start + size
                for start, size in heap.live.items()
            )
            mine[address] = nbytes
        elif mine:
            address = sorted(mine)[what[0] % len(mine)]
            assert ledger.give(owners[rank], address) == mine.pop(address)
        assert [owner.live for owner in owners] == [sum(m.values()) for m in held]
        assert ledger.taken == sum(heap.live.values())
        assert ledger.idle_bytes <= most_idle
    for rank, mine in enumerate(held):
        for address in mine:
            ledger.give(owners[rank], address)
    ledger.close()
    assert ledger.taken == 0 and not heap.live


class Nothing:
    """Addresses without memory."""

    def open(self, address: int, nbytes: int) -> None:
        pass

    def empty(self, address: int, nbytes: int) -> None:
        pass


@given(st.lists(st.one_of(st.integers(1, 40_000), st.integers(-50, -1)), max_size=60))
def test_a_space_hands_out_nothing_twice(steps):
    space = Space(Nothing(), 100, 1 << 30, PAGE)
    held = []
    for step in steps:
        if step > 0:
            start = space.allocate(step)
            assert start >= 100 and start % PAGE == 0
            assert all(start + step <= s or s + n <= start for s, n in held)
            held.append((start, step))
        elif held:
            space.release(*held.pop(step % len(held)))
    for start, nbytes in held:
        space.release(start, nbytes)
    assert len(space.holes) <= 1


def test_a_full_space_says_so():
    space = Space(Nothing(), 0, 10 * PAGE, PAGE)
    space.allocate(6 * PAGE)
    with pytest.raises(MemoryError, match="used up"):
        space.allocate(5 * PAGE)


INDICES = st.one_of(
    st.integers(-4, 3),
    st.tuples(st.slices(4), st.slices(6)),
    st.tuples(st.just(Ellipsis), st.slices(500)),
    st.tuples(st.slices(4), st.integers(-6, 5), st.slices(500)),
)


@given(INDICES)
def test_runs_cover_what_an_index_selects(index):
    """If rows are further apart than pages, nothing a page away from the selection is in a run."""
    shape, dtype = (4, 6, 500), np.dtype("f8")
    chosen = np.zeros(shape, bool)
    chosen[index] = True
    flat = chosen.reshape(-1)
    covered = np.zeros(flat.size * 8, bool)
    for start, stop in runs_of(shape, dtype, index):
        covered[start:stop] = True
    bytes_chosen = np.repeat(flat, 8)
    assert not (bytes_chosen & ~covered).any()
    near = np.flatnonzero(bytes_chosen)
    far = np.flatnonzero(covered & ~bytes_chosen)
    if far.size:
        after = np.searchsorted(near, far)
        distance = np.minimum(
            np.abs(near[np.minimum(after, near.size - 1)] - far),
            np.abs(near[np.maximum(after - 1, 0)] - far),
        )
        assert distance.max() <= PAGE


def test_a_list_of_indices_is_refused():
    with pytest.raises(TypeError, match="expected integers, slices"):
        runs_of((10, 10), np.dtype("f8"), [1, 2])
    with pytest.raises(IndexError):
        runs_of((10, 10), np.dtype("f8"), 10)


def test_pages_are_joined():
    assert whole_pages([(8000, 8001), (0, 1), (4096, 4096)], 9000) == [(0, 8192)]
    assert whole_pages([(8191, 8193)], 9000) == [(4096, 12288)]


class WatchedPages(Pages):
    """Notes the ranges of addresses that are in use; private memory can be used up."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges: dict[int, int] = {}
        self.left = 1000  # private pieces

    def reserve(self, nbytes: int) -> int:
        address = super().reserve(nbytes)
        if address:
            self.ranges[address] = nbytes
        return address

    def map_private(self, address: int, nbytes: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise MemoryError("no memory")
        super().map_private(address, nbytes)

    def close(self, address: int, nbytes: int) -> None:
        assert self.ranges.pop(address) == nbytes
        super().close(address, nbytes)


@linux
def test_all_addresses_are_given_back(monkeypatch):
    from pysmpi.folding import arena, faults

    pages = WatchedPages()
    partial = Partial(pages)
    address = partial.allocate(0, "line", 8 * PAGE, [(0, 1)])
    assert pages.ranges == {address: 8 * PAGE}
    pages.left = 1
    with pytest.raises(MemoryError, match="no memory"):
        partial.allocate(0, "line", 5 * PAGE + 1, [(0, 1), (4 * PAGE, 4 * PAGE + 1)])
    assert pages.ranges == {address: 8 * PAGE}
    pages.left = 2
    other = partial.allocate(0, "line", 5 * PAGE + 1, [(0, 1), (4 * PAGE, 4 * PAGE + 1)])
    assert pages.ranges == {address: 8 * PAGE, other: 6 * PAGE}
    for one in (other, address):
        partial.free(0, one)
    assert not pages.ranges and partial.private == 0
    partial.close()
    monkeypatch.setattr(arena, "Pages", lambda: pages)
    all_blocks = arena.Arena(1 << 32)
    assert len(pages.ranges) == 1
    all_blocks.close()
    all_blocks.close()
    faults._probe(pages, False)
    assert not pages.ranges


@linux
def test_partly_private_arrays_share_what_is_not_private():
    partial = Partial(Pages())
    nbytes = 8 * PAGE
    private = [(0, 100), (7 * PAGE, 8 * PAGE)]
    one = partial.allocate(0, "line", nbytes, private)
    two = partial.allocate(1, "line", nbytes, private)
    ctypes.memset(one, 1, nbytes)
    ctypes.memset(two, 2, nbytes)
    seen = ctypes.string_at(one, nbytes)
    assert seen == b"\1" * PAGE + b"\2" * (6 * PAGE) + b"\1" * PAGE
    assert partial.shared(one + PAGE, 6 * PAGE)
    assert not partial.shared(one + PAGE - 1, 10)
    assert not partial.shared(one + 6 * PAGE, PAGE + 1)
    assert not partial.shared(one - PAGE * 100, 1)
    # A single rank shares nothing.
    other = partial.allocate(0, "line", nbytes, private)
    ctypes.memset(other, 3, nbytes)
    assert ctypes.string_at(one, nbytes) == seen
    for rank, address in ((0, one), (1, two), (0, other)):
        partial.free(rank, address)
    assert partial.private == 0 and not partial.shared(one + PAGE, 1)
    partial.close()


@linux
def test_too_many_mappings_are_refused_before_the_system_does(monkeypatch):
    from pysmpi.folding import partial as module

    monkeypatch.setattr(module, "_most_mappings", lambda: 16)
    partial = Partial(Pages())
    held = [partial.allocate(0, "line", 8 * PAGE, [(0, 1)]) for _ in range(4)]
    with pytest.raises(UsageError, match="vm.max_map_count"):
        partial.allocate(0, "line", 8 * PAGE, [(0, 1)])
    for address in held:
        partial.free(0, address)
    partial.close()


@linux
def test_large_blocks_lie_on_huge_pages():
    from pysmpi.folding.arena import Arena

    arena = Arena(1 << 32)
    try:
        small, large = arena.allocate(10_000), arena.allocate(9 << 20)
        assert large % HUGE == 0 and arena.start <= small < large < arena.stop
        ctypes.memset(small, 7, 10_000)
        arena.clear(small, 12288)
        assert ctypes.string_at(small, 10_000) == bytes(10_000)
        arena.release(large, 9 << 20)
        assert arena.allocate(9 << 20) == large
    finally:
        arena.close()
