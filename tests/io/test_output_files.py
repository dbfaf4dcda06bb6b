"""Files that a run writes are whole or absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.io.output import OutputFile


def test_kept(tmp_path: Path):
    name = str(tmp_path / "out.json.gz")
    Path(name).write_text("old")
    with OutputFile("--trace", name) as target:
        assert target.path.endswith(".out.json.gz")
        Path(target.path).write_text("new")
        assert Path(name).read_text() == "old"
        target.keep()
    assert Path(name).read_text() == "new"
    assert os.listdir(tmp_path) == ["out.json.gz"]


def test_dropped(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        with OutputFile("--trace", str(tmp_path / "out")):
            raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_permissions_are_those_of_any_file(tmp_path: Path):
    with OutputFile("--trace", str(tmp_path / "out")) as target:
        target.keep()
    (tmp_path / "other").touch()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_devices_are_written_to():
    with OutputFile("--report", os.devnull) as target:
        assert target.path == os.devnull
        target.keep()
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize("name", ["missing/out", "."])
def test_refused(tmp_path: Path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"^--report {name}: cannot be written: "):
        OutputFile("--report", name)


def test_a_file_that_may_not_be_written_stays(tmp_path: Path, monkeypatch):
    path = tmp_path / "file.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda name, mode: mode != os.W_OK)  # as for others than root
    with pytest.raises(UsageError, match="permission denied"):
        OutputFile("--output", str(path))
    assert path.read_text() == "old" and [*tmp_path.iterdir()] == [path]
