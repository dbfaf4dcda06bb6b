"""Programs that measure on several cores at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from pysmpi.errors import PysmpiError
from pysmpi.own_process.descendants import end_with_parent


def together(source: str, arguments: Sequence[object], cpus: Sequence[int]) -> list[Any]:
    """Run a program on each of some cores; return the JSON that each has printed.

    Its words are `arguments` and the number of the core. It prints `ready`, begins when it reads a
    line, and prints its result. Raises PysmpiError if one does not begin.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", source, *map(str, arguments), str(cpu)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=partial(end_with_parent, os.getpid()),
        )
        for cpu in cpus
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise PysmpiError("calibrate: a process that measures has not begun")
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return [json.loads(process.communicate()[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
