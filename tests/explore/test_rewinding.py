"""A process goes back to an earlier moment, with all of its memory, or says that it cannot."""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import random
import resource
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

rewinding = pytest.importorskip("pysmpi.explore.rewinding", reason="Linux, with a C compiler")

TIMES = 6
made: list[Any] = []  # before the moment


def private() -> mmap.mmap:
    return mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def in_a_copy(change: Callable[[int], object]) -> list[Any]:
    """A copy of this process goes back to a moment, `change` follows, and so on: its findings.

    The last entry says that it could not go back again, if so.
    """
    # Before the copy, whose pages are then shared until they change.
    made[:] = [list(range(1000)), {}, np.arange(50_000.0), bytearray(10), private()]
    made[4][:4] = b"kept"
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            times = rewinding.hold()
            sums = [len(made), len(made[0]), len(made[1]), float(made[2].sum()), made[3].hex()]
            sums.append(made[4][:4].decode())
            os.write(writer, json.dumps([times, sums, random.getstate()[1][-1]]).encode() + b"\n")
            change(times)
            if times is not None and times < TIMES:
                rewinding.rewind()
                os.write(writer, b'"stays"\n')
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as file:
        found = [json.loads(line) for line in file]
    os.waitpid(pid, 0)
    if found[0][0] is None:
        pytest.skip("this system does not show which pages have changed")
    return found


def objects(times: int) -> None:
    made[0].extend(range(10_000))
    made[1].update(enumerate(range(5000)))
    made[3][:] = b"x" * 10
    random.random()
    made.append([object() for _ in range(50_000)])


def arrays(times: int) -> None:
    made[2][:] = times
    made[2] = np.zeros(200_000 * (times + 1))


def freed(times: int) -> None:
    """Mappings that were there before go."""
    made[4].close()
    made[:] = [None]
    gc.collect()
    libc = ctypes.CDLL(None)
    libc.malloc_trim(0)


def mapped(times: int) -> None:
    """One mapping goes and another one of its size comes, perhaps to the same place."""
    made[4].close()
    made[4] = private()
    made[4][:4] = b"lost"


def handlers(times: int) -> None:
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    signal.signal(signal.SIGUSR1, lambda *args: made.append("signal"))
    os.kill(os.getpid(), signal.SIGUSR1)
    assert made[-1] == "signal"


def stack(times: int) -> None:
    def deep(level: int) -> int:
        return sorted([level], key=lambda x: deep(level - 1) if level else 0)[0]

    deep(150)


@pytest.mark.parametrize("change", [objects, arrays, freed, mapped, handlers, stack])
def test_all_memory_is_as_before(change: Callable[[int], object]) -> None:
    found = in_a_copy(change)
    assert [one[0] for one in found] == list(range(TIMES + 1))
    assert all(one[1:] == found[0][1:] for one in found)


def directory(times: int) -> None:
    os.chdir("/")


def descriptor(times: int) -> None:
    os.dup(0)


def mask(times: int) -> None:
    os.umask(0o123)


def timer(times: int) -> None:
    signal.setitimer(signal.ITIMER_REAL, 1000.0)


def limit(times: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (7 if soft != 7 else 8, hard))


def thread(times: int) -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def child(times: int) -> None:
    if not os.fork():
        os._exit(0)


@pytest.mark.parametrize("change", [directory, descriptor, mask, timer, limit, thread, child])
def test_what_the_kernel_holds_is_not_forgotten(
    change: Callable[[int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    if change is directory and os.getcwd() == "/":
        monkeypatch.chdir("/tmp")
    found = in_a_copy(change)
    assert len(found) == 2 and found[1] == "stays"
