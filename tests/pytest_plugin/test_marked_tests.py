"""Tests with marks run on ranks, each with its own modules; failures are shown by rank."""

from __future__ import annotations

import pytest

import pysmpi.pytest_plugin.runner  # noqa: F401 - pytester unloads what the inner sessions load

pytest_plugins = ["pytester"]


def outcomes(pytester: pytest.Pytester, source: str, *args: str) -> pytest.RunResult:
    """Run a test file in this process."""
    pytester.makepyfile(source)
    return pytester.runpytest_inprocess(*args)


def test_numbers_of_ranks_and_modules_of_their_own(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
        import sys

        import pytest
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        rank = world.rank
        seen = []

        @pytest.mark.mpi(ranks=[1, 2, 5])
        def test_sizes(comm, mpi_ranks):
            assert comm.size == mpi_ranks == world.size
            assert comm.allgather(rank) == list(range(mpi_ranks))
            seen.append(rank)

        @pytest.mark.mpi(ranks=3)
        def test_state_is_private():
            global rank
            rank += 10
            world.Barrier()
            assert rank == world.rank + 10
            assert seen == []

        @pytest.mark.mpi(ranks=2)
        def test_main_module(comm):
            import __main__  # as dill does
            assert __main__.__name__ == "__main__"
            __main__.mine = comm.rank
            comm.Barrier()
            assert sys.modules["__main__"].mine == comm.rank

        def test_without_ranks():
            assert world.size == 1 and rank == 0 and seen == []
        """,
        "-v",
    )
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["*::test_sizes?ranks=5? PASSED*"])


def test_failures_by_rank(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
        import pytest

        @pytest.mark.mpi(ranks=4)
        def test_one_rank(comm):
            print("printed by", comm.rank)
            if comm.rank == 2:
                values = [1, 2, comm.rank]
                assert values == [1, 2, 3]
            comm.Barrier()

        @pytest.mark.mpi(ranks=3)
        def test_all_ranks(comm):
            assert comm.rank == 7

        @pytest.mark.mpi(ranks=3)
        def test_deadlock(comm):
            comm.recv(source=(comm.rank + 1) % comm.size)

        @pytest.mark.mpi(ranks=2, cfg={"smpi/most-polls": "5000"})
        def test_polls_for_ever(comm):
            while not comm.Iprobe(source=1 - comm.rank):
                pass

        @pytest.mark.mpi(ranks=2)
        def test_after_all_of_them(comm):
            assert comm.allreduce(1) == 2
        """,
    )
    result.assert_outcomes(failed=4, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*- rank 2 -*",
            ">           assert values == [[]1, 2, 3]",
            "E             At index 2 diff: 2 != 3",
            "rank 2 has failed; ranks 0-1,3 would hang under mpiexec:",
            "  ranks 0-1,3  wait in Barrier()  *.py:9 in test_one_rank",
            "*Captured stdout call (rank 2)*",
            "printed by 2",
            "*- ranks 0-2 -*",
            "E       assert 0 == 7",
            "rank 1: assert 1 == 7",
            "PSM101 deadlock at *: 3 ranks wait, none can go on",
            "  ranks 0-2  wait in recv(source=rank+1, tag=ANY_TAG)  *.py:17 in test_deadlock",
            "  again: pytest *.py::test_deadlock",
            "PSM106 livelock at *",
            "FAILED *::test_one_rank - rank 2: assert *",
            "FAILED *::test_deadlock - PSM101 deadlock*",
        ]
    )
    result.stdout.no_fnmatch_line("*pysmpi/*.py:*")


