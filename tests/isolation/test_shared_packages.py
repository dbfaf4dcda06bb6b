"""Installed packages: packages that ranks share, and the state that each rank has for itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES

import pytest
from ranks_by_hand import run

from pysmpi.isolation.loading import rules
from pysmpi.isolation.loading.loader import ScriptProgram


def lines(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


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


@pytest.mark.parametrize(
    "importing, counts",
    [
        ("import plain.part", ["1", "1"]),  # pure Python: its state is that of a process
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
sys.path[:0] = [{os.path.dirname(os.path.dirname(__file__))!r}, {os.path.dirname(path) + "/site"!r}]
from pysmpi.isolation.loading.rules import Rules
original = Rules.__init__
def init(self, *args):
    original(self, *args)
    self.site = (*self.site, {os.path.dirname(path) + "/site/"!r})
Rules.__init__ = init
from ranks_by_hand import run
from pysmpi.isolation.loading.loader import ScriptProgram
run(ScriptProgram({path!r}), 2)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100
    )
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
    import _queue

    target = site("compiled/__init__.py", "from mpi4py import MPI\nfrom . import _queue")
    shutil.copy(_queue.__file__, target.replace("__init__.py", "_queue.so"))
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        import compiled._queue
        MPI.give_way()
        print(id(compiled), id(compiled._queue), compiled._queue.SimpleQueue.__name__)
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


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to make an extension module")
def test_an_extension_module_has_what_the_modules_of_the_rank_hold(site, write, capsys):
    target = site("compiled/__init__.py", "from mpi4py import MPI")
    site("compiled/things.py", "class Thing: pass\ndef find(): return Thing")
    source = write("fast.c", FAST)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}", source,
         "-o", target.replace("__init__.py", f"fast{EXTENSION_SUFFIXES[0]}")],
        check=True, timeout=100,
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
    import _queue

    target = site(
        "seeded/__init__.py",
        """
        import random
        from . import later
        from . import _queue
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
    shutil.copy(_queue.__file__, target.replace("__init__.py", "_queue.so"))
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
        assert type(numbers_.marks.slow.mark) is type(pytest.mark.fast.mark)
        """,
    )
    run(ScriptProgram(path), 2)
    found: dict[str, set[str]] = {}
    for line in lines(capsys):
        _, name, number = line.split()
        found.setdefault(name, set()).add(number)
    copies = {name: len(numbers) for name, numbers in found.items()}
    assert copies == {"core": 1, "lazy": 1, "marks": 2, "tests.test_core": 2}


UNITS = """
class Registry:
    def __init__(self, below=None):
        self.names = set(below.names) if below else {"m"}
        self.kinds = {kind: set(names) for kind, names in below.kinds.items()} if below else {}

_unit_registries = [Registry()]

def enable(kind, *names):
    top = Registry(_unit_registries[-1])
    _unit_registries.append(top)
    for name in names:
        if name in top.names:
            raise ValueError(f"{name} already exists")
        top.names.add(name)
        top.kinds.setdefault(kind, set()).add(name)
"""


def test_a_shared_module_adds_to_the_units_of_each_rank(site, write, capsys):
    # Its registry is a copy of that of the importing rank, whose own units belong to this rank
    # only.
    site("astropy/__init__.py", "")
    site("astropy/units/__init__.py", "")
    site("astropy/units/core.py", UNITS)
    site(f"astropy/fast{EXTENSION_SUFFIXES[0]}", "")
    site("astropy/later.py", "from .units.core import enable\nenable('length', 'pc')")
    site(
        "sky.py",
        "from mpi4py import MPI\n"
        "from astropy.units.core import enable\n"
        "enable('length', 'ly')\n"
        "import astropy.later\n",
    )
    path = write(
        "prog.py",
        "from mpi4py import MPI\n"
        "rank = MPI.rank()\n"
        "MPI.give_way()\n"
        "if rank != 1:\n"
        "    import sky\n"
        "MPI.give_way()\n"
        "from astropy.units.core import _unit_registries\n"
        "top = _unit_registries[-1]\n"
        "kinds = {kind: sorted(names) for kind, names in top.kinds.items()}\n"
        "print(rank, sorted(top.names), kinds)\n",
    )
    run(ScriptProgram(path), 3)
    assert sorted(lines(capsys)) == [
        "0 ['ly', 'm', 'pc'] {'length': ['ly', 'pc']}",
        "1 ['m', 'pc'] {'length': ['pc']}",
        "2 ['ly', 'm', 'pc'] {'length': ['ly', 'pc']}",
    ]


def test_a_package_that_a_rank_imports_first_is_set_up_for_all(tmp_path) -> None:
    """PyYAML registers its representers in classes while it is imported."""
    program = tmp_path / "program.py"
    program.write_text("import yaml\nprint(yaml.dump([1, None]).split())\n")
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", str(program)],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.stdout == "['-', '1', '-', 'null']\n" * 3, done.stderr
