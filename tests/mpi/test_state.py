"""State of chapters: separate for each owner, and shared memory while it is the same."""

from __future__ import annotations

import gc
import weakref

import pytest

from pysmpi.mpi.base.owners import NO_STATE, Owner
from pysmpi.mpi.base.state import StateSlot, forget


class Thing(Owner):
    """An owner."""

    def __init__(self) -> None:
        self.state = NO_STATE


class Other:
    """A value whose finalizer uses its owner."""

    def __init__(self, owner: Thing, seen: list[object]) -> None:
        self.owner = owner
        self.seen = seen

    def __del__(self) -> None:
        self.seen.append(OWN.peek(self.owner))


FIRST: StateSlot[Thing, list[int]] = StateSlot(Thing, list)
COMMON: StateSlot[Thing, object] = StateSlot(Thing, kept=True)
OWN: StateSlot[Thing, object] = StateSlot(Thing)


def test_state_is_made_at_its_first_use() -> None:
    one, two = Thing(), Thing()
    assert FIRST.peek(one) is None
    FIRST.of(one).append(1)
    assert (FIRST.of(one), FIRST.of(two)) == ([1], [])
    with pytest.raises(LookupError):
        OWN.of(one)


def test_common_state_takes_no_memory_of_an_owner() -> None:
    value = object()
    things = [Thing() for _ in range(3)]
    for thing in things:
        COMMON.put_common(thing, value)
    assert len({id(thing.state) for thing in things}) == 1
    assert [COMMON.of(thing) for thing in things] == [value] * 3
    assert FIRST.peek(things[0]) is None and OWN.peek(things[0]) is None


@pytest.mark.parametrize("slot", [FIRST, OWN])
def test_other_state_of_an_owner_is_its_own(slot: StateSlot[Thing, object]) -> None:
    value = object()
    one, two = Thing(), Thing()
    for thing in (one, two):
        COMMON.put_common(thing, value)
    slot.put(one, "own")
    assert (slot.peek(one), slot.peek(two)) == ("own", None)
    assert COMMON.of(one) is COMMON.of(two) is value
    COMMON.put(one, "other")
    COMMON.clear(two)
    assert (COMMON.of(one), COMMON.peek(two), slot.of(one)) == ("other", None, "own")


def test_common_state_can_be_replaced() -> None:
    """As at the end of MPI, for one rank after another."""
    before, after = object(), object()
    things = [Thing() for _ in range(4)]
    for thing in things:
        COMMON.put_common(thing, before)
    OWN.put(things[3], "own")
    for thing in (things[0], things[1], things[3]):
        COMMON.put_common(thing, after)
    assert [COMMON.of(thing) for thing in things] == [after, after, before, after]
    assert things[0].state is things[1].state
    assert OWN.of(things[3]) == "own"


def test_an_owner_forgets_all_but_what_is_kept() -> None:
    value = object()
    one, two = Thing(), Thing()
    for thing in (one, two):
        COMMON.put_common(thing, value)
    FIRST.of(two).append(1)
    OWN.put(two, "own")
    for thing in (one, two):
        forget(thing, Thing)
        assert COMMON.of(thing) is value
        assert FIRST.peek(thing) is None and OWN.peek(thing) is None


def test_finalizers_of_forgotten_state_may_use_the_owner() -> None:
    seen: list[object] = []
    thing = Thing()
    OWN.put(thing, Other(thing, seen))
    forget(thing, Thing)
    assert seen == [None]
    gone = weakref.ref(thing)
    del thing
    gc.collect()
    assert gone() is None
