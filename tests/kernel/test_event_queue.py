"""The event queue gives events by date, and those of a date in the order of their addition."""

import random
from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysmpi.kernel.core import Core
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.events import Event, EventQueue, events_of
from pysmpi.kernel.plan import Transport
from pysmpi.kernel.process import Process

# Few dates, so that many events share one.
DATES = st.integers(0, 5).map(float)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), DATES),
        st.tuples(st.just("pop"), st.booleans()),
        st.tuples(st.just("remove"), st.integers(0, 100)),
        st.tuples(st.just("put back"), st.integers(1, 3)),
    ),
    max_size=80,
)


def pop(queue, released=True):
    """The events of the entry that `pop` takes out, with their dates."""
    entry = queue.pop()
    found = events_of([entry])
    while released and entry is not None:
        following = entry.after
        queue.release(entry)
        entry = following
    return found


@settings(deadline=None)
@given(OPERATIONS)
def test_the_order_is_that_of_a_sorted_list(operations):
    queue, model = EventQueue(), []
    for kind, value in operations:
        if kind == "push":
            event = Event()
            queue.push(value, event)
            model.append((value, event))
            model.sort(key=lambda one: one[0])  # equal dates stay in order
        elif not model:
            assert queue.empty()
        elif kind == "pop":
            assert queue.next() == model[0][0]
            found = pop(queue, value)
            assert found == model[: len(found)]
            assert len({date for date, _ in found}) == 1
            del model[: len(found)]
        elif kind == "remove":
            date, event = model.pop(value % len(model))
            queue.remove(date, event)
        else:
            entry = queue.pop()
            turn = entry.turn
            for _ in range(value):
                following = entry.after
                queue.release(entry)
                model.pop(0)
                if following is None:
                    break
                entry = following
            if following is not None:
                queue.put_back(entry, turn)
        assert queue.all() == model
        assert [queue.at(date) for date in (0.0, 3.0)] == [
            [event for other, event in model if other == date] for date in (0.0, 3.0)
        ]
    while model:
        found = pop(queue)
        assert found == model[: len(found)]
        del model[: len(found)]
    assert queue.empty()


# Seconds until an event is due, as the processes of a large job have them.
WAITS = {
    "even": lambda chance: chance.random(),
    "mostly soon": lambda chance: chance.expovariate(1.0) ** 3,
    "at few dates": lambda chance: chance.choice([1.0, 2.0, 3.0, 50.0]),
    "a few much later": lambda chance: chance.random() * chance.choice([1.0] * 99 + [1e9]),
    "never": lambda chance: chance.choice([chance.random(), float("inf")]),
    "all at once": lambda chance: 1.0,
}


@pytest.mark.parametrize(
    "waits, pending", [*((waits, 5_000) for waits in WAITS), ("mostly soon", 30_000)]
)
def test_the_order_is_the_same_if_later_events_wait_in_buckets(waits, pending):
    chance, queue, model, number = random.Random(1), EventQueue(), [], 0
    for _ in range(3 * pending):
        if len(model) < pending and (not model or chance.random() < 0.7):
            event = Event()
            date = queue.now + WAITS[waits](chance)
            queue.push(date, event)
            heappush(model, (date, number, event))
            number += 1
        else:
            assert queue.next() == model[0][0]
            entry = queue.pop()
            turn, queue.now = entry.turn, entry.time
            while entry is not None:
                following = entry.after
                assert (entry.time, entry.event) == heappop(model)[::2]
                queue.release(entry)
                entry = following
                if entry is not None and chance.random() < 0.1:
                    queue.put_back(entry, turn)
                    break
            assert queue.empty() == (not model)
    assert queue.buckets or waits in ("never", "all at once", "at few dates")
    expected = [(date, event) for date, _, event in sorted(model)]
    assert queue.all() == expected
    for date, _ in expected[:: len(expected) // 5 + 1]:
        assert queue.at(date) == [event for other, event in expected if other == date]
    if expected:
        queue.remove(*expected.pop(len(expected) // 2))
        assert queue.all() == expected
    while expected:
        found = pop(queue)
        assert found == expected[: len(found)]
        del expected[: len(found)]
    assert queue.empty()


def test_events_of_a_date_follow_each_other_without_the_heap():
    queue, events = EventQueue(), [Event() for _ in range(5)]
    for event in events:
        queue.push(1.0, event)
    assert [event for _, event in pop(queue)] == events


def test_an_engine_that_was_stopped_goes_on_in_the_same_order():
    engine, notes = Engine(Transport(), 1), []

    def named(name):
        def resume():
            notes.append((name, engine.more_now()))
            if name == "b":
                engine.queue.push(engine.now, named("added"))
                engine.stop()

        process = Process(engine, 0, 0, Core(1.0))
        process.resume = resume
        return process

    for name in "abcd":
        engine.queue.push(1.0, named(name))
    engine.run()
    assert notes == [("a", True), ("b", True)]
    engine.stopped = False
    engine.run()
    assert notes[2:] == [("c", True), ("d", False), ("added", False)]
