"""Which modules every rank has for itself, and that it finds them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import types
from importlib.machinery import EXTENSION_SUFFIXES

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks_by_hand import HandRank, fake_mpi, run

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.runtime import rules
from pysmpi.runtime.interpreter import Interpreter
from pysmpi.runtime.loader import CommandProgram, FunctionProgram, ScriptProgram
from pysmpi.runtime.process.exchange import Exchange, State
from pysmpi.runtime.process.versions import version_of

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


@pytest.mark.parametrize(
    "importing, counts",
    [
        ("import plain.part", ["1", "1"]),  # pure Python: what it keeps is a process's
        ("import compiled, plain.part", ["1", "2"]),  # a shared package has it already
        ("import dateutil; plain = dateutil", ["1", "2"]),  # known
        ("import pymc; plain = pymc", ["1", "2"]),  # it registers its functions in a shared one
    ],
)
def test_installed_packages_are_shared_if_they_must(site, write, capsys, importing, counts):
    for name in ("plain", "dateutil", "pymc"):
        site(f"{name}/__init__.py", "from . import part")
        site(f"{name}/part.py", "state = []")
    site("compiled/__init__.py", "import plain")
    site(f"compiled/fast{EXTENSION_SUFFIXES[0]}", "")
    path = write(
        "program.py",
        f"{importing}\nplain.part.state.append(1)\nprint(len(plain.part.state))\n",
    )
    code = f"""
import sys
sys.path[:0] = [{os.path.dirname(__file__)!r}, {os.path.dirname(path) + "/site"!r}]
from pysmpi.runtime.rules import Rules
original = Rules.__init__
def init(self, *args):
    original(self, *args)
    self.site = (*self.site, {os.path.dirname(path) + "/site/"!r})
Rules.__init__ = init
from ranks_by_hand import run
from pysmpi.runtime.loader import ScriptProgram
run(ScriptProgram({path!r}), 2)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == counts


@pytest.mark.parametrize(
    "statement",
    ["from mpi4py import MPI", "import mpi4py.MPI as MPI", "import mpi4py; from mpi4py import MPI"],
)
def test_installed_packages_that_import_mpi4py_are_private(site, write, capsys, statement):
    site("parallel/__init__.py", "from . import before, inner, after\nrank = inner.rank")
    site("parallel/before.py", "state = []")
    site("parallel/inner.py", f"{statement}\nrank = MPI.rank()")
    site("parallel/after.py", "from .before import state")
    site("above.py", "import parallel\nrank = parallel.rank")
    site("aside.py", "state = []")
    path = write(
        "program.py",
        """
        import aside, above, parallel.inner, parallel.before
        from mpi4py import MPI
        MPI.give_way()
        parallel.before.state.append(1)
        aside.state.append(1)
        print(above.rank, parallel.rank, len(parallel.after.state), len(aside.state))
        """,
    )
    run(ScriptProgram(path), 3)
    assert lines(capsys) == ["0 0 1 1", "1 1 1 1", "2 2 1 1"]


def test_a_package_is_private_as_a_whole(site, write, capsys):
    site("mixed/__init__.py", "state = []")
    site("mixed/parallel.py", "from mpi4py import MPI\nrank = MPI.rank()")
    path = write(
        "program.py",
        """
        import mixed
        from mpi4py import MPI
        MPI.give_way()
        mixed.state.append(1)
        assert not hasattr(mixed, "parallel")
        import mixed.parallel
        MPI.give_way()
        from mixed import parallel
        print(len(mixed.state), mixed.parallel.rank, parallel.rank)
        """,
    )
    run(ScriptProgram(path), 3)
    assert lines(capsys) == ["1 0 0", "1 1 1", "1 2 2"]


