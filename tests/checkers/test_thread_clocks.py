"""The clocks of the threads of a rank."""

from types import SimpleNamespace

import pytest

from pysmpi.checkers.thread_clocks import ThreadClocks

pytestmark = pytest.mark.fast


class Fiber:
    """A thread of a rank."""


def test_a_thread_has_no_number_of_one_that_still_lives():
    clocks, main, first, second = ThreadClocks(), Fiber(), Fiber(), Fiber()
    rank = SimpleNamespace(fiber=main)
    before = [clocks.now(fiber, rank) for fiber in (main, first, second)]
    del first
    number, event = clocks.now(Fiber(), rank)
    assert number not in {number for number, _ in before}
    assert not clocks.knows(second, (number, event))
