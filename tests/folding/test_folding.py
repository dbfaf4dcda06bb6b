"""Folding as a user sees it: `--fold`, `pysmpi.shared_empty`, `--data`."""

from __future__ import annotations

import gc
import json
import subprocess
import sys

import numpy as np
import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.folding import handler

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or handler.hooks is None, reason="folding needs Linux and C"
)

MIB = 1 << 20


def address(array):
    return array.__array_interface__["data"][0]


def run(main, nprocs=4, **options):
    options = {"compute": "none", "fold": ["1MiB"], **options}
    return pysmpi.run(main, nprocs, **options)


def new(value=0.0):
    return np.full(MIB // 4, value)


def test_ranks_share_what_they_allocate_at_one_line():
    def main():
        from mpi4py import MPI

        mine = new(MPI.COMM_WORLD.rank)
        small = np.full(10, MPI.COMM_WORLD.rank)
        MPI.COMM_WORLD.Barrier()
        return address(mine), mine[0], small[0]

    result = run(main)
    addresses, last, small = zip(*result.returns)
    assert len(set(addresses)) == 1
    assert len(set(last)) == 1
    assert small == (0, 1, 2, 3)
    assert result.folding["needed_bytes"] == 4 * 2 * MIB
    assert result.folding["taken_bytes"] == 2 * MIB
    [line] = result.folding["lines"]
    assert line["function"] == "new" and line["arrays"] == 4


def test_nothing_is_folded_unless_asked():
    def main():
        from mpi4py import MPI

        mine = new(MPI.COMM_WORLD.rank)
        MPI.COMM_WORLD.Barrier()
        return mine[0]

    result = run(main, fold=[])
    assert result.returns == [0, 1, 2, 3] and result.folding is None


def test_arrays_of_one_rank_are_different_memory():
    def main():
        held = [new(i) for i in range(5)]
        del held[1:3]
        held += [new(i) for i in range(5, 8)]
        return [array[0] for array in held], len({address(array) for array in held})

    # One rank only: folding changes nothing.
    [(values, different)] = run(main, 1).returns
    assert values == [0, 3, 4, 5, 6, 7] and different == 6
    for _, different in run(main, 3).returns:
        assert different == 6


def test_a_single_rank_computes_as_ever():
    def main():
        rng = np.random.default_rng(1)
        a = rng.random((400, 500))
        b = np.zeros((500, 400))
        b += a.T
        c = a @ b
        del a
        d = np.zeros((400, 500))
        e = c.copy()
        e.resize((500, 400), refcheck=False)
        return c.sum(), d.any(), e[-1].sum(), np.sort(c, axis=None)[::1000].sum()

    assert run(main, 1, fold=["64KiB"]).returns == run(main, 1, fold=[]).returns


def test_what_ranks_compute_alike_is_right():
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        table = np.arange(MIB / 4) ** 2
        comm.Barrier()
        zeros = np.zeros(MIB)
        comm.Barrier()
        return table.sum(), zeros.sum()

    assert set(run(main).returns) == set(run(main, fold=[]).returns)


def test_only_a_named_function():
    def main():
        from mpi4py import MPI

        folded, private = new(1.0), np.zeros(MIB)
        MPI.COMM_WORLD.Barrier()
        return address(folded), address(private)

    result = run(main, fold=[f"{__name__}:new"])
    folded, private = zip(*result.returns)
    assert len(set(folded)) == 1 and len(set(private)) == 4


def test_arrays_may_outlive_the_run():
    def main():
        from mpi4py import MPI

        return np.full(MIB, 3.0), np.full(3, MPI.COMM_WORLD.rank)

    returns = run(main, 2).returns
    gc.collect()
    large, small = returns[1]
    assert large[0] == 3.0 and small[0] == 1
    run(main, 2)  # another run leaves them alone
    large += 1
    assert large.sum() == 4.0 * MIB
    del returns, large, small
    gc.collect()
    assert np.zeros(MIB).sum() == 0


def test_garbage_freed_in_another_rank_is_not_its_own():
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 0:
            loop = [new(1)]
            loop.append(loop)
            del loop
        else:
            mine = new(2)
        comm.Barrier()
        if comm.rank == 1:
            gc.collect()  # frees the array of rank 0, at the same address as `mine`
            other = new(3)
            return address(mine) != address(other) and mine[0] == 2
        return True

    assert run(main, 2).returns == [True, True]


def test_arrays_that_an_exception_frees():
    """numpy frees them while the exception is on its way."""

    def fails(n):
        large, small = np.ones(n), np.ones(4)
        raise ValueError(float(large[0] + small[0]))

    def main():
        caught = []
        for _ in range(50):
            try:
                fails(MIB)
            except ValueError as error:
                caught.append(error.args[0])
        try:
            np.linalg.cholesky(-np.eye(400))
        except np.linalg.LinAlgError:
            caught.append(-1.0)
        return sum(caught)

    result = run(main, 2)
    assert result.returns == [99.0, 99.0]
    # Each was freed before the next: there was never more than one.
    assert result.folding["lines"][0]["taken_bytes"] == 8 * MIB


def test_arrays_are_used_again():
    def main():
        held = [np.full(8192, float(i)) for i in range(20)]
        del held
        return [np.full(8192, float(i))[0] for i in range(20)]

    assert run(main, 2, fold=["64KiB"]).returns[1] == [float(i) for i in range(20)]


def test_messages_between_folded_buffers_move_nothing():
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        out, into = new(5.0), new(7.0)
        private = np.zeros(4)
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        comm.Sendrecv(out, right, 0, into, left)
        comm.Alltoall(out, into)
        comm.Allreduce(out, into)
        comm.Bcast(into)
        column = MPI.DOUBLE.Create_vector(1000, 1, 50).Commit()
        comm.Sendrecv([out, 1, column], right, 0, [into, 1, column], left)
        untouched = into[0], into[50], into[-1]
        comm.Sendrecv(out[:4], right, 0, private, left)  # private memory receives the data
        comm.Allgather(out[:1], private)
        total = np.zeros(1)
        comm.Allreduce(np.ones(1), total)
        return untouched, private[0], total[0]

    folded, plain = run(main, 4), run(main, 4, fold=[])
    assert set(folded.returns) == {((7.0, 7.0, 7.0), 5.0, 4.0)}
    assert plain.returns[0][0] != folded.returns[0][0]
    assert folded.seconds == plain.seconds and folded.bytes == plain.bytes


def test_shared_empty_shares_all_but_what_is_private():
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        block = pysmpi.shared_empty((10, 1024), private=[0, -1])
        whole = pysmpi.shared_empty(2000, "i4")
        block[:] = comm.rank
        whole[:] = comm.rank
        comm.Barrier()
        seen = block[0, 0], block[5, 5], block[-1, -1], whole[3]
        comm.Barrier()
        # A private row is a message like any other.
        peer = (comm.rank + 1) % comm.size
        comm.Sendrecv(block[-1], peer, 0, block[0], (comm.rank - 1) % comm.size)
        return seen, block[0, 0]

    result = run(main, 3, fold=[])
    for rank, (seen, received) in enumerate(result.returns):
        assert seen == (rank, result.returns[0][0][1], rank, result.returns[0][0][3])
        assert received == (rank - 1) % 3
    row = 1024 * 8
    assert result.folding["needed_bytes"] == 3 * (10 * row + 8000)
    assert result.folding["taken_bytes"] == 10 * row + 8192 + 3 * 2 * row


def test_shared_empty_is_private_with_fold_none_and_outside():
    def main():
        from mpi4py import MPI

        array = pysmpi.shared_empty(100, private=[slice(0, 3)])
        array[:] = MPI.COMM_WORLD.rank
        MPI.COMM_WORLD.Barrier()
        return array[50]

    assert run(main, 3, fold=["none"]).returns == [0, 1, 2]
    assert pysmpi.shared_empty((2, 3), "i4").dtype == np.int32
    with pytest.raises(IndexError):
        pysmpi.shared_empty((2, 3), private=[5])


def test_without_data_time_is_the_same_and_buffers_stay():
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        peer = comm.size - 1 - comm.rank
        out, into = np.full(5000, 1.0), np.full(5000, 9.0)
        few = np.full(2, 9.0)
        comm.Sendrecv(out, peer, 0, into, peer)
        comm.Sendrecv_replace(into, peer, 0, peer)
        request = comm.Isend(out, peer)
        comm.Recv(into, peer)
        request.Wait()
        comm.Bcast(into)
        comm.Allreduce(out, into)
        comm.Scan(out, into)
        comm.Alltoall(out, into)
        comm.Alltoall(MPI.IN_PLACE, into)
        comm.Gather(out[: 5000 // comm.size], into if comm.rank == 0 else None)
        comm.Allgather(out[: 5000 // comm.size], into)
        comm.Scatter(out, into[: 5000 // comm.size])
        comm.Reduce_scatter(out, into[:1250])
        comm.Reduce_scatter_block(out, into[:1250])
        comm.Alltoallv([out, [1250] * 4], [into, [1250] * 4])
        comm.Allreduce(out[:2], few)
        named = comm.allgather(comm.rank)
        sent = comm.sendrecv("a" * 100, peer, source=peer)
        return into.min(), into.max(), few[0], named, len(sent)

    plain = run(main, 4, fold=[])
    none = run(main, 4, fold=[], data="none")
    large = run(main, 4, fold=[], data="1KiB")
    assert {values[:3] for values in none.returns} == {(9.0, 9.0, 9.0)}
    assert {values[:3] for values in large.returns} == {(9.0, 9.0, 4.0)}
    assert all(values[3:] == ([0, 1, 2, 3], 100) for values in none.returns)
    assert none.seconds == large.seconds == plain.seconds
    assert none.messages == plain.messages and none.bytes == plain.bytes


PROGRAM = """\
import numpy as np
from mpi4py import MPI

def field(n):
    return np.zeros(n)

fields = [field(1 << 18) for _ in range(3)]
MPI.COMM_WORLD.Barrier()
print(len({f.ctypes.data for f in fields}), np.zeros(3).sum())
"""


def command(tmp_path, *arguments):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-n", "8", *arguments, str(program)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize("fold", ["1MiB", "__main__:field"])
def test_the_command_line_folds_an_unchanged_program(tmp_path, fold):
    done = command(tmp_path, "--fold", fold, "--report", "report.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 0.0\n" * 8
    assert "folded 50.33 MB of arrays into 6.291 MB" in done.stderr
    assert "results are wrong unless they are the same on every rank" in done.stderr
    folding = json.loads((tmp_path / "report.json").read_text())["folding"]
    assert folding["needed_bytes"] == 8 * 3 * 2 * MIB
    assert folding["lines"][0]["place"].endswith("program.py:5")
    assert folding["job_bytes"] - folding["resident_bytes"] == 7 * 3 * 2 * MIB


@pytest.mark.parametrize(
    "fold, expected",
    [
        ("1 furlong", "expected"),
        ("100B", "expected a size from 4KiB on"),
        ("field", "expected a size such as 1MiB, MODULE:FUNCTION"),
        ("a:b:c", "expected a size such as 1MiB"),
    ],
)
def test_a_wrong_fold_is_refused(tmp_path, fold, expected):
    done = command(tmp_path, "--fold", fold)
    assert done.returncode == 2
    assert expected in done.stderr and f"--fold {fold}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_installation_without_a_compiler_is_named(monkeypatch):
    monkeypatch.setattr(handler, "hooks", None)
    with pytest.raises(UsageError, match="--fold: expected pysmpi installed with a C compiler"):
        handler.AllocationHandlers(0, 1)


def test_a_wrong_data_is_refused(tmp_path):
    done = command(tmp_path, "--data", "some")
    assert done.returncode == 2 and "or all, or none" in done.stderr
    done = command(tmp_path, "--fold", "none", "--fold", "1MiB")
    assert done.returncode == 2 and "expected no other --fold" in done.stderr