def test_the_user_overrules(site, write, capsys):
    site("plain.py", "state = []")
    write("mine.py", "state = []")
    path = write(
        "program.py",
        """
        import plain, mine
        plain.state.append(1)
        mine.state.append(1)
        print(len(plain.state), len(mine.state))
        """,
    )
    run(ScriptProgram(path), 2, private=["plain"], shared=["mine"])
    assert lines(capsys) == ["1 1", "1 2"]


def test_an_extension_module_of_a_private_package_is_there_in_every_rank(site, write, capsys):
    import _json

    target = site("compiled/__init__.py", "from mpi4py import MPI\nfrom . import _json")
    shutil.copy(_json.__file__, target.replace("__init__.py", "_json.so"))
    path = write(
        "program.py",
        """
        import compiled._json
        print(id(compiled), id(compiled._json), compiled._json.make_scanner.__name__)
        """,
    )
    run(ScriptProgram(path), 2)
    (package, module, name), (package2, module2, name2) = (line.split() for line in lines(capsys))
    assert package != package2
    assert (module, name) == (module2, name2)


def test_what_an_extension_module_puts_into_the_table_is_there_in_every_rank(site, write, capsys):
    # hypothesis is private, and its extension module makes modules that are no files.
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        from hypothesis import strategies
        from hypothesis.internal.floats import float_to_int
        MPI.give_way()
        print(MPI.rank(), float_to_int(1.0))
        """,
    )
    run(ScriptProgram(path), 2)
    assert lines(capsys) == ["0 4607182418800017408", "1 4607182418800017408"]


FAST = """
#include <Python.h>
static PyObject *call(PyObject *self, PyObject *none) {
    PyObject *kind = PyObject_GetAttrString(self, "Thing");
    PyObject *made = kind ? PyObject_CallNoArgs(kind) : NULL;
    Py_XDECREF(kind);
    return made;
}
static PyMethodDef methods[] = {{"make", call, METH_NOARGS, ""}, {NULL}};
static int fill(PyObject *module) {
    PyObject *things = PyImport_ImportModule("compiled.things");
    if (!things) return -1;
    PyObject_SetAttrString(module, "things", things);
    PyObject_SetAttrString(module, "Thing", PyObject_GetAttrString(things, "Thing"));
    PyObject_SetAttrString(module, "find", PyObject_GetAttrString(things, "find"));
    return 0;
}
static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "fast", "", 0, methods, slots};
PyMODINIT_FUNC PyInit_fast(void) { return PyModuleDef_Init(&definition); }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to make an extension module")
def test_an_extension_module_has_what_the_modules_of_the_rank_hold(site, write, capsys):
    target = site("compiled/__init__.py", "from mpi4py import MPI")
    site("compiled/things.py", "class Thing: pass\ndef find(): return Thing")
    source = write("fast.c", FAST)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}", source,
         "-o", target.replace("__init__.py", f"fast{EXTENSION_SUFFIXES[0]}")],
        check=True,
    )  # fmt: skip
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        from compiled import fast
        MPI.give_way()
        from compiled import things
        MPI.give_way()
        assert type(fast.make()) is things.Thing and fast.find is things.find
        assert fast.find() is things.Thing and fast.things is things
        fast.extra = MPI.rank()
        MPI.give_way()
        print(id(fast) == id(things), id(things), type(fast.make()) is things.Thing)
        """,
    )
    run(ScriptProgram(path), 3)
    found = [line.split() for line in lines(capsys)]
    assert len({number for _, number, _ in found}) == 3
    assert [same for *_, same in found] == ["True"] * 3


def test_names_to_which_functions_of_a_shared_package_assign_are_of_the_rank(site, write, capsys):
    import _json

    target = site(
        "seeded/__init__.py",
        """
        import random
        from . import later
        from . import _json
        generator = random.Random(1)
        common = []
        count = 0

        def seed(number):
            global generator
            generator = random.Random(number)

        class Counter:
            @staticmethod
            def add():
                def inner():
                    global count
                    count += 1
                inner()

        later.begin()
        """,
    )
    site("seeded/later.py", "state = None\ndef begin():\n    global state\n    state = 'begun'")
    site("seeded/more.py", "from . import later\nlater.state = 'more'")
    shutil.copy(_json.__file__, target.replace("__init__.py", "_json.so"))
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        import random
        import seeded
        MPI.give_way()
        seeded.common.append(1)
        seeded.seed(MPI.rank())
        for _ in range(MPI.rank()):
            seeded.Counter.add()
        MPI.give_way()
        mine = seeded.generator.random() == random.Random(MPI.rank()).random()
        import seeded.more
        MPI.give_way()
        print(mine, seeded.count, len(seeded.common), seeded.later.state)
        """,
    )
    run(ScriptProgram(path), 3)
    assert lines(capsys) == ["True 0 3 more", "True 1 3 more", "True 2 3 more"]


