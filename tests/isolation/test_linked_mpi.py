"""Compiled code that calls an MPI library is reported in one line, before it is loaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from pysmpi.isolation.loading.linked_mpi import chain_to_mpi, opens_libraries

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to make libraries"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only ELF files are read"),
]

EXTENSION = """
#include <Python.h>
int MPI_Init(int *, char ***);
int (*kept)(int *, char ***);
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "NAME", 0, -1, 0};
PyMODINIT_FUNC PyInit_NAME(void) { USE return PyModule_Create(&definition); }
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Extensions linked with an MPI library, with a library that is, with stubs, with none."""
    here = tmp_path_factory.mktemp("built")

    def make(name: str, source: str, *options: str) -> None:
        (here / "source.c").write_text(source)
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", name, "source.c",
             "-I", sysconfig.get_paths()["include"], "-L.", "-Wl,-rpath,$ORIGIN", *options],
            cwd=here, check=True, timeout=100,
        )  # fmt: skip

    function = "int MPI_Init(int *a, char ***b) { return 0; }"
    make("libmpi.so.20", function, "-Wl,-soname,libmpi.so.20")
    make("libdata.so", "int data;", "-l:libmpi.so.20")
    make("libstubs.so", function)
    use = EXTENSION.replace("USE", "kept = MPI_Init;")
    plain = EXTENSION.replace("USE", "")
    make("direct.so", use.replace("NAME", "direct"), "-l:libmpi.so.20")
    make("indirect.so", plain.replace("NAME", "indirect"), "-ldata")
    make("open.so", use.replace("NAME", "open"), "-Wl,-z,lazy")
    make("serial.so", use.replace("NAME", "serial"), "-lstubs")
    make("plain.so", plain.replace("NAME", "plain"))
    return here


def test_chains_of_libraries(built: Path) -> None:
    assert chain_to_mpi(str(built / "direct.so")) == ("libmpi.so.20",)
    assert chain_to_mpi(str(built / "indirect.so")) == ("libdata.so", "libmpi.so.20")
    assert chain_to_mpi(str(built / "open.so")) == ()
    assert chain_to_mpi(str(built / "serial.so")) is None
    assert chain_to_mpi(str(built / "plain.so")) is None
    assert chain_to_mpi(__file__) is None
    assert chain_to_mpi(str(built / "none.so")) is None


def run(built: Path, text: str) -> subprocess.CompletedProcess[str]:
    (built / "prog.py").write_text("from mpi4py import MPI\n" + text)
    return subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "prog.py"],
        capture_output=True, text=True, timeout=100, cwd=built,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("import direct", "module direct, imported", "linked with libmpi.so.20"),
        ("import indirect", "module indirect, imported", "linked with libdata.so -> libmpi.so.20"),
        (
            "import ctypes; ctypes.CDLL('./libmpi.so.20')",
            "library libmpi.so.20, loaded by ctypes",
            "it is an MPI library",
        ),
        (
            "import ctypes; ctypes.CDLL('./libdata.so')",
            "library libdata.so, loaded by ctypes",
            "linked with libmpi.so.20",
        ),
        (
            "import cffi; cffi.FFI().dlopen('./libdata.so')",
            "library libdata.so, loaded by cffi",
            "linked with libmpi.so.20",
        ),
    ],
)
def test_what_calls_mpi_is_refused_in_one_line(built, text, what, why):
    done = run(built, text)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"pysmpi: error: {what} at prog.py:2 in <module>, cannot be")
    assert why in done.stderr
    assert "use a build for MPICH" in done.stderr


def test_other_libraries_and_optional_ones_are_loaded(built):
    done = run(
        built,
        """
import ctypes, serial, plain
ctypes.CDLL("./libmpi.so.20", mode=ctypes.RTLD_GLOBAL)
ctypes.CDLL(None)
try:
    import direct
except ImportError:
    print("without")
""",
    )
    assert done.stderr == ""
    assert done.stdout == "without\n" * 2


def test_packages_that_find_the_library_at_run_time_find_ours(built: Path) -> None:
    (built / "numba_mpi").mkdir(exist_ok=True)
    (built / "numba_mpi" / "__init__.py").write_text(
        "import ctypes\n"
        "lines = open('/proc/self/maps').read().splitlines()\n"
        "(path,) = {line.split(None, 5)[5] for line in lines if '/libmpi.' in line}\n"
        "size = ctypes.c_int()\n"
        "ctypes.CDLL(path).MPI_Comm_size(0x44000000, ctypes.byref(size))"
    )
    done = run(built, "import numba_mpi; print(numba_mpi.size.value)")
    assert (done.stdout, done.stderr, done.returncode) == ("2\n" * 2, "", 0)


OPENS = """
#include <Python.h>
#include <dlfcn.h>
static PyObject *start(PyObject *module, PyObject *path) {
    return PyBool_FromLong(dlopen(PyUnicode_AsUTF8(path), RTLD_NOW) != NULL);
}
static PyMethodDef methods[] = {{"start", start, METH_O, 0}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "opens", 0, -1, methods};
PyMODINIT_FUNC PyInit_opens(void) { return PyModule_Create(&definition); }
"""


@pytest.fixture(scope="module")
def opens(built: Path) -> Path:
    """An extension that opens the library which its caller names."""
    (built / "opens.c").write_text(OPENS)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", "opens.so", "opens.c", "-ldl",
         "-I", sysconfig.get_paths()["include"]],
        cwd=built, check=True, timeout=100,
    )  # fmt: skip
    assert opens_libraries(str(built / "opens.so"))
    assert not opens_libraries(str(built / "plain.so"))
    return built


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("import opens\nif MPI.COMM_WORLD.rank == 1: opens.start('./libmpi.so.20')\n"
         "MPI.COMM_WORLD.Barrier()\nwhile MPI.COMM_WORLD.rank == 0: MPI.COMM_WORLD.Barrier()", 1),
        ("import opens\nif MPI.COMM_WORLD.rank: opens.start('./libdata.so')", 1),
        ("import ctypes\nctypes.CDLL(None).dlopen(b'./libmpi.so.20', 2)", 0),
    ],
)  # fmt: skip
def test_a_library_that_c_code_opens_ends_the_run(opens: Path, text: str, rank: int) -> None:
    done = run(opens, text)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") <= 1
    assert f"C code of rank {rank} has opened libmpi.so.20 (dlopen), and cannot" in done.stderr


def test_a_library_without_mpi_is_opened(opens: Path) -> None:
    done = run(opens, "import opens\nprint(opens.start('./libstubs.so'))\nMPI.COMM_WORLD.Barrier()")
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done.stderr
