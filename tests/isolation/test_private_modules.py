"""Modules of the program, and of mpi4py: every rank has its own, and finds it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ranks_by_hand import HandRank, fake_mpi, run

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.isolation.kinds.environment import FIRST_PID
from pysmpi.isolation.loading.loader import CommandProgram, FunctionProgram, ScriptProgram
from pysmpi.job.interpreter import Interpreter
from pysmpi.mpi.base import constants as c

HELPER = """
from mpi4py import MPI
rank = MPI.rank()
class Thing: pass
MPI.give_way()
"""


def lines(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_modules_of_the_program_are_loaded_once_a_rank(write, capsys):
    write("helper.py", HELPER)
    path = write(
        "program.py",
        """
        import sys
        import helper
        from mpi4py import MPI
        MPI.give_way()
        import helper as again
        assert again is helper is sys.modules["helper"]
        print(helper.rank, MPI.rank())
        """,
    )
    run(ScriptProgram(path), 3)
    assert lines(capsys) == ["0 0", "1 1", "2 2"]
    assert "helper" not in sys.modules


def test_ranks_may_be_switched_in_the_middle_of_an_import(write, capsys):
    write("pack/__init__.py", "from . import inner\nfrom mpi4py import MPI\nMPI.give_way()")
    write(
        "pack/inner.py", "from mpi4py import MPI\nMPI.give_way()\nrank = MPI.rank()\nMPI.give_way()"
    )
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        if MPI.rank() == 1:
            MPI.give_way()
        import pack.inner
        from pack import inner
        print(pack.inner is inner, inner.rank == MPI.rank(), len(pack.__path__))
        """,
    )
    run(ScriptProgram(path), 3)
    assert lines(capsys) == ["True True 1"] * 3


def test_the_standard_library_and_numpy_are_shared(write, capsys):
    path = write(
        "program.py",
        """
        import csv, numpy
        print(id(csv), id(numpy))
        """,
    )
    run(ScriptProgram(path), 2)
    first, second = lines(capsys)
    assert first == second


def test_pickle_finds_the_classes_of_the_rank_that_loads(write):
    write("helper.py", HELPER)
    path = write(
        "program.py",
        """
        import pickle, dataclasses, importlib, sys, typing
        from mpi4py import MPI
        import helper

        @dataclasses.dataclass
        class Record:
            value: "int" = 1

        def turn():
            MPI.give_way()

        MPI.data = getattr(MPI, "data", []) + [pickle.dumps([Record(5), helper.Thing()])]
        turn()
        for data in MPI.data:
            record, thing = pickle.loads(data)
            assert type(record) is Record and type(thing) is helper.Thing
            turn()
            record, thing = pickle._loads(data)
            assert type(record) is Record and type(thing) is helper.Thing
        turn()
        assert typing.get_type_hints(Record) == {"value": int}
        assert importlib.import_module("helper") is helper
        turn()
        dataclasses.make_dataclass("Made", ["x"])(1)
        assert sys.modules[__name__].Record is Record
        turn()
        def late():
            import helper as found
            return found
        assert late() is helper
        """,
    )
    run(ScriptProgram(path), 3)


def test_what_a_rank_puts_into_the_table_of_modules_is_its_own(write, capsys):
    path = write(
        "program.py",
        """
        import sys, types
        from mpi4py import MPI
        if MPI.rank() == 0:
            sys.modules["blocked"] = None
            sys.modules["made"] = types.ModuleType("made")
        MPI.give_way()
        print("blocked" in sys.modules, "made" in sys.modules)
        MPI.give_way()
        sys.modules.pop("made", None)
        """,
    )
    run(ScriptProgram(path), 2)
    assert lines(capsys) == ["True True", "False False"]
    assert "blocked" not in sys.modules


def test_a_module_can_be_reloaded_and_replaced(write, capsys):
    write("helper.py", "import sys\nvalue = 1\n")
    write("other.py", "import sys\nclass Fake: value = 7\nsys.modules[__name__] = Fake\n")
    path = write(
        "program.py",
        """
        import importlib, sys
        from mpi4py import MPI
        import helper, other
        helper.value = 5 + MPI.rank()
        MPI.give_way()
        print(helper.value, other.value, sys.modules["other"] is other)
        importlib.reload(helper)
        MPI.give_way()
        print(helper.value)
        """,
    )
    run(ScriptProgram(path), 2)
    assert lines(capsys) == ["5 7 True", "6 7 True", "1", "1"]


def test_failed_imports_leave_nothing_behind(write, capsys):
    write("broken.py", "import sys\n1/0\n")
    path = write(
        "program.py",
        """
        import os, sys, traceback
        from mpi4py import MPI
        for attempt in range(2):
            try:
                import broken
            except ZeroDivisionError as error:
                files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
                print([os.path.basename(file) for file in files])
            MPI.give_way()
            print("broken" in sys.modules)
        try:
            import absent
        except ModuleNotFoundError as error:
            print(error)
        """,
    )
    run(ScriptProgram(path), 1)
    trace = "['program.py', 'broken.py']"
    assert lines(capsys) == [trace, "False", trace, "False", "No module named 'absent'"]


def test_a_rank_computes_to_its_end_with_all_that_it_owns(write, capsys):
    path = write(
        "program.py",
        """
        import sys, threading
        from mpi4py import MPI
        sys.argv = [str(MPI.COMM_WORLD.rank)]
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        print(sys.argv[0], sum(range(300000)))
        """,
    )
    pysmpi.run(path, nprocs=4)
    assert sorted(lines(capsys)) == [f"{rank} 44999850000" for rank in range(4)]


