"""Figures and lists as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi import text


@pytest.mark.parametrize(
    "value, said",
    [(0.0, "0 s"), (1.5, "1.5 s"), (1.204e-3, "1.204 ms"), (2e-6, "2 us"), (3.25e-9, "3.25 ns"),
     (5e-12, "5e-12 s"), (12345.6, "1.235e+04 s")],
)  # fmt: skip
def test_seconds(value, said):
    assert text.seconds(value) == said


@pytest.mark.parametrize(
    "value, said", [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1500, "1.5 kB")]
)
def test_size(value, said):
    assert text.size(value) == said


def test_ranks():
    assert text.ranks([3]) == "rank 3"
    assert text.ranks([4, 0, 1, 2]) == "ranks 0-2,4"
    assert text.ranks(range(0, 40, 2)) == "ranks 0,2,4,6,8,10,... (20)"


@given(st.sets(st.integers(0, 60)))
def test_ranges_name_just_these(numbers):
    named: set[int] = set()
    for part in filter(None, text.ranges(numbers, limit=1000).split(",")):
        first, _, last = part.partition("-")
        named |= set(range(int(first), int(last or first) + 1))
    assert named == numbers
