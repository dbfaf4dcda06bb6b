"""`os._exit` in a rank takes the statuses that it takes in a process."""

from __future__ import annotations

import os

import pytest

import pysmpi

LIMIT = 1 << 31


def leave(status: int) -> None:
    for wrong in (LIMIT, -LIMIT - 1):
        with pytest.raises(OverflowError):
            os._exit(wrong)
    for no_number in ("1", 1.0, None):
        with pytest.raises(TypeError):
            os._exit(no_number)  # type: ignore[arg-type]
    os._exit(status)


@pytest.mark.parametrize("status", [3, 255, 256 + 5, -1, LIMIT - 1, -LIMIT + 7])
def test_the_low_byte_is_the_status_of_the_program(status: int) -> None:
    with pytest.raises(pysmpi.ProgramError) as caught:
        pysmpi.run(leave, 1, args=(status,), compute="none")
    assert caught.value.result.exit_status == status & 0xFF
