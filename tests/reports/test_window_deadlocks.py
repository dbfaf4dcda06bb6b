"""Reports of deadlocks of windows: the holder of the lock, the epochs of the ranks."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import pysmpi

HEAD = """\
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank = comm.rank
win = MPI.Win.Allocate(8, comm=comm)
"""


def report(folder: Path, program: str, map_by: str | None = None) -> str:
    path = folder / "prog.py"
    path.write_text(HEAD + textwrap.dedent(program))
    result = pysmpi.run(str(path), 3, check=False, compute="none", map_by=map_by)
    assert result.exit_status == 3, result.error
    return str(result.deadlock)


def test_locks_in_a_circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = report(
        tmp_path,
        """
        if rank < 2:
            win.Lock(rank)
            comm.Sendrecv(bytearray(1), 1 - rank, 0, bytearray(1), 1 - rank)
            win.Lock(1 - rank)
        """,
    )
    assert "ranks 0-1  wait in Lock(rank=" in text
    assert "rank 0 waits for the lock of rank 1 behind rank 1, which is in Lock at" in text
    assert "cycle: 0 -> 1 (Lock)   1 -> 0 (Lock)" in text


def test_a_lock_is_never_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = report(
        tmp_path,
        """
        if rank == 0:
            win.Lock(2)
        else:
            import time

            time.sleep(0.001)  # rank 0 is first
            win.Lock_all() if rank == 2 else win.Lock(2, MPI.LOCK_SHARED)
        """,
    )
    assert "rank 1  waits in Lock(rank=2)" in text
    assert "rank 2  waits in Lock_all()" in text
    assert "rank 0 has finished and still holds the lock of rank 2" in text


def test_a_fence_without_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = report(
        tmp_path,
        """
        if rank:
            win.Fence()
        else:
            win.Post(win.group.Incl([1]))
            win.Wait()
        """,
    )
    assert "ranks 1-2  wait in Fence()" in text
    assert "rank 0 has not entered Fence of window" in text


@pytest.mark.parametrize("call", ["Get([seen, MPI.BYTE], 2)", "Fetch_and_op(one, seen, 2)"])
@pytest.mark.parametrize("changed", [True, False])
def test_what_depends_on_when_a_read_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, changed: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    text = report(
        tmp_path,
        f"""
        one, seen = bytearray(8), bytearray(8)
        kind = (one, MPI.INT64_T), (seen, MPI.INT64_T)
        one, seen = kind if "Fetch" in {call!r} else (one, seen)
        if rank == 2 and {changed}:
            win.tomemory()[:] = bytes([7]) * 8
        comm.Barrier()
        if rank == 0:
            win.Lock(2)
            win.{call}
            data = bytes(kind[1][0])
            win.Unlock(2)
            if data[0] == 0:
                comm.recv(source=1)
        """,
        map_by="node",
    )
    if changed:
        assert "real MPI: hangs, unless it depends on what rank 0 read under a lock" in text
    else:
        assert "real MPI: hangs for ever." in text


def test_a_get_of_the_same_host_comes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "prog.py"
    path.write_text(
        HEAD
        + textwrap.dedent("""
        seen = bytearray(8)
        win.tomemory()[:] = bytes([7]) * 8
        comm.Barrier()
        win.Lock(1 - rank)
        win.Get([seen, MPI.BYTE], 1 - rank)
        assert seen[0] == 7
        win.Unlock(1 - rank)
        comm.recv()
    """)
    )
    result = pysmpi.run(str(path), 2, check=False, compute="none", platform="laptop")
    assert "real MPI: hangs for ever." in str(result.deadlock)
