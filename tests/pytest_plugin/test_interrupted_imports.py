"""Ctrl-C while the plugin imports pysmpi ends a session as everywhere else, with status 2."""

from __future__ import annotations

import subprocess
import sys

# `Target` has fields of dataclasses. Their `__set_name__` is called by the interpreter, which
# makes a RuntimeError of what it raises.
CONFTEST = """
import dataclasses, os, signal
real = dataclasses.Field.__set_name__
def interrupted(self, owner, name):
    if owner.__module__ == "pysmpi.shadow.targets":
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # a handler runs between two steps of the interpreter
            pass
    real(self, owner, name)
dataclasses.Field.__set_name__ = interrupted
"""


def test_the_import_is_finished_before(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.mpi(2)\ndef test_it():\n    pass\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert result.returncode == 2, result.stdout + result.stderr
    assert "KeyboardInterrupt" in result.stdout and "INTERNALERROR" not in result.stdout