def test_outcomes_inside_ranks(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
        import os
        import pytest
        from mpi4py import MPI

        @pytest.mark.mpi(ranks=3)
        def test_skips_everywhere(comm):
            pytest.skip("not today")

        @pytest.mark.mpi(ranks=3)
        def test_skips_on_one(comm):
            if comm.rank == 1:
                pytest.skip("only here")
            comm.send(1, dest=2 - comm.rank)
            assert comm.recv() == 1

        @pytest.mark.mpi(ranks=2)
        @pytest.mark.skipif(MPI.COMM_WORLD.size != 2, reason="for two")
        def test_condition_of_ranks(comm):
            assert comm.size == 2

        @pytest.mark.mpi(ranks=2)
        @pytest.mark.xfail
        def test_expected(comm):
            assert comm.rank == 0

        @pytest.mark.mpi(ranks=2)
        @pytest.mark.xfail(strict=True)
        def test_hang_is_expected(comm):
            comm.recv()

        @pytest.mark.mpi(ranks=2)
        @pytest.mark.xfail
        def test_unexpected(comm):
            pass

        @pytest.mark.mpi(ranks=2)
        def test_raises(comm):
            with pytest.raises(MPI.Exception):
                comm.send(1, dest=7)

        @pytest.mark.mpi(ranks=2)
        def test_aborts(comm):
            if comm.rank == 1:
                comm.Abort(5)
            comm.Barrier()

        @pytest.mark.mpi(ranks=2)
        def test_exits(comm):
            if comm.rank == 1:
                os._exit(3)
            comm.Barrier()

        @pytest.mark.mpi(ranks=2)
        def test_fine(comm, capsys, capfd):
            print("text", comm.rank)
            assert capsys.readouterr().out == f"text {comm.rank}\\n" or True

        @pytest.mark.mpi(ranks=2)
        def test_streams(comm, capfd):
            comm.Barrier()
            os.write(1, b"bytes of %d" % comm.rank)
            comm.Barrier()
            assert capfd.readouterr().out == f"bytes of {comm.rank}"
        """.replace("comm, capsys, capfd", "comm, capsys").replace(" or True", ""),
    )
    result.assert_outcomes(passed=5, skipped=1, xfailed=2, xpassed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "PSM103 * rank 1 called MPI_Abort with error code 5 at *",
            "PSM103 * rank 1 called os._exit(3) *",
        ]
    )


def test_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.rank
        made = []

        @pytest.fixture(scope="session")
        def everybody():
            made.append(rank)
            yield MPI.COMM_WORLD.allgather(rank)
            assert MPI.COMM_WORLD.allreduce(1) == MPI.COMM_WORLD.size

        @pytest.fixture(params=["a", "b"])
        def letter(request):
            return request.param

        @pytest.fixture
        def broken_on_one():
            assert rank != 1, "not here"
        """
    )
    result = outcomes(
        pytester,
        """
        import pytest
        import conftest

        @pytest.mark.mpi(ranks=3)
        @pytest.mark.parametrize("number", [1, 2])
        def test_of_users(comm, everybody, letter, number):
            assert everybody == [0, 1, 2] and letter in "ab" and number in (1, 2)
            assert conftest.made == [comm.rank]

        @pytest.mark.mpi(ranks=3)
        def test_directory(comm, tmp_path, mpi_tmp_path, tmp_path_factory):
            (tmp_path / f"{comm.rank}").write_text("x")
            comm.Barrier()
            assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]
            assert len(set(comm.allgather(tmp_path_factory.mktemp("more")))) == 1
            assert mpi_tmp_path == tmp_path

        @pytest.mark.mpi(ranks=3)
        def test_setup_fails(comm, broken_on_one):
            comm.Barrier()

        def test_serial(letter, tmp_path):
            assert conftest.made == []
        """,
    )
    result.assert_outcomes(passed=7, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at setup of test_setup_fails*", "E*not here"])


def test_time_is_limited(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
        import time
        import pytest

        @pytest.mark.mpi(ranks=2, timeout=5, unit="s")
        def test_sleeps(comm):
            for _ in range(10):
                time.sleep(1)

        @pytest.mark.mpi(ranks=2, timeout=3)
        def test_never_ends(comm):
            while comm.rank == 1:
                pass
            comm.Barrier()

        @pytest.mark.mpi(ranks=2, timeout=1, unit="h")
        def test_in_time(comm):
            time.sleep(3000)
        """,
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "Timeout: the test took 10 s of simulated time, expected at most 5 s",
            "E  *TimedOut: the test runs for more than 3 s",
        ]
    )


def test_wrong_marks(pytester: pytest.Pytester) -> None:
    for mark, message in (
        ("mpi(ranks=0)", "*mark.mpi: expected a number of ranks of at least 1, or a list, got 0*"),
        ("mpi(schedules=0)", "*schedules: expected a number of at least 1, got 0"),
        ("mpi(timeout=3, unit='d')", "*unit: expected s, m or h, got 'd'"),
        ("parallel(2, 3)", "*mark.parallel: expected one argument, nprocs"),
    ):
        result = outcomes(pytester, f"import pytest\n@pytest.mark.{mark}\ndef test_one(): pass\n")
        result.stdout.fnmatch_lines([message])
        result.stdout.no_fnmatch_line("*plans.py*")
        assert result.ret != 0
    for given, meant in (
        ("ranks=2, plaform='graphene'", "unknown argument 'plaform'; did you mean platform?"),
        ("rank=2", "unknown argument 'rank'; did you mean ranks?"),
        ("nprocs=2", "unknown argument 'nprocs'; did you mean ranks?"),
        ("minsize=2", "unknown argument 'minsize'; did you mean min_size?"),
        ("scedules=2", "unknown argument 'scedules'; did you mean schedules?"),
        ("time_out=2", "unknown argument 'time_out'; did you mean timeout?"),
    ):
        result = outcomes(
            pytester, f"import pytest\n@pytest.mark.mpi({given})\ndef test_one(): pass\n"
        )
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines([f"*mark.mpi: {meant}*"])


def test_a_file_that_some_rank_cannot_import(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
        import pytest
        from mpi4py import MPI

        assert MPI.COMM_WORLD.rank != 1, "rank 1 is not welcome"

        @pytest.mark.mpi(ranks=2)
        def test_one(comm):
            comm.Barrier()

        @pytest.mark.mpi(ranks=1)
        def test_alone(comm):
            assert comm.size == 1
        """,
    )
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*rank 1: not collected*", "E*rank 1 is not welcome"])


def test_checked(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
        import pytest
        import numpy

        @pytest.mark.mpi(ranks=2, check="all")
        def test_leaks(comm):
            comm.Dup()

        @pytest.mark.mpi(ranks=2, check="all")
        def test_clean(comm):
            comm.Dup().Free()

        @pytest.mark.mpi(ranks=2)
        def test_unchecked(comm):
            comm.Dup()
        """,
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["PSM*", "*Dup*test_checked.py:6 in test_leaks*"])


def test_orders_of_events(pytester: pytest.Pytester) -> None:
    source = """
        import pytest

        @pytest.mark.mpi(ranks=3, schedules=20)
        def test_first_come(comm):
            if comm.rank:
                comm.send(comm.rank, dest=0)
            else:
                assert [comm.recv(), comm.recv()] == [1, 2]

        @pytest.mark.mpi(ranks=3, schedules=5)
        def test_any_order(comm):
            if comm.rank:
                comm.send(comm.rank, dest=0)
            else:
                assert {comm.recv(), comm.recv()} == {1, 2}
        """
    result = outcomes(pytester, source)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines([r".*- rank 0 -.*", r"E +assert \[2, 1\] == \[1, 2\]"])
    (again,) = [line for line in result.outlines if "again: pytest" in line]
    number = again.split()[-1]
    again_result = pytester.runpytest_inprocess("--mpi-seed", number)
    again_result.assert_outcomes(passed=1, failed=1)
