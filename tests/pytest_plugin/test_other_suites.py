"""Suites written for mpi-pytest, pytest-mpi and pytest-isolate-mpi run unchanged."""

from __future__ import annotations

import pytest

import pysmpi.pytest_plugin.runner  # noqa: F401 - pytester unloads what the inner sessions load

pytest_plugins = ["pytester"]


def test_mpi_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile(
        """
        import pytest
        from mpi4py.MPI import COMM_WORLD
        from pytest_mpi import parallel_assert
        from pytest_mpi.parallel_assert import parallel_assert as same

        @pytest.mark.parallel
        def test_three():
            assert COMM_WORLD.size == 3 and same is parallel_assert

        @pytest.mark.parallel(nprocs=[1, 2])
        def test_list():
            parallel_assert(COMM_WORLD.rank < 2, participating=COMM_WORLD.rank == 0)

        @pytest.mark.parallel(2)
        def test_fails_on_all():
            parallel_assert(COMM_WORLD.rank == 0, "only the first")

        def test_serial():
            assert COMM_WORLD.size == 1
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        ["*- ranks 0-1 -*", "E*Parallel assertion failed on ranks: [[]1]", "E*only the first"]
    )
    pytester.runpytest_inprocess("-m", "parallel[2]").assert_outcomes(
        passed=1, failed=1, deselected=3
    )
    monkeypatch.setenv("PYTEST_MPI_MAX_NPROCS", "2")
    result = pytester.runpytest_inprocess()
    result.stdout.fnmatch_lines(["*expected at most 2 ranks (PYTEST_MPI_MAX_NPROCS), got 3"])


def test_pytest_mpi(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import unittest

        import pytest
        from mpi4py import MPI

        size = MPI.COMM_WORLD.size

        @pytest.mark.mpi
        def test_any(mpi_tmp_path, mpi_tmpdir, mpi_file_name):
            found = MPI.COMM_WORLD.allgather((mpi_tmp_path, str(mpi_tmpdir), mpi_file_name))
            assert len(set(found)) == 1

        @pytest.mark.mpi(min_size=3)
        def test_three():
            assert size >= 3

        @pytest.mark.mpi_skip
        def test_not_on_ranks():
            assert size == 1

        @pytest.mark.mpi_xfail
        def test_fails_on_ranks():
            assert size == 1

        class TestUnit(unittest.TestCase):
            def test_method(self):
                self.assertEqual(MPI.COMM_WORLD.allreduce(1), size)
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=5)
    pytester.runpytest_inprocess("--with-mpi").assert_outcomes(passed=3, skipped=1, xfailed=1)
    result = pytester.runpytest_inprocess("--with-mpi", "--mpi-ranks", "2,4", "-rs")
    # Methods of unittest have no parameters: they run on the first number of ranks.
    result.assert_outcomes(passed=4, skipped=3, xfailed=2)
    result.stdout.fnmatch_lines(["*Test requires 3 MPI processes, only 2 MPI processes*"])
    pytester.runpytest_inprocess("--only-mpi").assert_outcomes(passed=2, skipped=3)
    result = pytester.runpytest_inprocess("--mpi-ranks", "none")
    result.stdout.fnmatch_lines(["*--mpi-ranks none: expected numbers of at least 1*"])


def test_pytest_isolate_mpi(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import time
        import pytest

        @pytest.fixture(scope="session", params=["a", "b"])
        def letter(request, comm):
            return request.param, comm.rank

        @pytest.mark.mpi(ranks=[1, 2, 3])
        def test_sizes(mpi_ranks, comm, letter):
            assert comm.size == mpi_ranks and letter[1] == comm.rank

        @pytest.mark.mpi(ranks=2, timeout=10, unit="s")
        def test_deadlock(mpi_ranks, comm):
            if comm.rank == 0:
                comm.Barrier()

        @pytest.mark.mpi(ranks=2)
        @pytest.mark.skip(reason="not now")
        def test_skip(mpi_ranks):
            assert False
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=6, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["PSM101 deadlock*"])
