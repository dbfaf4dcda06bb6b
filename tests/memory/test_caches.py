"""Contents of caches: sizes, recency, states, and buffers that are used in parts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.memory.coherence import protocol
from pysmpi.memory.transfer.buffers import Buffers
from pysmpi.memory.transfer.caches import Buffer, Caches
from pysmpi.memory.transfer.kinds import access_of, describe, distance_of, kind_of, level_of
from pysmpi.platform import load
from pysmpi.platform.node_description import ACCESSES, Distance, LevelCaches, NodeDescription

LINE = 64
NODE = NodeDescription(
    "test", 4, 2, 2,
    (LevelCaches(1, 4 * LINE, 1), LevelCaches(2, 16 * LINE, 1), LevelCaches(3, 64 * LINE, 2)),
    (Distance("socket", 2), Distance("node", 4)),
)  # fmt: skip


def caches(name="MESI", node=NODE):
    return Caches(node, protocol(name))


def everything(found):
    """All caches of a node, each once."""
    return {id(cache): cache for path in found.paths for cache in path}.values()


def check(found):
    for cache in everything(found):
        assert 0 <= cache.used == sum(cache.content.values()) <= cache.capacity


@pytest.mark.parametrize("access", ACCESSES)
def test_a_kind_is_its_parts(access):
    for distance in (-1, 0, 3):
        for level in (0, 4):
            kind = kind_of(access, distance, level)
            assert (access_of(kind), distance_of(kind), level_of(kind)) == (access, distance, level)


def test_a_buffer_is_nearer_the_more_recently_it_was_used():
    found = caches()
    buffer, other = Buffer(0), Buffer(0)
    block = found.block(buffer, 0, 2 * LINE)
    assert describe(found.access(0, block, True), NODE) == "SMI"
    assert describe(found.access(0, block, False), NODE) == "LHM L1"
    for size, where in ((4, "LHM L2"), (16, "LHM L3"), (64, "LMI")):
        found.access(0, found.block(other, 0, size * LINE), False)
        assert describe(found.access(0, block, False), NODE) == where
        check(found)


def test_the_neighbour_in_the_socket_shares_the_third_level():
    found = caches()
    block = found.block(Buffer(0), 0, LINE)
    found.access(0, block, True)
    # Modified in the neighbour's own cache: it must be asked.
    assert describe(found.access(1, block, False), NODE) == "LMM socket"
    assert found.state(0, block) == found.state(1, block) == "S"
    assert describe(found.access(1, block, True), NODE) == "SHS socket L1"
    assert found.state(0, block) == "I"
    # An evicted line is found in the level below.
    found.access(1, found.block(Buffer(0), 0, 16 * LINE), False)
    assert describe(found.access(0, block, False), NODE) == "LHM L3"


def test_the_other_socket_is_farther_and_memory_has_a_home():
    found = caches()
    buffer = Buffer(0)
    block = found.block(buffer, 0, LINE)
    assert describe(found.access(2, block, False), NODE) == "LMI node"
    assert describe(found.access(0, block, True), NODE) == "SME node"
    assert describe(found.access(2, block, False), NODE) == "LMM node"


@pytest.mark.parametrize("name", ["MESI", "MESIF", "MOESI", "GOLS", "FAME-A", "FAME-B"])
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 60),
                          st.integers(1, 40), st.booleans()), max_size=60))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any_accesses_leave_the_caches_coherent_and_within_their_sizes(name, accesses):
    found = caches(name)
    buffers = [Buffer(0), Buffer(0), Buffer(1), Buffer(1)]
    for core, which, start, size, write in accesses:
        buffer = buffers[which]
        block = found.block(buffer, start * 32, (start + size) * 32)
        kind = found.access(core, block, write)
        assert NODE.distances[distance_of(kind)] if distance_of(kind) >= 0 else True
        check(found)
        if write:
            # No other core has it in its own cache, nor do the caches of the other socket.
            for peer in range(4):
                if peer != core:
                    assert found.state(peer, block) == "I"
                    assert not {1, 2} & set(found.holds(peer, block))
                    if peer // 2 != core // 2:
                        assert not found.holds(peer, block)
        # The next access of the same core finds it, if it fits anywhere.
        if block.size <= 64 * LINE:
            assert access_of(found.access(core, block, False))[1] == "H"
        # Blocks of a buffer are disjoint and in order.
        ends = 0
        for begin in buffer.starts:
            assert begin >= ends
            assert buffer.blocks[begin].start == begin
            ends = buffer.blocks[begin].end
        assert sorted(buffer.blocks) == buffer.starts


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), max_size=80))
@settings(max_examples=100, deadline=None)
def test_one_core_alone_sees_least_recently_used_caches(uses):
    """Against a plain list of blocks a level, most recent last.

    A level sees the accesses that the level before misses, and takes the blocks that it evicts.
    """
    found = caches()
    buffers = [[Buffer(0) for _ in range(6)] for _ in range(6)]
    lists = [[], [], []]
    for which, lines in uses:
        block = found.block(buffers[which][lines], 0, lines * LINE)
        level = level_of(found.access(0, block, False))
        key = (which, lines)
        expected = next((i + 1 for i, held in enumerate(lists) if key in held), 0)
        assert level == expected

        def add(i, key):
            held = lists[i]
            if key in held:
                held.remove(key)
            held.append(key)
            while sum(lines for _, lines in held) * LINE > NODE.caches[i].size:
                victim = held.pop(0)
                if i < 2 and victim not in lists[i + 1]:
                    add(i + 1, victim)

        for i in reversed(range(expected or 3)):
            add(i, key)


def test_a_part_of_a_buffer_is_where_the_whole_was():
    found = caches()
    buffer = Buffer(0)
    found.access(0, found.block(buffer, 0, 8 * LINE), True)
    part = found.block(buffer, 2 * LINE, 3 * LINE)
    assert describe(found.access(0, part, False), NODE) == "LHM L2"
    assert describe(found.access(0, part, False), NODE) == "LHM L1"
    # The whole again: most of it is in the second level.
    whole = found.block(buffer, 0, 8 * LINE)
    assert describe(found.access(0, whole, False), NODE) == "LHM L2"
    assert list(buffer.blocks) == [0]


def test_bytes_of_one_line_are_one_block():
    found = caches()
    buffer = Buffer(0)
    assert found.block(buffer, 8, 16) is found.block(buffer, 40, 48)


@pytest.mark.parametrize(
    "name", ["xeon-e5-2650", "opteron-6272", "xeon-phi-5110p", "novascale", "multicore-cluster"]
)
def test_every_access_on_a_machine_that_ships_has_a_throughput(name):
    node = load(name).hosts[0].node
    found = caches(node.protocol, node)
    last = node.cores - 1
    buffers = [Buffer(0), Buffer(node.numa - 1)]
    for size in (1 << 10, 1 << 18, 1 << 25):
        for core in (0, 1, last, 0, last):
            for buffer in buffers:
                for write in (False, True):
                    kind = found.access(core, found.block(buffer, 0, size), write)
                    speed = node.throughput(access_of(kind), distance_of(kind), size)
                    assert 1e8 < speed < 1e11


def test_lengths_of_objects_that_cannot_be_referenced_are_kept_in_bounded_number():
    """Lists and tuples have no weak references: their buffers are known by their lengths."""
    buffers = Buffers(caches(), 0, 0)
    for length in range(5000):
        buffers.of((0,) * length)
    assert 0 < len(buffers.unnamed) < 2000


def test_messages_without_memory_of_the_program_have_buffers_of_their_own():
    """Pickles do not overwrite what packed messages left in the caches, and the reverse."""
    found = caches()
    buffers = Buffers(found, 0, 0)
    packed, pickle = buffers.block(None, None, LINE), buffers.block(None, b"pickle", LINE)
    assert packed is not pickle
    assert buffers.block(None, None, LINE) is packed
    assert buffers.block(None, b"other", LINE) is pickle
    assert packed in buffers.scratch.blocks.values()
    assert pickle in buffers.pickles.blocks.values()
