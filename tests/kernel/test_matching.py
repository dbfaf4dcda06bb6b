"""Messages are matched in the order that MPI asks for."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pysmpi.kernel.engine import Engine
from pysmpi.kernel.matching import (
    ANY,
    NO_INDEX,
    Mailbox,
    accepts,
    hopeless,
    key_of,
    mailbox_of,
    undeliverable,
)
from pysmpi.kernel.plan import Transport
from pysmpi.kernel.requests import AbstractProcess, Context, Losses, Receive, Send

CONTEXT = Context(1, [])


class Naive:
    """The rule itself: the oldest that fits, in plain lists."""

    def __init__(self):
        self.sends, self.receives = [], []

    def send(self, send):
        for receive in self.receives:
            if accepts(receive, send):
                self.receives.remove(receive)
                return receive
        self.sends.append(send)
        return None

    def receive(self, receive):
        for send in self.sends:
            if accepts(receive, send):
                self.sends.remove(send)
                return send
        self.receives.append(receive)
        return None


envelopes = st.tuples(
    st.booleans(),
    st.sampled_from([*range(6), ANY]),
    st.sampled_from([0, 1, 7, ANY]),
    st.booleans(),
)


@settings(deadline=None)
@given(st.lists(envelopes, max_size=40))
def test_as_the_rule_says(steps):
    follow(steps)


@pytest.mark.parametrize("seed", range(20))
def test_as_the_rule_says_of_many_messages(seed):
    draw = random.Random(seed)
    receives = 0.0
    steps = []
    for _ in range(2000):
        # First many sends, then more and more receives.
        receives += 1 / 2000
        sends = draw.random() > receives
        source = draw.choice([*range(40), *([ANY] * draw.choice([4, 40]))])
        tag = draw.choice([*range(5), *([ANY] * 5)])
        steps.append((sends, source, tag, draw.random() < 0.02))
    follow(steps)


ranks = st.one_of(st.just(ANY), st.integers(0, 2**29 - 1))
tags = st.one_of(st.just(ANY), st.integers(-(2**31), 2**31 - 1))


@given(ranks, tags, ranks, tags)
@example(ANY, 0, ANY % 2**29, 0)
@example(ANY, ANY, ANY % 2**29, ANY)
def test_pairs_of_source_and_tag_have_different_keys(source, tag, other, another):
    assert (key_of(source, tag) == key_of(other, another)) == ((source, tag) == (other, another))


def test_keys_differ_in_the_bits_by_which_a_dictionary_looks_for_them():
    low = (1 << 12) - 1
    assert len({key_of(source, 7) & low for source in range(low + 1)}) == low + 1
    assert len({key_of(3, tag) & low for tag in range(low + 1)}) == low + 1


def test_receives_from_each_of_many_do_not_search_all_messages():
    box, number = Mailbox(), 20_000
    for order in range(number):
        box.match_send(ordered(Send(CONTEXT, order, 0, order % 3, 8), order))
    for source in range(number):
        assert box.match_receive(Receive(CONTEXT, source, 0, ANY, 8)).source == source
    assert box.empty() and box.index is NO_INDEX


def ordered(request, order):
    request.order = order
    return request


def follow(steps):
    box, naive = Mailbox(), Naive()
    pending = []
    for order, (sends, source, tag, cancels) in enumerate(steps):
        if cancels and pending:
            victim = pending.pop(order % len(pending))
            here = victim in naive.sends or victim in naive.receives
            assert box.cancel(victim) == here
            if victim in naive.sends:
                naive.sends.remove(victim)
            elif victim in naive.receives:
                naive.receives.remove(victim)
            continue
        if sends:
            request = Send(CONTEXT, max(source, 0), 0, max(tag, 0), 8)
            request.order = order
            assert box.match_send(request) is naive.send(request)
        else:
            request = Receive(CONTEXT, source, 0, tag, 8)
            request.order = order
            expected = next((s for s in naive.sends if accepts(request, s)), None)
            assert box.peek(request) is expected
            assert box.match_receive(request) is naive.receive(request)
        pending.append(request)


def test_candidates_are_the_first_of_each_source():
    box = Mailbox()
    for order, (source, tag) in enumerate([(2, 5), (1, 5), (2, 5), (1, 6), (0, 6)]):
        send = Send(CONTEXT, source, 0, tag, 8)
        send.order = order
        box.match_send(send)
    wild = Receive(CONTEXT, ANY, 0, ANY, 8)
    assert [(s.source, s.tag) for s in box.candidates(wild)] == [(2, 5), (1, 5), (0, 6)]
    tagged = Receive(CONTEXT, ANY, 0, 6, 8)
    assert [s.source for s in box.candidates(tagged)] == [1, 0]


def test_asking_whether_a_message_can_come_changes_nothing():
    engine = Engine(Transport(), 3)
    context = Context(1, [AbstractProcess(engine, rank, rank) for rank in range(3)])
    context.closed, context.lost = set(), Losses()
    context.lost.sources, context.lost.destinations = {2}, {2}
    receives = [Receive(context, source, 0, 5, 1) for source in (1, 2, ANY)]
    assert [hopeless(receive) for receive in receives] == [False, True, False]
    context.lost.wary = {0}
    assert [hopeless(receive) for receive in receives] == [False, True, True]
    assert not any(receive.truncated or receive.done for receive in receives)
    sends = [Send(context, 0, destination, 5, 1) for destination in (1, 2)]
    for send in sends:
        send.detached = True
    assert [undeliverable(send) for send in sends] == [False, True]
    assert all(send.detached for send in sends)
    # A message that the failed process has sent before still comes.
    mailbox_of(receives[1]).match_send(Send(context, 2, 0, 5, 1))
    assert not hopeless(receives[1])
