"""A file in memory gives its bytes once, in the order in which they were written."""

from __future__ import annotations

import os

import pytest

from pysmpi.isolation.kinds import rank_output


def test_each_part_is_read_once() -> None:
    memory = rank_output.OutputMemory()
    assert memory.new() == []
    os.write(memory.number, b"first ")
    os.write(memory.number, b"second")
    assert memory.new() == [b"first second"]
    assert memory.new() == []
    os.write(memory.number, b"third")
    assert memory.new() == [b"third"]
    os.close(memory.number)


def test_much_output_comes_in_parts_and_the_file_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rank_output, "_LARGE", 3 << 20)
    memory = rank_output.OutputMemory()
    data = os.urandom(1 << 16) * 40  # 2.5 MiB
    os.write(memory.number, data)
    parts = memory.new()
    assert b"".join(parts) == data and [len(part) for part in parts[:2]] == [1 << 20] * 2
    assert os.fstat(memory.number).st_size == len(data)
    os.write(memory.number, data)
    assert b"".join(memory.new()) == data
    assert os.fstat(memory.number).st_size == 0
    os.write(memory.number, b"again")
    assert memory.new() == [b"again"]
    os.close(memory.number)