@pytest.mark.filterwarnings("ignore:Unknown pytest.mark")
def test_tests_of_a_shared_package_hold_the_tools_of_their_rank(site, write, capsys, monkeypatch):
    monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"numbers_"})
    site("numbers_/__init__.py", "value = object()")
    site("numbers_/core.py", "state = object()")
    site("numbers_/tests/__init__.py", "")
    site("numbers_/tests/test_core.py", "state = object()")
    site("numbers_/marks.py", "import pytest\nslow = pytest.mark.slow")
    site("numbers_/lazy.py", "def mark():\n    import pytest\n    return pytest.mark")
    path = write(
        "program.py",
        """
        import sys
        from mpi4py import MPI
        import numbers_.core, numbers_.lazy, numbers_.marks
        import numbers_.tests.test_core
        MPI.give_way()
        for name in ("core", "lazy", "marks", "tests.test_core"):
            print(MPI.rank(), name, id(sys.modules[f"numbers_.{name}"]))
        import pytest
        assert type(numbers_.marks.slow.mark) is type(pytest.mark.other.mark)
        """,
    )
    run(ScriptProgram(path), 2)
    found: dict[str, set[str]] = {}
    for line in lines(capsys):
        _, name, number = line.split()
        found.setdefault(name, set()).add(number)
    copies = {name: len(numbers) for name, numbers in found.items()}
    assert copies == {"core": 1, "lazy": 1, "marks": 2, "tests.test_core": 2}


def test_a_rank_waits_for_a_module_that_another_is_importing(site, write, capsys, monkeypatch):
    monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"slow"})
    site("slow/__init__.py", "import time\ntime.sleep(0.5)\nfrom slow.inner import late\n")
    site("slow/inner.py", "import time\ntime.sleep(0.5)\nlate = object()")
    path = write(
        "program.py",
        """
        from slow import late
        import slow.inner
        assert slow.inner.late is late
        print(id(late))
        """,
    )
    result = pysmpi.run(path, nprocs=3, compute="none")
    assert len(set(lines(capsys))) == 1
    assert 1 <= result.seconds < 1.001


def test_other_ranks_do_not_see_a_module_that_a_rank_is_importing(
    site, write, capsys, monkeypatch
):
    monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"sleepy"})
    site("sleepy/__init__.py", "import sleepy.inner, time\ntime.sleep(0.5)\nlate = object()")
    site("sleepy/inner.py", "early = object()")
    path = write(
        "program.py",
        """
        import sys, time
        from mpi4py import MPI
        time.sleep(0.1 * MPI.COMM_WORLD.rank)
        if MPI.COMM_WORLD.rank:
            assert "sleepy" not in sys.modules
            assert "sleepy.inner" not in sys.modules
        if MPI.COMM_WORLD.rank == 1:
            from sleepy.inner import early
            assert hasattr(sys.modules["sleepy"], "late")
        from sleepy import late
        print(id(late), id(sys.modules["sleepy.inner"]))
        """,
    )
    result = pysmpi.run(path, nprocs=3, compute="none")
    assert len(set(lines(capsys))) == 1
    assert 0.5 <= result.seconds < 0.501


