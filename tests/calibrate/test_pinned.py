"""Programs that measure on several cores at the same time."""

from __future__ import annotations

import os
import sys

import pytest

from pysmpi.calibrate.pinned import together
from pysmpi.errors import PysmpiError

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux ends children with their parent"
)

# None prints its result before all have begun: each waits for the line.
PROGRAM = """
import json, os, sys
print("ready", flush=True)
line = sys.stdin.readline()
print(json.dumps([sys.argv[1:], line, os.getpid()]))
"""


def test_each_core_gives_its_result_in_order() -> None:
    results = together(PROGRAM, (1.5, "x"), [0, 1, 7])
    assert [words for words, _, _ in results] == [["1.5", "x", str(cpu)] for cpu in (0, 1, 7)]
    assert [line for _, line, _ in results] == ["\n"] * 3
    assert len({pid for _, _, pid in results}) == 3


def test_a_process_that_does_not_begin_is_an_error_and_none_stays(capfd) -> None:
    begins = "import os, sys; print(os.getpid(), file=sys.stderr, flush=True); " + (
        "print('ready' if sys.argv[1] == '0' else 'no', flush=True); sys.stdin.readline()"
    )
    with pytest.raises(PysmpiError, match="has not begun"):
        together(begins, (), [0, 1])
    for pid in map(int, capfd.readouterr().err.split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
