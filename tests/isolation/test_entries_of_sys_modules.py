"""Entries of `sys.modules` that no import has made: modules of C code, and other objects."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

EXTENSION = """
#include <Python.h>
static int make(PyObject *m) {
    static const char *names[] = {"NAMEs_top", "pk.NAME_inner", "pk.NAME.sub", NULL};
    for (int i = 0; names[i]; i++) {
        PyObject *s = PyImport_AddModule(names[i]);
        if (s == NULL || PyModule_AddIntConstant(s, "ANSWER", 42 + i)) return -1;
    }
    return 0;
}
#ifdef PHASES
static PyModuleDef_Slot slots[] = {{Py_mod_exec, make}, {0, NULL}};
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "NAME", NULL, 0, NULL, slots};
PyMODINIT_FUNC PyInit_NAME(void) { return PyModuleDef_Init(&def); }
#else
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "NAME", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_NAME(void) {
    PyObject *m = PyModule_Create(&def);
    return make(m) ? NULL : m;
}
#endif
"""


def run(here: Path, text: str) -> str:
    (here / "prog.py").write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", "prog.py"],
        capture_output=True, text=True, timeout=100, cwd=here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to make an extension")
@pytest.mark.parametrize("private", [True, False], ids=["private", "shared"])
def test_every_rank_has_the_modules_that_an_extension_makes(tmp_path, private):
    package = tmp_path / "pk"
    package.mkdir()
    (package / "__init__.py").write_text("import mpi4py\n" if private else "")
    for name, option in {"one": "-DNONE", "two": "-DPHASES"}.items():
        (tmp_path / "source.c").write_text(EXTENSION.replace("NAME", name))
        subprocess.run(
            ["gcc", "-shared", "-fPIC", option, "-o", package / f"{name}.so", "source.c",
             "-I", sysconfig.get_paths()["include"]],
            cwd=tmp_path, check=True, timeout=100,
        )  # fmt: skip
    names = [f"{part}" for name in ("one", "two")
             for part in (f"{name}s_top", f"pk.{name}_inner", f"pk.{name}.sub")]  # fmt: skip
    output = run(
        tmp_path,
        f"""
        import sys
        from mpi4py import MPI
        if MPI.COMM_WORLD.rank == 2:
            assert not [name for name in {names} if name in sys.modules and {private}]
        import pk.one, pk.two, ones_top, twos_top
        from pk.one_inner import ANSWER
        from pk.two_inner import ANSWER as other
        print([name in sys.modules for name in {names}], ones_top.ANSWER, ANSWER, other)
        MPI.COMM_WORLD.Barrier()
        import pk.one.sub
        assert pk.one_inner.ANSWER == 43 if hasattr(pk, "one_inner") else True
        """,
    )
    assert output == f"{[True] * 6} 42 43 43\n" * 3


def test_entries_may_be_any_object(tmp_path):
    output = run(
        tmp_path,
        """
        import sys, warnings
        from mpi4py import MPI
        class Slots:
            __slots__ = ("name",)
        class Raises:
            def __getattribute__(self, name): raise RuntimeError(name)
        class Lazy:
            def __getattr__(self, name): raise ImportError(name)
        class Finalized:
            def __del__(self): print("finalized")
        things = [Slots(), Raises(), Lazy(), Lazy, 5, None, object(), "text", {}, len, sys]
        for number, thing in enumerate(things):
            sys.modules[f"thing{number}"] = thing
        sys.modules["json.made"] = Slots()
        MPI.COMM_WORLD.Barrier()
        import thing0, thing4, sqlite3
        warnings.simplefilter("ignore")
        warnings.warn("text")
        kept = Finalized()
        MPI.COMM_WORLD.Barrier()
        print(type(thing0).__name__, thing4)
        """,
    )
    assert sorted(output.splitlines()) == ["Slots 5"] * 3 + ["finalized"] * 3


def test_a_program_has_mpi4py_when_it_has_imported_it(tmp_path):
    # Packages look there to see whether a program uses MPI.
    (tmp_path / "asking.py").write_text(
        "import sys\nknows = 'mpi4py' in sys.modules\n"
        "if False:\n    import mpi4py\n"  # a package that knows MPI: each rank's own
    )
    out = run(
        tmp_path,
        """
        import importlib, importlib.util, sys
        import asking
        assert not asking.knows and "mpi4py" not in sys.modules
        spec = importlib.util.find_spec("mpi4py")
        assert spec.origin and list(spec.submodule_search_locations)
        assert "mpi4py" not in sys.modules
        import mpi4py
        assert sys.modules["mpi4py"] is mpi4py and "mpi4py.MPI" not in sys.modules
        assert importlib.reload(asking).knows
        import mpi4py.util.pkl5
        from mpi4py import MPI, futures
        assert sys.modules["mpi4py.MPI"] is mpi4py.MPI is MPI and mpi4py.futures is futures
        assert importlib.import_module("mpi4py") is importlib.reload(mpi4py) is mpi4py
        MPI.COMM_WORLD.Barrier()
        if MPI.COMM_WORLD.rank == 1:
            del sys.modules["mpi4py"]
        MPI.COMM_WORLD.Barrier()
        assert ("mpi4py" in sys.modules) is (MPI.COMM_WORLD.rank != 1)
        import mpi4py as again
        assert again is mpi4py
        print("right")
        """,
    )
    assert out == "right\n" * 3


def test_a_function_has_mpi4py_if_its_caller_has(tmp_path):
    (tmp_path / "calling.py").write_text(
        textwrap.dedent("""
        import sys
        import pysmpi

        def looks():
            before = "mpi4py" in sys.modules
            import mpi4py
            return before, sys.modules["mpi4py"] is mpi4py

        print(pysmpi.run(looks, nprocs=2).returns, "mpi4py" in sys.modules)
        import mpi4py
        print(pysmpi.run(looks, nprocs=2).returns, sys.modules["mpi4py"] is mpi4py)
    """)
    )
    done = subprocess.run(
        [sys.executable, "calling.py"], capture_output=True, text=True, timeout=100, cwd=tmp_path
    )
    assert done.stdout == f"{[(False, True)] * 2} False\n{[(True, True)] * 2} True\n", done.stderr