def test_a_rank_imports_what_another_failed_to_import(site, write, capsys, monkeypatch):
    monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"fragile"})
    site(
        "fragile.py",
        """
        import os, time
        time.sleep(0.5)
        if "FAIL" in os.environ:
            raise ImportError("not today")
        """,
    )
    path = write(
        "program.py",
        """
        import os
        from mpi4py import MPI
        if MPI.COMM_WORLD.rank == 0:
            os.environ["FAIL"] = "1"
        try:
            import fragile
            print("imported", fragile.__name__)
        except ImportError as error:
            print(error)
        """,
    )
    pysmpi.run(path, nprocs=3, compute="none")
    assert sorted(lines(capsys)) == ["imported fragile", "imported fragile", "not today"]


def test_ranks_import_modules_that_import_each_other(site, write, capsys, monkeypatch):
    monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"one", "two", "three"})
    for name, other in (("one", "two"), ("two", "three"), ("three", "one")):
        site(
            f"{name}.py",
            f"import time\nearly = 1\ntime.sleep(0.5)\nimport {other}\n"
            f"assert {other}.early\nlate = 1",
        )
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        name = ["one", "two", "three"][MPI.COMM_WORLD.rank]
        assert __import__(name).late
        import one, two, three
        print(one.late + two.late + three.late)
        """,
    )
    result = pysmpi.run(path, nprocs=3, compute="none")
    assert lines(capsys) == ["3", "3", "3"]
    assert result.seconds < 0.501


@pytest.mark.parametrize("shared", [True, False])
def test_a_thread_waits_for_a_module_that_another_is_importing(
    site, write, capsys, monkeypatch, shared
):
    if shared:
        monkeypatch.setattr(rules, "KNOWN_SHARED", rules.KNOWN_SHARED | {"lazybones"})
    site("lazybones.py", "import time\ntime.sleep(0.5)\nlate = 7")
    path = write(
        "program.py",
        """
        from concurrent.futures import ThreadPoolExecutor
        from mpi4py import MPI
        def use(_):
            import lazybones
            return lazybones.late
        with ThreadPoolExecutor(3) as pool:
            print(list(pool.map(use, range(3))))
        """,
    )
    pysmpi.run(path, nprocs=2, compute="none")
    assert lines(capsys) == ["[7, 7, 7]"] * 2


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
    import os
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
sys.path.insert(0, "tests/runtime")
from ranks_by_hand import fake_mpi, run
from pysmpi.runtime.loader import CommandProgram
for attempt in range(2):
    run(CommandProgram("from mpi4py import MPI; MPI.give_way()"), 2)
    from mpi4py import MPI
    assert MPI is real is mpi4py.MPI is sys.modules["mpi4py.MPI"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


NAMES = st.sampled_from(["a", "b", "c", "d"])
ACTIONS = st.sampled_from(["set", "delete", "read", "share", "hide"])


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), ACTIONS, NAMES), max_size=40), st.booleans())
def test_the_exchange_shows_each_rank_what_it_did(steps, versions):
    """Against a model: a dictionary of modules for each rank, and one of shared modules."""
    table = {"base": types.ModuleType("base")}
    states = [State(number) for number in range(3)]
    model = [{}, {}, {}]
    hidden = [set(), set(), set()]
    shared = dict(table)
    exchange = Exchange(table, {}, version_of if versions else None)
    for index, action, name in steps:
        exchange.show(states[index])
        part = "base." + name
        if action == "set":
            model[index][name] = table[name] = types.ModuleType(name)
        elif action == "delete":
            table.pop(name, None)
            model[index].pop(name, None)
        elif action == "share" and part not in shared:
            shared[part] = table[part] = types.ModuleType(part)
        elif action == "hide":
            if not versions:  # then only the number of entries tells
                exchange.collect()
            if table.pop(part, None) is not None:
                hidden[index].add(part)
        expected = {n: m for n, m in shared.items() if n not in hidden[index]}
        exchange.show(exchange.outside)
        exchange.show(states[index])
        assert table == {**expected, **model[index]}
    exchange.close()
    assert table == shared


STEPS = st.tuples(st.integers(0, 2), st.sampled_from(["one", "two", "new"]), st.integers(0, 3))


@settings(max_examples=120, deadline=None)
@given(st.lists(STEPS, max_size=40), st.sampled_from([None, version_of]))
def test_each_rank_has_its_own_values_of_names(steps, version_of):
    """Value 0 stands for a name that is deleted."""
    space = {"one": 1, "two": 2, "other": 3}
    first = dict(space)
    exchange = Exchange({}, {}, version_of)
    exchange.watch(space, "one")
    exchange.watch(space, "two", lambda owner, common: common + owner)
    exchange.watch_new(space)
    states = [State(number) for number in range(3)]
    model = [{**space, "two": 2 + number} for number in range(3)]
    for index, name, value in steps:
        exchange.show(states[index])
        assert space == model[index]
        if value:
            space[name] = model[index][name] = value
        else:
            space.pop(name, None)
            model[index].pop(name, None)
    for index, state in enumerate(states):
        exchange.show(state)
        assert space == model[index]
    exchange.close()
    assert space == first


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


def test_nobody_sees_half_of_a_shared_module(site, write, tmp_path):
    """Modules that start processes and threads while they are loaded let other ranks run."""
    site("slow/__init__.py", "import slow.first\nimport slow.second\nwhole = True")
    site("slow/first.py", "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '0'])")
    site(
        "slow/second.py",
        "import threading\nwarm = threading.Thread(target=int)\nwarm.start()\nwarm.join()",
    )
    path = write(
        "program.py",
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path / "site")!r})
        import warnings
        from mpi4py import MPI
        if MPI.COMM_WORLD.rank % 2:
            from slow import whole
            import slow
        else:
            import slow.second
        assert slow.whole and slow.second.warm
        warnings.filterwarnings("ignore", message="x")
        assert MPI.COMM_WORLD.allreduce(len(warnings.filters)) % len(warnings.filters) == 0
        print("whole", flush=True)
        """,
    )
    for options in ([], ["--shared", "slow"]):
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", "run", "-n", "4", *options, path],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.stdout.split() == ["whole"] * 4, done.stderr


