"""Quantities with units: SimGrid's spellings are read, everything else is one clear message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.errors import UsageError
from pysmpi.platform import units
from pysmpi.platform.numbers import read_count, read_radical, write_radical


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_bandwidth, "125MBps", 125e6),
        (units.parse_bandwidth, "1Gbps", 125e6),
        (units.parse_bandwidth, "1162500000Bps", 1162.5e6),
        (units.parse_bandwidth, "1.25GBps", 1.25e9),
        (units.parse_bandwidth, "1e9Bps", 1e9),
        (units.parse_bandwidth, "1KiBps", 1024.0),
        (units.parse_bandwidth, "8Kibps", 1024.0),
        (units.parse_bandwidth, " 5kBps ", 5000.0),
        (units.parse_time, "24us", 24 * 1e-6),
        (units.parse_time, "1.5ns", 1.5 * 1e-9),
        (units.parse_time, "2m", 120.0),
        (units.parse_time, "1w", 604800.0),
        (units.parse_time, "0", 0.0),
        (units.parse_time, "1E-3s", 1e-3),
        (units.parse_speed, "3.542Gf", 3.542e9),
        (units.parse_speed, "98.095Mf", 98.095e6),
        (units.parse_speed, "2gigaflops", 2e9),
        (units.parse_speed, "7f", 7.0),
        (units.parse_speed, "3Ef", 3e18),
        (units.parse_size, "64KiB", 65536),
        (units.parse_size, "100MB", 100_000_000),
        (units.parse_size, "1kb", 125),
        (units.parse_size, "0", 0),
    ],
)
def test_reads_what_simgrid_writes(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_bandwidth, "10 G"),
        (units.parse_bandwidth, "10 Gbps"),
        (units.parse_bandwidth, "10gbps"),
        (units.parse_bandwidth, "-1Gbps"),
        (units.parse_bandwidth, "125"),
        (units.parse_bandwidth, ""),
        (units.parse_bandwidth, "fast"),
        (units.parse_bandwidth, "24us"),
        (units.parse_bandwidth, "infBps"),
        (units.parse_bandwidth, "nanBps"),
        (units.parse_bandwidth, "1e999Bps"),
        (units.parse_bandwidth, "1e-320Bps"),
        (units.parse_time, "1e101s"),
        (units.parse_time, "1e308s"),
        (units.parse_time, "24"),
        (units.parse_time, "24 us"),
        (units.parse_time, "0x10s"),
        (units.parse_speed, "3.5GHz"),
        (units.parse_speed, "1,5Gf"),
        (units.parse_size, "1b"),
        (units.parse_size, "12"),
    ],
)
def test_refuses_everything_else(parse, text):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert "expected" in str(caught.value)
    assert f'got "{text}"' in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bare_number_counts_in_the_base_unit_where_the_caller_allows_it():
    assert units.parse_bandwidth("10e9", bare=True) == 10e9
    assert units.parse_time("0.5", bare=True) == 0.5
    with pytest.raises(UsageError, match="with its unit"):
        units.parse_time("0.5")


POSITIVE = st.floats(min_value=1e-14, max_value=1e24, allow_nan=False, allow_infinity=False)


@given(POSITIVE)
def test_what_is_written_reads_back_to_the_same_number(value):
    assert units.parse_bandwidth(units.format_bandwidth(value)) == value
    assert units.parse_speed(units.format_speed(value)) == value
    assert units.parse_time(units.format_time(value)) == value


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_a_usage_error(text):
    for parse in (units.parse_bandwidth, units.parse_time, units.parse_speed, units.parse_size):
        try:
            assert parse(text) >= 0
        except UsageError:
            pass


def test_written_quantities_are_short():
    assert units.format_bandwidth(125e6) == "125MBps"
    assert units.format_bandwidth(187.5e6) == "187.5MBps"
    assert units.format_time(24 * 1e-6) == "24us"
    assert units.format_time(0.0) == "0s"
    assert units.format_speed(3.542e9) == "3.542Gf"


def test_host_numbers():
    assert read_radical("0-3,8,10-11") == [(0, 3), (8, 8), (10, 11)]
    assert write_radical([(0, 3), (8, 8), (10, 11)]) == "0-3,8,10-11"


@pytest.mark.parametrize("text", ["", "a", "3-1", "1-2-3", "-1", "0-", "1;2"])
def test_bad_host_numbers(text):
    with pytest.raises(UsageError, match="expected"):
        read_radical(text)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "", "²", "99999999999"])
def test_bad_counts(text):
    with pytest.raises(UsageError, match="whole number above 0"):
        read_count(text)
