"""The open descriptors of the process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pysmpi.own_process import descriptors


def test_new_ones_are_those_of_other_files(tmp_path: Path) -> None:
    before = descriptors.open_descriptors()
    if before is None:
        pytest.skip("this system has no list of descriptors")
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        opened = descriptors.opened_since(before)
        assert opened is not None and fd in opened
        middle = descriptors.open_descriptors()
        other = os.open(os.devnull, os.O_RDONLY)
        os.dup2(other, fd)
        os.close(other)
        replaced = descriptors.opened_since(middle)
        assert replaced is not None and fd in replaced
    finally:
        os.close(fd)
    closed = descriptors.opened_since(before)
    assert closed is not None and fd not in closed


def test_nothing_is_known_without_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    before = descriptors.open_descriptors()
    lists = descriptors._LISTS
    monkeypatch.setattr(descriptors, "_LISTS", ("/no/such/list",))
    assert descriptors.open_descriptors() is None
    assert descriptors.opened_since(before) is None
    monkeypatch.setattr(descriptors, "_LISTS", ("/no/such/list", *lists))
    assert (descriptors.open_descriptors() is None) == (before is None)
    assert descriptors.opened_since(None) is None