def test_nobody_looks_at_what_a_shared_package_imports_lazily(site, write, capsys):
    import _json

    lazy = """
    import importlib
    class Lazy:
        def __getattribute__(self, name):
            return getattr(importlib.import_module("missing_"), name)
    thing = Lazy()
    """
    shutil.copy(_json.__file__, site("compiled_/__init__.py", lazy).replace("__init__.py", "_j.so"))
    path = write("program.py", "from mpi4py import MPI\nimport compiled_\nprint('there')")
    pysmpi.run(path, nprocs=2)
    assert lines(capsys) == ["there", "there"]


def test_nobody_goes_on_while_a_shared_module_writes_to_a_pipe(site, write, tmp_path):
    import _json

    target = site("compiled/__init__.py", "from . import _json")
    shutil.copy(_json.__file__, target.replace("__init__.py", "_json.so"))
    site(
        "compiled/writes.py",
        """
        import os
        for _ in range(3):
            fd = os.open(os.devnull, os.O_WRONLY)
            os.close(fd)
        whole = True
        """,
    )
    path = write(
        "program.py",
        f"""
        import os, sys, threading
        sys.path.insert(0, {str(tmp_path / "site")!r})
        import compiled
        reader, writer = os.pipe()
        waits = threading.Thread(target=os.read, args=(reader, 1))
        waits.start()
        from mpi4py import MPI
        MPI.COMM_WORLD.Barrier()
        for _ in range(2000):
            half = sys.modules.get("compiled.writes")
            assert half is None or half.whole
        import compiled.writes
        os.write(writer, b"x")
        waits.join()
        """,
    )
    result = pysmpi.run(str(path), 4)
    assert result.exit_status == 0


