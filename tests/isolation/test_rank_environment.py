"""The private state of a rank: random numbers, environment, directory, warnings, its end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ranks_by_hand import run

import pysmpi
from pysmpi.isolation.kinds.exits import HardExit
from pysmpi.isolation.kinds.rank_environment import Invocation, RankEnvironment
from pysmpi.isolation.loading.loader import CommandProgram, ScriptProgram


def lines(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def program(write):
    """A program whose text may use MPI and numpy."""

    def make(text: str) -> ScriptProgram:
        path = write("body.py", text)
        with open(path) as stream:
            body = stream.read()
        return ScriptProgram(write("program.py", "from mpi4py import MPI\n" + body))

    return make


def test_random_numbers_differ_between_ranks_and_not_between_runs(program, capsys):
    text = """
    import random, numpy
    from random import gauss
    first = random.random(), numpy.random.rand(), numpy.random.default_rng().random()
    MPI.give_way()
    print(first, random.random(), gauss(), random.Random().random(), numpy.random.normal())
    """
    run(program(text), 3)
    once = lines(capsys)
    assert len(set(once)) == 3
    run(program(text), 3)
    assert lines(capsys) == once


@pytest.mark.parametrize(
    "draw",
    [
        "RandomState().rand()",
        "Generator(PCG64()).random()",
        "MT19937().random_raw()",
        "SeedSequence().entropy",
        "seed() or rand()",
    ],
)
def test_unseeded_generators_of_numpy_repeat_and_differ_between_ranks(program, capsys, draw):
    text = f"""
    from numpy.random import *
    print({draw}, {draw})
    """
    run(program(text), 3)
    once = lines(capsys)
    assert len({number for line in once for number in line.split()}) == 6
    run(program(text), 3)
    assert lines(capsys) == once


def test_the_seed_of_the_run_changes_random_numbers():
    seeds = {
        RankEnvironment(rank, Invocation(seed=seed)).distinct_seed
        for rank in range(50)
        for seed in (0, 1)
    }
    assert len(seeds) == 100


def test_a_seeded_rank_draws_what_python_draws(program):
    run(
        program(
            """
            import random, numpy
            random.seed(MPI.rank())
            numpy.random.seed(MPI.rank())
            MPI.give_way()
            own, state = random.Random(MPI.rank()), numpy.random.RandomState(MPI.rank())
            for _ in range(3):
                assert random.random() == own.random()
                assert numpy.random.rand() == state.rand()
                MPI.give_way()
            saved = random.getstate(), numpy.random.get_state()
            expected = random.random(), numpy.random.mtrand._rand.rand()
            MPI.give_way()
            random.setstate(saved[0])
            numpy.random.set_state(saved[1])
            assert (random.random(), numpy.random.rand()) == expected
            """
        ),
        3,
    )


def test_random_numbers_of_the_caller_go_on(program):
    import random

    random.seed(3)
    expected = [random.random() for _ in range(2)]
    random.seed(3)
    first = random.random()
    run(program("import random; random.seed(5); random.random()"), 2)
    assert [first, random.random()] == expected


def test_environment_variables_are_those_of_a_launcher_and_of_the_rank(program, capsys):
    os.environ["PYSMPI_TEST_COMMON"] = "common"
    try:
        run(
            program(
                """
                import os
                from os import environ
                os.environ["OWN"] = str(MPI.rank())
                if MPI.rank() == 0:
                    del os.environ["PYSMPI_TEST_COMMON"]
                MPI.give_way()
                print(environ["OMPI_COMM_WORLD_RANK"], os.getenv("PMI_SIZE"), environ["OWN"],
                      os.environb[b"OWN"].decode(), os.environ.get("PYSMPI_TEST_COMMON"))
                MPI.give_way()
                """
            ),
            2,
        )
        assert lines(capsys) == ["0 2 0 0 None", "1 2 1 1 common"]
        assert os.environ["PYSMPI_TEST_COMMON"] == "common"
        assert "OWN" not in os.environ
        show = "import os; print(os.getenv('OWN'), os.getenv('PYSMPI_TEST_COMMON'))"
        done = subprocess.run(
            [sys.executable, "-c", show], capture_output=True, text=True, timeout=100
        )
        assert done.stdout == "None common\n"
    finally:
        del os.environ["PYSMPI_TEST_COMMON"]


def test_process_numbers_and_host_names(program, capsys):
    run(
        program(
            """
            import os, platform, socket
            print(os.getpid() - MPI.rank(), os.getppid(), {
                socket.gethostname(), platform.node(), os.uname().nodename, platform.uname().node,
            }, platform.uname().machine, socket.gethostbyname(socket.gethostname()))
            """
        ),
        2,
    )
    import platform

    first, second = (line.replace("node-1", "node-0") for line in lines(capsys))
    assert first == second
    assert first == f"5000000 {os.getpid()} {{'node-0'}} {platform.machine()} 127.0.0.1"


def test_the_environment_can_be_copied_and_pickled(program, capsys):
    run(
        program(
            """
            import copy, os, pickle
            os.environ["MINE"] = os.environ["OMPI_COMM_WORLD_RANK"]
            copies = [copy.deepcopy(os.environ), copy.copy(os.environ)]
            copies[1]._data = pickle.loads(pickle.dumps(os.environ._data))
            os.environ["MINE"] = "changed"
            print([(one["MINE"], one == os.environ, len(one) == len(os.environ),
                    type(one).__name__) for one in copies])
            """
        ),
        2,
    )
    assert sorted(lines(capsys)) == [
        str([(rank, False, True, "_Environ")] * 2) for rank in ("0", "1")
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_rank_finds_itself_in_proc(program, capsys):
    run(
        program(
            """
            import io, os, pathlib, shutil
            me = f"/proc/{os.getpid()}"
            with open(f"{me}/statm") as stream:
                pages = int(stream.read().split()[1])
            fd = os.open(me + "/comm", os.O_RDONLY)
            os.close(fd)
            with io.open(file=os.devnull) as nothing:
                pass
            try:
                open(f"/proc/{os.getpid() + 1}/statm")
            except FileNotFoundError as error:
                other = error.filename
            print(pages > 100, pathlib.Path(me, "status").read_text().count("VmRSS"),
                  os.readlink(me + "/exe") == os.readlink("/proc/self/exe"),
                  "0" in os.listdir(me + "/fd"), other == f"/proc/{os.getpid() + 1}/statm",
                  os.open in os.supports_dir_fd, len(os.listdir()) > 0)
            """
        ),
        2,
    )
    assert lines(capsys) == ["True 1 True True True True True"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_rank_asks_for_its_files_in_proc(program, capsys):
    run(
        program(
            """
            import os, pathlib, stat
            me = pathlib.Path("/proc", str(os.getpid()))
            next_one = pathlib.Path("/proc", str(os.getpid() + 1))
            print(me.exists(), os.path.isdir(me), stat.S_ISLNK(os.lstat(me / "exe").st_mode),
                  os.access(str(me / "stat"), os.R_OK), os.path.exists(me / "made-up"),
                  "comm" in [entry.name for entry in os.scandir(str(me))], next_one.exists(),
                  os.stat in os.supports_dir_fd, os.stat in os.supports_follow_symlinks,
                  os.stat.__name__, os.path.samefile(".", os.curdir))
            """
        ),
        2,
    )
    seen = "True True True True False True False True True stat True"
    assert lines(capsys) == [seen] * 2


def test_every_rank_has_its_own_directory(program, tmp_path, capsys):
    before = os.getcwd()
    for name in ("0", "1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "here").write_text(name)
    run(
        program(
            f"""
            import os
            before = os.getcwd()
            if MPI.rank() < 2:
                os.chdir(os.path.join({str(tmp_path)!r}, str(MPI.rank())))
                MPI.give_way()
                assert open("here").read() == str(MPI.rank())
            else:
                MPI.give_way()
                assert os.getcwd() == before
            MPI.give_way()
            print(os.path.basename(os.getcwd()) == str(MPI.rank()))
            """
        ),
        3,
    )
    assert lines(capsys) == ["True", "True", "False"]
    assert os.getcwd() == before


def test_warnings_are_caught_by_the_rank_that_asked(program):
    import warnings

    before = list(warnings.filters)
    run(
        program(
            """
            import warnings
            before = list(warnings.filters)
            if MPI.rank() == 0:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    MPI.give_way()
                    warnings.warn("mine")
                    MPI.give_way()
                assert [str(warning.message) for warning in caught] == ["mine"]
            else:
                MPI.give_way()
                warnings.simplefilter("error")
                MPI.give_way()
                try:
                    warnings.warn("other")
                except UserWarning as error:
                    assert str(error) == "other"
                else:
                    raise AssertionError
                warnings.resetwarnings()
                MPI.give_way()
                assert warnings.filters == []
                warnings.filters = list(before)
            MPI.give_way()
            assert warnings.filters == before
            """
        ),
        2,
    )
    assert warnings.filters == before


def test_warnings_name_the_line_of_the_program(program, write, capsys):
    write("old.py", "import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\n")
    run(
        program(
            """
            import os, warnings
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                import old
            print(os.path.basename(caught[0].filename), caught[0].lineno)
            """
        ),
        1,
    )
    assert lines(capsys) == ["program.py 6"]


def test_streams_are_redirected_for_one_rank(program, capsys):
    before = sys.stdout, sys.stderr
    run(
        program(
            """
            import contextlib, io, sys
            if MPI.rank() == 0:
                with contextlib.redirect_stdout(io.StringIO()) as text:
                    print("caught")
                    MPI.give_way()
                    print("caught", file=sys.stdout)
                    MPI.give_way()
                assert text.getvalue() == "caught\\ncaught\\n"
            else:
                MPI.give_way()
                print("shown", flush=True)
                MPI.give_way()
            sys.stderr.write("end\\n")
            """
        ),
        2,
    )
    out, err = capsys.readouterr()
    assert (out, err) == ("shown\n", "end\nend\n")
    assert (sys.stdout, sys.stderr) == before


def test_rank_0_reads_standard_input(program, monkeypatch, capsys):
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO("first\nsecond\n"))
    run(
        program(
            """
            import sys
            try:
                print(input("? "), sys.stdin.read().strip())
            except EOFError as error:
                print(error)
            """
        ),
        2,
    )
    assert lines(capsys) == ["? first second", "? EOF when reading a line"]


def test_exit_functions_run_at_the_end_of_their_rank(program, capsys):
    run(
        program(
            """
            import atexit
            atexit.register(print, "first", MPI.rank())
            @atexit.register
            def second():
                print("second", MPI.rank())
            @atexit.register
            def never():
                print("never")
            @atexit.register
            def wrong():
                raise ValueError("shown")
            atexit.unregister(never)
            MPI.give_way()
            print("end", MPI.rank())
            """
        ),
        2,
    )
    out, err = capsys.readouterr()
    assert out.splitlines() == ["end 0", "second 0", "first 0", "end 1", "second 1", "first 1"]
    assert err.count("ValueError: shown") == 2


def test_a_rank_may_exit_hard_without_ending_the_others(program, capsys):
    members = run(
        program("import os\nif MPI.rank() == 0: os._exit(4)\nprint('goes on')"), 2, check=False
    )
    assert isinstance(members[0].error, HardExit)
    assert members[0].error.code == 4
    assert lines(capsys) == ["goes on"]


def test_every_rank_has_its_own_excepthook(program):
    members = run(
        program(
            """
            import sys
            if MPI.rank() == 0:
                sys.excepthook = lambda *args: None
            MPI.give_way()
            sys.exit(sys.excepthook is sys.__excepthook__)
            """
        ),
        2,
        check=False,
    )
    assert [member.error.code for member in members] == [False, True]


def test_logging_is_configured_by_each_rank_for_itself(program, capsys):
    import logging

    def state():
        root = logging.getLogger()
        return root.handlers, root.level, logging.getLogger("pysmpi.test").level

    before = state()
    run(
        program(
            """
            import logging, sys
            logging.getLogger().handlers.clear()
            logging.basicConfig(
                format=f"[{MPI.rank()}] %(name)s %(message)s", stream=sys.stdout,
                level=logging.DEBUG if MPI.rank() == 0 else logging.WARNING,
            )
            log = logging.getLogger("pysmpi.test")
            new = logging.getLogger("pysmpi.test.new")
            log.setLevel(logging.INFO)
            if MPI.rank() == 1:
                new.propagate = False
            MPI.give_way()
            log.info("one")
            new.error("two")
            logging.debug("three")
            assert log.isEnabledFor(logging.INFO) and not log.isEnabledFor(logging.DEBUG)
            MPI.give_way()
            assert len(logging.getLogger().handlers) == 1
            """
        ),
        2,
    )
    assert lines(capsys) == [
        "[0] pysmpi.test one", "[0] pysmpi.test.new two", "[0] root three", "[1] pysmpi.test one",
    ]  # fmt: skip
    assert state() == before
    assert logging.getLogger("pysmpi.test.new").propagate


def test_what_a_program_does_not_touch_is_not_made():
    (member,) = run(CommandProgram("x = 1"), 1)
    own = member.program
    for name in ("environ", "random", "numpy_random", "at_exit", "logging"):
        assert getattr(own, name) is None


def test_children_have_the_variables_of_their_rank_however_they_are_started(capfd):
    def main():
        import os
        import subprocess
        import sys

        from mpi4py import MPI

        show = "import os; print(os.environ['PMI_RANK'], os.environ['OWN'])"
        command = [sys.executable, "-S", "-c", show]
        os.environ["OWN"] = f"own {MPI.COMM_WORLD.rank}"
        ways = [
            lambda: subprocess.check_output(command, text=True),
            lambda: subprocess.check_output(command, text=True, close_fds=False),
            lambda: subprocess.check_output(command, text=True, env=os.environ),
            lambda: subprocess.check_output(command, text=True, preexec_fn=int),
            lambda: os.popen("echo $PMI_RANK $OWN").read(),
        ]

        def spawned(spawn, environ):
            reader, writer = os.pipe()
            actions = [(os.POSIX_SPAWN_DUP2, writer, 1)]
            child = spawn(sys.executable, command, environ, file_actions=actions)
            os.close(writer)
            os.waitpid(child, 0)
            with open(reader) as file:
                return file.read()

        for spawn in (os.posix_spawn, os.posix_spawnp):
            ways.append(lambda spawn=spawn: spawned(spawn, os.environ))
            if sys.version_info >= (3, 13):  # before, None is an error
                ways.append(lambda spawn=spawn: spawned(spawn, None))
        return {way() for way in ways}

    result = pysmpi.run(main, 2, compute="none")
    assert result.returns == [{"0 own 0\n"}, {"1 own 1\n"}]
    assert capfd.readouterr() == ("", "")


def test_flags_and_the_longest_number_are_of_a_rank(write):
    """From Python 3.14 on, CPython copies `sys.flags` when the number changes."""
    text = """
    import sys
    from mpi4py import MPI
    rank = MPI.COMM_WORLD.rank
    before = sys.flags
    sys.set_int_max_str_digits(5000 + rank)
    MPI.COMM_WORLD.Barrier()
    digits = sys.flags.int_max_str_digits
    expected = 5000 + rank if sys.version_info >= (3, 14) else before.int_max_str_digits
    if (sys.flags.optimize, digits, sys.get_int_max_str_digits()) != (1, expected, 5000 + rank):
        sys.exit(f"{sys.flags} {expected}")
    if [*sys.flags] != [getattr(sys.flags, name) for name in sys.flags.__match_args__]:
        sys.exit(f"{[*sys.flags]} {sys.flags}")
    """
    program = ["python", "-O", write("program.py", text)]
    flags = sys.flags
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", *program],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert pysmpi.run(lambda: sys.set_int_max_str_digits(5000), 2).exit_status == 0
    assert sys.flags is flags
