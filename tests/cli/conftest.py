"""The common part of the tests of the command line: running it, and programs to run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(**variables: str) -> dict[str, str]:
    """The variables of a process that finds this pysmpi."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start `pysmpi` in a directory of the test, with pipes for its output."""

    def begin(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pysmpi", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(PYTHONUNBUFFERED="1"),
        )

    return begin


@pytest.fixture
def pysmpi(tmp_path: Path) -> Command:
    """Run `pysmpi` in a directory of the test, as a user does."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pysmpi", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env=environment(**variables),
        )

    return run


@pytest.fixture
def status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run a command line in this process: its exit status, output and error output.

    An exception that would show a traceback of pysmpi fails the test.
    """
    from pysmpi.cli.main import status_of

    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        result = status_of(arguments)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return result, out, err

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file in the directory of the test."""

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_file
