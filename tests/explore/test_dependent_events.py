"""Which events depend on each other, and which arrivals concern an event: all cases of both."""

from __future__ import annotations

from itertools import product

import pytest

from pysmpi.explore.events import Decision, Offer, accepts, concerns, dependent
from pysmpi.kernel.choices import MATCH, ORDER, PROBE, SOME, TEST, TURN
from pysmpi.kernel.matching import ANY

TAGS = (1, 2)


def event(
    kind: str, place: str = "p", pids: tuple[int, ...] = (0,), wanted: int = 0, tag: int = 0,
    effect: str = "", watched: tuple[str, ...] | None = None,
) -> Decision:  # fmt: skip
    return Decision(f"{kind} {pids}", kind, pids, place, effect, "", wanted, tag, 0, watched)


@pytest.mark.parametrize("kind", [MATCH, PROBE])
def test_matches_of_one_mailbox_depend_if_a_receive_could_take_the_other_message(kind: str) -> None:
    for wanted, tag, others, other in product((*TAGS, ANY), TAGS, (*TAGS, ANY), TAGS):
        first, second = event(kind, wanted=wanted, tag=tag), event(kind, wanted=others, tag=other)
        expected = wanted in (ANY, other) or others in (ANY, tag)
        assert dependent(first, second) == dependent(second, first) == expected
        assert not dependent(first, event(kind, "elsewhere", wanted=others, tag=other))


def test_others_at_one_place_depend_unless_their_effects_can_be_exchanged() -> None:
    for one, two in product(("", "add", "read"), repeat=2):
        expected = not one or one != two
        assert dependent(event(TURN, effect=one), event(TURN, effect=two)) == expected
    assert dependent(event(MATCH, wanted=1, tag=1), event(PROBE, wanted=2, tag=2))
    assert not dependent(event(TURN), event(TURN, "elsewhere"))


@pytest.mark.parametrize("kind", [TEST, SOME])
def test_an_answer_of_unknown_requests_depends_on_the_events_of_its_process(kind: str) -> None:
    answer = event(kind, "answers", (3,))
    for pids, expected in (((3, 1), True), ((1, 3), True), ((1, 2), False)):
        match = event(MATCH, "mailbox", pids, 1, 1)
        assert dependent(answer, match) == dependent(match, answer) == expected
    assert not dependent(event(ORDER, "a", (3,)), event(MATCH, "mailbox", (3,)))


@pytest.mark.parametrize("kind", [TEST, SOME])
def test_an_answer_is_exchanged_with_matches_and_concerned_by_those_of_its_requests(
    kind: str,
) -> None:
    answer = event(kind, "answers", (3,), watched=("receive 3#1", "a message"))
    match = event(MATCH, "mailbox", (3, 1), 1, 1)
    assert not dependent(answer, match) and not dependent(match, answer)
    assert dependent(answer, event(kind, "answers", (3,), watched=()))
    for place, expected in (("receive 3#1", True), ("a message", True), ("receive 3#2", False)):
        assert concerns(Offer(place, 3, -1, -1, 0), answer) == expected
    assert not concerns(Offer("mailbox", 3, 1, 0, 0), answer)


def test_arrivals_concern_what_they_could_have_changed() -> None:
    for wanted, tag in product((*TAGS, ANY), TAGS):
        offer = Offer("p", 5, tag, 0, 0)
        for kind in (MATCH, PROBE):
            assert concerns(offer, event(kind, wanted=wanted)) == accepts(wanted, tag)
            assert not concerns(offer, event(kind, "elsewhere", (5,), wanted))
        assert concerns(offer, event(TURN))
    for kind in (TEST, SOME):
        assert concerns(Offer("mailbox", 5, 1, 0, 0), event(kind, "answers", (5,)))
        assert not concerns(Offer("mailbox", 4, 1, 0, 0), event(kind, "answers", (5,)))
    assert not concerns(Offer("mailbox", 5, 1, 0, 0), event(TURN, "elsewhere", (5,)))
