"""The timer that looks for alarms of ranks does not end calls of C code with EINTR."""

from __future__ import annotations

import sys

import pytest

import pysmpi


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_read_goes_on_after_the_timer():
    def main():
        import ctypes
        import os
        import signal
        import subprocess

        signal.setitimer(signal.ITIMER_REAL, 1000.0)
        child = subprocess.Popen(
            ["sh", "-c", "sleep 0.2; kill -VTALRM $PPID; sleep 0.2; echo x"],
            stdout=subprocess.PIPE,
        )  # fmt: skip
        os.set_blocking(child.stdout.fileno(), True)
        read = ctypes.CDLL(None, use_errno=True).read
        answer = read(child.stdout.fileno(), ctypes.create_string_buffer(4), 2)
        error = ctypes.get_errno()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        child.wait()
        return answer, os.strerror(error) if answer < 0 else ""

    assert pysmpi.run(main, 1, compute="none").returns == [(2, "")]