def test_a_shared_module_that_cannot_be_imported_fails_in_every_rank(site, write, capsys):
    import _json

    target = site("half_broken/__init__.py", "from . import _json\nfrom . import broken")
    shutil.copy(_json.__file__, target.replace("__init__.py", "_json.so"))
    site("half_broken/broken.py", "from . import deeper\nimport there_is_no_such_module")
    site("half_broken/deeper.py", "")
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        import sys
        for _ in range(2):
            try:
                import half_broken
            except ImportError as error:
                inside = [name for name in sys.modules if name.startswith("half_broken.")]
                print(error.name, sorted(inside))
            MPI.give_way()
        """,
    )
    run(ScriptProgram(path), 3)
    left = ["half_broken._json", "half_broken.deeper"]
    assert lines(capsys) == [f"there_is_no_such_module {left}"] * 6


def test_import_hooks_of_a_shared_package_serve_all_ranks(site, write, capsys):
    import _json

    target = site(
        "hooked/__init__.py",
        """
        import importlib.machinery, sys, types
        from . import _json

        class Maker:
            def find_spec(self, name, path, target=None):
                if name.startswith("hooked.made_"):
                    return importlib.machinery.ModuleSpec(name, self)

            def create_module(self, spec):
                return types.ModuleType(spec.name)

            def exec_module(self, module):
                module.value = module.__name__[-1]

        sys.meta_path.append(Maker())
        """,
    )
    shutil.copy(_json.__file__, target.replace("__init__.py", "_json.so"))
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        import importlib, os, sys
        before = len(sys.meta_path)
        import hooked
        MPI.give_way()
        made = importlib.import_module("hooked.made_" + os.environ["PMI_RANK"])
        MPI.give_way()
        makers = [finder for finder in sys.meta_path if type(finder).__name__ == "Maker"]
        print(made.value, len(makers), len(sys.meta_path) - before)
        """,
    )
    run(ScriptProgram(path), 3)
    assert sorted(lines(capsys)) == ["0 1 1", "1 1 1", "2 1 1"]


def test_what_a_shared_module_warns_of_meets_the_filters_of_the_rank(site, write, capsys):
    import _json

    target = site("warning/__init__.py", "from . import _json")
    shutil.copy(_json.__file__, target.replace("__init__.py", "_json.so"))
    site("warning/old.py", "import warnings\nwarnings.warn('old', DeprecationWarning)")
    path = write(
        "program.py",
        """
        import importlib, warnings
        from mpi4py import MPI
        found = []
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                import warning.old
                MPI.give_way()
                importlib.reload(warning.old)
            found.append([str(one.message) for one in caught][-1:])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                importlib.reload(warning.old)
            except DeprecationWarning:
                found.append("error")
        print(found)
        """,
    )
    run(ScriptProgram(path), 2)
    assert lines(capsys) == ["[['old'], ['old'], 'error']"] * 2


def test_filters_of_warnings_outlive_imports_inside_imports(site, write, capsys):
    """A shared module imports a private one, which imports another shared one."""
    site("outer_shared.py", "import inner_private\nimport inner_shared")
    site("inner_private.py", "from mpi4py import MPI\nimport inner_shared")
    site("inner_shared.py", "import warnings\nwarnings.filterwarnings('error', message='x')")
    path = write(
        "program.py",
        """
        import warnings
        import outer_shared
        with warnings.catch_warnings(record=True):
            print(sum(one[1] is not None and one[1].pattern == "x" for one in warnings.filters))
        """,
    )
    run(ScriptProgram(path), 3, shared=["outer_shared", "inner_shared"])
    assert lines(capsys) == ["1", "1", "1"]
