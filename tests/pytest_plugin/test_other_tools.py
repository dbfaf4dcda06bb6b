"""Ranks work with Hypothesis, xdist, coverage, and the options of pytest."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pysmpi.pytest_plugin.runner  # noqa: F401 - pytester unloads what the inner sessions load

pytest_plugins = ["pytester"]


def test_one_draw_for_all_ranks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from hypothesis import assume, given, note, settings, strategies as st

        @pytest.mark.mpi(ranks=3)
        @settings(max_examples=20, database=None)
        @given(numbers=st.lists(st.integers(), max_size=5), data=st.data())
        def test_same_everywhere(comm, numbers, data):
            assume(len(numbers) != 1)
            assert all(other == numbers for other in comm.allgather(numbers))
            more = data.draw(st.floats(0, 1))
            assert len(set(comm.allgather(more))) == 1
            numbers.append(comm.rank)

        @pytest.mark.mpi(ranks=3)
        @settings(database=None, derandomize=True)
        @given(number=st.integers(0, 1000))
        def test_shrinks(comm, number):
            if comm.rank == 1:
                assert number < 17
            comm.Barrier()

        class TestMethods:
            @pytest.mark.mpi(ranks=2)
            @settings(max_examples=5, database=None)
            @given(st.booleans())
            def test_in_a_class(self, comm, flag):
                assert comm.bcast(flag) is flag
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- rank 1 -*",
            "E*assert 17 < 17",
            "rank 1 has failed; ranks 0,2 would hang under mpiexec:",
            "*Hypothesis*",
            "*test_shrinks(",
            "    number=17,",
        ]
    )


_SUITE = """
    import pytest
    from mpi4py import MPI

    def helper(comm):
        if comm.rank == 2:
            return 1
        return 0

    @pytest.mark.mpi(ranks=[2, 3])
    def test_sum(comm):
        assert comm.allreduce(helper(comm)) == comm.size - 2

    @pytest.mark.mpi(ranks=2)
    def test_fails(comm):
        assert comm.rank == 0

    def test_serial():
        assert True
"""


def test_several_processes_of_pytest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_SUITE)
    result = pytester.runpytest_subprocess("-n2")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*- rank 1 -*", "E       assert 1 == 0"])


def test_coverage_of_all_ranks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=_SUITE)
    result = pytester.runpytest_subprocess(
        "--cov=test_it", "--cov-report=term-missing", "-k", "sum and not 2"
    )
    result.assert_outcomes(passed=1, deselected=3)
    # Line 6 runs in rank 2 only; tests that are not selected do not count.
    result.stdout.fnmatch_lines(["test_it.py * 15, 18"])


def test_last_failed_and_first_failure(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=_SUITE)
    pytester.runpytest_inprocess().assert_outcomes(passed=3, failed=1)
    result = pytester.runpytest_inprocess("--lf")
    result.assert_outcomes(failed=1)
    result = pytester.runpytest_inprocess("-x", "--junitxml=out.xml")
    result.assert_outcomes(passed=2, failed=1)
    text = (pytester.path / "out.xml").read_text()
    assert 'tests="3"' in text and "rank 1" in text


def test_debugger_in_the_failing_rank(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.mpi(ranks=2)
        def test_fails(comm):
            assert comm.rank == 0
            comm.Barrier()
        """
    )
    commands = ["p comm.rank, comm.size", "ranks", "rank 0", "p comm.rank", "continue", ""]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--pdb", "-k", "fails"], cwd=pytester.path, text=True,
        capture_output=True, input="\n".join(commands), timeout=120,
    )  # fmt: skip
    assert "AssertionError: assert 1 == 0" in done.stdout
    assert "-> assert comm.rank == 0" in done.stdout
    assert "(pysmpi, rank 1) (1, 2)" in done.stdout
    assert "(pysmpi, rank 0) 0" in done.stdout
    assert "1 failed" in done.stdout


def test_suites_without_mpi_load_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_serial():
            loaded = {name for name in sys.modules if name.startswith("pysmpi")}
            assert loaded - {"pysmpi._interpreted"} == {
                "pysmpi", "pysmpi.text", "pysmpi.version", "pysmpi.pytest_plugin",
                "pysmpi.pytest_plugin.plugin",
                "pysmpi.pytest_plugin.plans", "pysmpi.pytest_plugin.outer_mpi",
                "pysmpi.own_process", "pysmpi.own_process.interruption",
            }
            assert not any(name.startswith(("mpi4py", "greenlet", "numpy")) for name in sys.modules)
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