def test_importing_mpi_is_an_event_of_each_rank(write):
    before = "import mpi4py\nassert not hasattr(mpi4py, 'MPI')\n"
    path = write("program.py", before + "from mpi4py import MPI\nimport mpi4py.MPI")
    mpi = fake_mpi()
    run(ScriptProgram(path), 3, mpi)
    assert mpi.arrivals == [0, 1, 2]


def test_options_of_mpi4py_are_those_of_a_rank(write, capsys):
    path = write(
        "program.py",
        """
        import mpi4py
        from mpi4py import MPI
        mpi4py.rc.threads = False if MPI.rank() else True
        mpi4py.rc(recv_mprobe=False)
        MPI.give_way()
        print(mpi4py.rc.threads, mpi4py.rc.recv_mprobe, mpi4py.rc.finalize)
        try:
            mpi4py.rc.nonsense = 1
        except TypeError as error:
            print(error)
        """,
    )
    run(ScriptProgram(path), 2)
    assert lines(capsys) == [
        "True False None", "object has no attribute 'nonsense'",
        "False False None", "object has no attribute 'nonsense'",
    ]  # fmt: skip


def test_options_of_some_ranks_are_not_those_of_others(write, capsys):
    path = write(
        "program.py",
        f"""
        import os
        import mpi4py
        rank = os.getpid() - {FIRST_PID}
        if rank == 1:
            mpi4py.rc.thread_level = "single"
        if rank == 2:
            os.environ["MPI4PY_RC_THREAD_LEVEL"] = "funneled"
        if rank == 3:
            mpi4py.rc = mpi4py.Rc(thread_level="serialized")
        from mpi4py import MPI
        print(MPI.Query_thread(), mpi4py.rc.thread_level)
        """,
    )
    pysmpi.run(path, nprocs=5)
    usual, single, funneled, serialized = (
        f"{c.THREAD_MULTIPLE} multiple", f"{c.THREAD_SINGLE} single",
        f"{c.THREAD_FUNNELED} funneled", f"{c.THREAD_SERIALIZED} serialized",
    )  # fmt: skip
    assert lines(capsys) == [usual, single, funneled, serialized, usual]


def test_modules_of_mpi4py_that_hold_state_are_private(write, capsys):
    path = write(
        "program.py",
        """
        import mpi4py.util, mpi4py.run, mpi4py.typing
        from mpi4py import MPI
        MPI.give_way()
        print(id(mpi4py.run), id(mpi4py.util))
        """,
    )
    mpi = fake_mpi()
    mpi.BottomType = mpi.InPlaceType = mpi.Datatype = object
    run(ScriptProgram(path), 2, mpi)
    (run_a, util_a), (run_b, util_b) = (line.split() for line in lines(capsys))
    assert run_a != run_b
    assert util_a == util_b


def test_functions_keep_the_modules_of_their_caller():
    table = sys.modules

    def main():
        assert sys.modules is table
        assert sys.modules[__name__].HELPER is HELPER
        import ranks_by_hand

        assert ranks_by_hand.HandRank is HandRank

    run(FunctionProgram(main), 2)


def test_the_interpreter_is_as_before_after_a_run(write):
    path = write("program.py", "import sys, mpi4py.MPI, datetime, numpy.random\nsys.stdout = None")
    import builtins
    import random
    import time
    import warnings

    def state():
        return [
            type(sys), sys.modules is table, builtins.__import__, list(sys.meta_path), time.time,
            time.sleep, os.getpid, os._exit, type(os.environ), warnings.filters, random.random,
            sys.stdout, set(sys.modules) - loaded_later, type(warnings), builtins.input,
        ]  # fmt: skip

    table = sys.modules
    loaded_later: set[str] = set()
    names = set(sys.modules)
    before = state()
    run(ScriptProgram(path), 2, check=False)
    loaded_later = set(sys.modules) - names
    assert state() == before
    assert not any(name.startswith("mpi4py") for name in loaded_later)


def test_one_run_at_a_time():
    program = CommandProgram("pass")
    with Interpreter(program), pytest.raises(UsageError, match="one at a time"):
        Interpreter(program).__enter__()


def test_a_real_mpi4py_of_the_caller_comes_back():
    code = """
import sys, types
import mpi4py
mpi4py.MPI = sys.modules["mpi4py.MPI"] = real = types.ModuleType("mpi4py.MPI")
sys.path.insert(0, "tests")
from ranks_by_hand import fake_mpi, run
from pysmpi.isolation.loading.loader import CommandProgram
for attempt in range(2):
    run(CommandProgram("from mpi4py import MPI; MPI.give_way()"), 2)
    from mpi4py import MPI
    assert MPI is real is mpi4py.MPI is sys.modules["mpi4py.MPI"]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


def test_ranks_end_that_have_changed_a_registry_of_a_shared_package(write, capsys):
    path = write(
        "program.py",
        """
        import matplotlib as mpl
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
        mpl.colormaps.register(mpl.colors.ListedColormap(["red"] * (comm.rank + 1)), name="own")
        comm.barrier()
        print(mpl.colormaps["own"].N)
        """,
    )
    pysmpi.run(path, nprocs=2)
    assert sorted(lines(capsys)) == ["1", "2"]
