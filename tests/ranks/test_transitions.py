"""The table of the states of ranks: every event of a running rank, and what final states refuse."""

from __future__ import annotations

import pytest

from pysmpi.ranks.outcomes import TRANSITIONS, UNDER_WAY, Outcome, RankEvent, RankState

# Events of a rank that has ended: it may be killed or left in the middle of its end.
LATE = {RankEvent.IS_KILLED, RankEvent.IS_LEFT}


def test_every_event_can_end_a_running_rank():
    for event in set(RankEvent) - {RankEvent.COMPUTES}:
        outcome = Outcome()
        outcome.undergo(event)
        assert outcome.state is not RankState.RUNNING, event


@pytest.mark.parametrize("state", RankState)
@pytest.mark.parametrize("event", RankEvent)
def test_what_is_not_in_the_table_is_refused(state, event):
    outcome = Outcome()
    outcome.state = state
    if state is RankState.RUNNING:
        expected = event is not RankEvent.COMPUTES
    else:
        computes = state is RankState.FINISHED and event is RankEvent.COMPUTES
        expected = event in LATE or computes
    assert (event in TRANSITIONS[state]) is expected
    if expected:
        outcome.undergo(event)
        assert outcome.state is TRANSITIONS[state][event]
    else:
        with pytest.raises(RuntimeError, match=f"a rank that is {state.value} does not expect"):
            outcome.undergo(event)
        assert outcome.state is state


def test_a_rank_that_computes_after_its_program_finishes_again():
    outcome = Outcome()
    for event in (RankEvent.RETURNS, RankEvent.COMPUTES, RankEvent.RETURNS):
        outcome.undergo(event)
    assert outcome.state is RankState.FINISHED
    with pytest.raises(AttributeError):
        UNDER_WAY.undergo(RankEvent.RETURNS)
