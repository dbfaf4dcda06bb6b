"""Equation 1 of the pipelined transfer, and its limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.memory.transfer.pipeline import (
    chunk_sizes,
    copy_seconds,
    parallel,
    pipelined,
    sequential,
)

KIB = 1024
rates = st.floats(1e-12, 1e-6)


@given(st.integers(0, 5000), st.integers(1, 300), st.data(), rates, rates, st.floats(0, 1e-3))
def test_the_closed_form_is_equation_1(nbytes, chunk, data, send, receive, control):
    first = data.draw(st.integers(1, chunk))
    sizes = chunk_sizes(nbytes, chunk, first)
    assert sum(sizes) == nbytes
    assert sizes[0] <= first and all(0 < size <= chunk for size in sizes[1:])

    def s(i):
        return control + sizes[i] * send

    def r(i):
        return control + sizes[i] * receive

    expected = s(0) + r(len(sizes) - 1)
    expected += sum(control + max(sizes[i] * send, sizes[i - 1] * receive)
                    for i in range(1, len(sizes)))  # fmt: skip
    found = pipelined(nbytes, chunk, first, send, receive, control)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("chunk", [32 * KIB, 64 * KIB])
def test_sequential_below_a_chunk_parallel_for_large_messages(chunk):
    send, receive = 1 / 20e9, 1 / 15e9

    def time(nbytes):
        return pipelined(nbytes, chunk, chunk, send, receive)

    for nbytes in (1, chunk // 2, chunk):
        assert time(nbytes) == pytest.approx(sequential(nbytes, send, receive))
    # In between the prediction goes from the one limit to the other.
    shares = []
    for chunks in (1, 2, 4, 16, 64, 256, 1024):
        nbytes = chunks * chunk
        low, high = parallel(nbytes, send, receive), sequential(nbytes, send, receive)
        shares.append((time(nbytes) - low) / (high - low))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(1.0)
    assert shares[-1] < 0.002


def test_a_copy_takes_the_slower_of_load_and_store_as_far_as_they_overlap():
    assert copy_seconds(10.0, 5.0, 1.0) == pytest.approx(0.2)
    assert copy_seconds(10.0, 5.0, 0.0) == pytest.approx(0.3)
    assert copy_seconds(5.0, 10.0, 0.5) == pytest.approx(0.25)
