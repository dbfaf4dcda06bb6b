"""Times, sizes and numbers as people read them."""

from __future__ import annotations

import pytest

from pysmpi import text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 s"), (1e-12, "1e-12 s"), (1e-9, "1 ns"), (2.5e-9, "2.5 ns"), (1e-6, "1 us"),
        (1.204e-3, "1.204 ms"), (1.0, "1 s"), (59.99, "59.99 s"), (86400.0, "8.64e+04 s"),
    ],
)  # fmt: skip
def test_seconds(value: float, shown: str) -> None:
    assert text.seconds(value) == shown


@pytest.mark.parametrize(
    ("nbytes", "shown"),
    [
        (0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1 kB"), (1500000, "1.5 MB"),
        (2e9, "2 GB"), (3e12, "3 TB"),
    ],
)  # fmt: skip
def test_sizes(nbytes: float, shown: str) -> None:
    assert text.size(nbytes) == shown


def test_counts() -> None:
    assert text.count(1, "rank") == "1 rank"
    assert text.count(0, "rank") == "0 ranks"
    assert text.count(1024, "rank") == "1,024 ranks"
