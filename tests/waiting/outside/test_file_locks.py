"""Locks of files between ranks, and between a rank and another process."""

from __future__ import annotations

import pytest

import pysmpi


@pytest.mark.parametrize("name", ["flock", "lockf"])
def test_ranks_exclude_each_other(name, tmp_path):
    def main(name, path):
        import fcntl
        import time

        from mpi4py import MPI

        lock = getattr(fcntl, name)
        with open(path, "a+") as file:
            lock(file, fcntl.LOCK_EX)
            begin = time.monotonic()
            time.sleep(1.0)
            file.write(f"{MPI.COMM_WORLD.rank}\n")
            file.flush()
            lock(file, fcntl.LOCK_UN)
        return begin

    path = tmp_path / "locked"
    result = pysmpi.run(main, 3, args=(name, str(path)), compute="none")
    assert sorted(result.returns) == pytest.approx([0.0, 1.0, 2.0], abs=0.01)
    assert sorted(path.read_text().split()) == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["flock", "lockf"])
def test_a_lock_that_is_tried_until_it_is_free(name, tmp_path):
    def main(name, path):
        import fcntl
        import time

        tries = 0
        with open(path, "a+") as file:
            while True:
                try:
                    getattr(fcntl, name)(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    tries += 1
                    time.sleep(0.1)
            time.sleep(0.95)
        return tries

    result = pysmpi.run(main, 2, args=(name, str(tmp_path / "locked")), compute="none")
    assert result.returns == [0, 10]


@pytest.mark.parametrize("name", ["flock", "lockf"])
def test_another_process_holds_the_lock(name, tmp_path):
    def main(name, path):
        import fcntl
        import subprocess
        import sys
        import time

        code = (
            "import fcntl, sys, time; file = open(sys.argv[1], 'a'); "
            f"fcntl.{name}(file, fcntl.LOCK_EX); print('mine', flush=True); time.sleep(1)"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True
        )
        child.stdout.readline()
        begin = time.monotonic()
        with open(path, "a") as file:
            getattr(fcntl, name)(file, fcntl.LOCK_EX)
            waited = time.monotonic() - begin
        child.wait()
        return waited

    (waited,) = pysmpi.run(main, 1, args=(name, str(tmp_path / "locked")), compute="none").returns
    assert 0.2 < waited < 30
