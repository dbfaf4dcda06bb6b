"""Libraries and extension modules that call MPI, in ranks with Python programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path

import mpi4py
import pytest

from pysmpi.abi import elf

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to make libraries"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only ELF files are loaded"),
]

# A library with a library of its own, which has a variable that C++ would share between copies.
INNER = """
#include <mpi.h>
__asm__(".type unique, @gnu_unique_object");
int unique __attribute__((visibility("default"))) = 10;
int total(int value)
{
    int sum;
    unique++;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}
"""
OUTER = """
#include <mpi.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern int unique;
int total(int value);
static int rank, size, calls;
static int (*in_table[])(MPI_Comm, int *) = {MPI_Comm_rank, MPI_Comm_size};

int begin(int n)
{
    in_table[0](MPI_COMM_WORLD, &rank);
    in_table[1](MPI_COMM_WORLD, &size);
    for (int i = 0; i <= n; i++)
        total(0);
    calls += n + 1;
    return calls * 1000 + unique;
}

/* Messages to and from the stack: each leaves it in use by others while it is under way. */
int on_stack(void)
{
    int n = 500, a[500], b[500], c[500], bad = 0;
    int from = (rank + size - 1) % size, to = (rank + 1) % size;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Datatype every;
    for (int i = 0; i < n; i++)
        a[i] = rank * n + i, b[i] = c[i] = -1;
    MPI_Irecv(b, n, MPI_INT, from, 0, MPI_COMM_WORLD, requests);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Ssend(a, n, MPI_INT, to, 0, MPI_COMM_WORLD);
    MPI_Wait(requests, &status);
    bad += status.MPI_SOURCE != from;
    for (int i = 0; i < n; i++)
        bad += b[i] != from * n + i;
    /* Gaps of a datatype stay as they are, although they change while it receives. */
    MPI_Type_vector(n / 2, 1, 2, MPI_INT, &every);
    MPI_Type_commit(&every);
    MPI_Irecv(c, 1, every, from, 1, MPI_COMM_WORLD, requests);
    MPI_Isend(a, 1, every, to, 1, MPI_COMM_WORLD, requests + 1);
    for (int i = 1; i < n; i += 2)
        c[i] = i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        bad += c[i] != (i % 2 ? i : from * n + i);
    MPI_Type_free(&every);
    /* Persistent requests start with what the buffer holds then. */
    MPI_Send_init(a, n, MPI_INT, to, 2, MPI_COMM_WORLD, requests);
    MPI_Recv_init(b, n, MPI_INT, from, 2, MPI_COMM_WORLD, requests + 1);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < n; i++)
            a[i] = turn * 1000 + rank, b[i] = -1;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++)
            bad += b[i] != turn * 1000 + from;
    }
    MPI_Request_free(requests);
    MPI_Request_free(requests + 1);
    return bad;
}

/* Origins of accesses on the stack; the window is not. */
int accesses(void)
{
    int *memory, own[4] = {rank, rank, rank, rank}, got[4] = {-1, -1, -1, -1}, bad = 0;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Win win;
    MPI_Win_allocate(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_fence(0, win);
    MPI_Put(own, 4, MPI_INT, to, 0, 4, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Get(got, 4, MPI_INT, to, 0, 4, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 4; i++)
        bad += (memory[i] != from) + (got[i] != rank);
    MPI_Win_free(&win);
    return bad;
}

int window(void)
{
    int data[4];
    MPI_Win win;
    return MPI_Win_create(data, 16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
}

int gathered(void)
{
    int own = rank, all[64], counts[64], displs[64], bad = 0;
    for (int i = 0; i < size; i++)
        counts[i] = 1, displs[i] = 2 * i;
    memset(all, 0, sizeof all);
    MPI_Allgatherv(&own, 1, MPI_INT, all, counts, displs, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        bad += all[2 * i] != i || all[2 * i + 1] != 0;
    return bad;
}

static int most(int *in, int *out, int *n)
{
    for (int i = 0; i < *n; i++)
        out[i] = out[i] > in[i] ? out[i] : in[i];
    return 0;
}

int reduced(void)
{
    int own = rank, result = -1;
    MPI_Op op;
    MPI_Op_create((MPI_User_function *)(void *)most, 1, &op);
    MPI_Allreduce(&own, &result, 1, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    return result;
}

double seconds(void)
{
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    sleep(3600);
    clock_gettime(CLOCK_MONOTONIC, &after);
    return (after.tv_sec - before.tv_sec) + (after.tv_nsec - before.tv_nsec) * 1e-9;
}

int wrong(void)
{
    int value = 0;
    return MPI_Send(&value, 1, MPI_INT, size + 1, 0, MPI_COMM_WORLD);
}

int keeps_errno(void)
{
    errno = 77;
    MPI_Barrier(MPI_COMM_WORLD);
    return errno;
}

void leave(int status) { exit(status); }
void stop(void) { MPI_Abort(MPI_COMM_WORLD, 7); puts("went on"); fflush(stdout); }
void crash(void) { abort(); }

int wait_for(int other)
{
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    puts("went on");
    fflush(stdout);
    return value;
}

int through_python(int (*function)(void))
{
    int own = rank, value = function();
    return own == rank ? value : -1;
}

static void *in_thread(void *result) { *(int *)result = MPI_Barrier(MPI_COMM_WORLD); return NULL; }

int thread(void)
{
    pthread_t other;
    int result = -1;
    pthread_create(&other, NULL, in_thread, &result);
    pthread_join(other, NULL);
    return result;
}
"""
EXTENSION = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
int begin(int n);
int on_stack(void);
static int count;
static PyObject *py_begin(PyObject *m, PyObject *n)
{
    return PyLong_FromLong(begin(PyLong_AsLong(n)));
}
static PyObject *py_on_stack(PyObject *m, PyObject *n) { return PyLong_FromLong(on_stack()); }
static PyObject *py_count(PyObject *m, PyObject *n) { return PyLong_FromLong(++count); }
static PyMethodDef methods[] = {{"begin", py_begin, METH_O}, {"on_stack", py_on_stack, METH_NOARGS},
    {"count", py_count, METH_NOARGS}, {0}};
static int fill(PyObject *module) { return PyModule_AddIntConstant(module, "first", ++count); }
static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "NAME", 0, 0, methods, SLOTS};
PyMODINIT_FUNC PyInit_NAME(void) { RETURN }
"""
# An extension module without MPI, in a package of which another one needs MPI.
PLAIN = """
#include <Python.h>
static int count;
static PyObject *py_count(PyObject *m, PyObject *n) { return PyLong_FromLong(++count); }
static PyMethodDef methods[] = {{"count", py_count, METH_NOARGS}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "plain", 0, -1, methods};
PyMODINIT_FUNC PyInit_plain(void) { return PyModule_Create(&definition); }
"""

# With the interface of mpi4py for C: its functions, and the handles in its objects.
HANDLES = """
#include <Python.h>
#include <mpi.h>
#include <mpi4py/mpi4py.h>
static PyObject *both(PyObject *m, PyObject *c)
{
    int n, k;
    MPI_Comm *comm = PyMPIComm_Get(c), copy;
    if (comm == NULL)
        return NULL;
    MPI_Comm_size(*comm, &n);
    MPI_Comm_size(((struct PyMPICommObject *)c)->ob_mpi, &k);
    MPI_Comm_dup(*comm, &copy);
    return Py_BuildValue("iiN", n, k, PyMPIComm_New(copy));
}
/* Whether constants of both sides are equal, and constants of C as objects. */
static PyObject *same(PyObject *m, PyObject *args)
{
    PyObject *world, *null, *type, *op, *info;
    if (!PyArg_ParseTuple(args, "OOOOO", &world, &null, &type, &op, &info))
        return NULL;
    int equal = ((struct PyMPICommObject *)world)->ob_mpi == MPI_COMM_WORLD
        && *PyMPIComm_Get(world) == MPI_COMM_WORLD && *PyMPIComm_Get(null) == MPI_COMM_NULL
        && ((struct PyMPICommObject *)null)->ob_mpi == MPI_COMM_NULL
        && *PyMPIDatatype_Get(type) == MPI_DOUBLE && *PyMPIOp_Get(op) == MPI_SUM
        && ((struct PyMPIInfoObject *)info)->ob_mpi == MPI_INFO_NULL;
    return Py_BuildValue("iNNN", equal, PyMPIComm_New(MPI_COMM_SELF),
                         PyMPIDatatype_New(MPI_INT), PyMPIOp_New(MPI_MAX));
}
/* Store a duplicate in an object, and free what an object has. */
static PyObject *fill(PyObject *m, PyObject *c)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &((struct PyMPICommObject *)c)->ob_mpi);
    Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"both", both, METH_O}, {"same", same, METH_VARARGS},
    {"fill", fill, METH_O}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "handles", NULL, -1, methods};
PyMODINIT_FUNC PyInit_handles(void)
{
    return import_mpi4py() < 0 ? NULL : PyModule_Create(&definition);
}
"""


def compiler(here: Path, interface: str) -> Callable[..., None]:
    """A function that compiles a library in a folder, for a binary interface."""

    def compile_(name: str, source: str, *options: str) -> None:
        (here / "source.c").write_text(source)
        subprocess.run(
            [sys.executable, "-m", "pysmpi", "cc", "--abi", interface, "-shared", "-fPIC",
             "-o", name, "source.c", "-Wl,-rpath,$ORIGIN", "-L.",
             "-I", sysconfig.get_paths()["include"], *options],
            cwd=here, check=True, timeout=100,
        )  # fmt: skip

    return compile_


def build(here: Path, interface: str, inner: str = "libinner.so") -> Path:
    """A library that needs another one, both with MPI, and extension modules of both kinds."""
    compile_ = compiler(here, interface)
    compile_(inner, INNER, f"-Wl,-soname,{inner}")
    compile_("libouter.so", OUTER, "-Wl,-soname,libouter.so", f"-l:{inner}", "-pthread")
    for name, slots, body in (
        ("once", "0", "PyObject *m = PyModule_Create(&definition); fill(m); return m;"),
        ("multiple", "slots", "return PyModuleDef_Init(&definition);"),
    ):
        text = EXTENSION.replace("NAME", name).replace("SLOTS", slots).replace("RETURN", body)
        compile_(f"{name}.so", text, "-louter")
    headers = Path(mpi4py.get_include())
    compile_("handles.so", HANDLES, "-I", str(headers), "-I", str(headers.parent.parent))
    return here


# Open MPI's library for C++ is one that calls MPI, as any other.
_INNER = {"openmpi": "libmpi_cxx.so.40"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Libraries for a binary interface, which are built when they are first needed."""
    return cache(
        lambda name: build(tmp_path_factory.mktemp(name), name, _INNER.get(name, "libinner.so"))
    )


@pytest.fixture(params=["mpich", "openmpi", "standard"])
def libraries(request: pytest.FixtureRequest, folders: Callable[[str], Path]) -> Path:
    """Libraries for each of the interfaces."""
    return folders(request.param)


@pytest.fixture(scope="module")
def built(folders: Callable[[str], Path]) -> Path:
    """Libraries and extension modules for MPICH's interface, and a package with two of these."""
    here = folders("mpich")
    (here / "package" / "inner").mkdir(parents=True)
    for folder in ("package", "package/inner"):
        (here / folder / "__init__.py").touch()
    text = EXTENSION.replace("NAME", "multiple").replace("SLOTS", "slots")
    text = text.replace("RETURN", "return PyModuleDef_Init(&definition);")
    compiler(here, "mpich")("package/multiple.so", text, "-louter", "-Wl,-rpath,$ORIGIN/..")
    (here / "plain.c").write_text(PLAIN)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-I", sysconfig.get_paths()["include"], "plain.c",
         "-o", "package/inner/plain.so"],
        cwd=here, check=True, timeout=100,
    )  # fmt: skip
    return here


def run(built: Path, text: str, ranks: int = 3, name: str = "prog.py") -> tuple[int, str, str]:
    (built / name).write_text(
        "import ctypes\nfrom mpi4py import MPI\nlib = ctypes.CDLL('./libouter.so')\n"
        "rank = MPI.COMM_WORLD.rank\nlib.begin(0)\n" + text
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", str(ranks), name],
        capture_output=True, text=True, timeout=100, cwd=built,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


ALL = """
import multiple, once
lib.seconds.restype = ctypes.c_double
extension = [module.begin(1) for module in (once, multiple)]
MPI.COMM_WORLD.Barrier()
bad = [lib.on_stack(), once.on_stack(), multiple.on_stack(), lib.accesses(), lib.gathered()]
shown = [once.count(), multiple.count(), once.first, multiple.first]
PyFunction = ctypes.CFUNCTYPE(ctypes.c_int)
again = PyFunction(lambda: lib.on_stack() + MPI.COMM_WORLD.allreduce(1))
print(rank, extension, bad, shown, lib.reduced(), round(lib.seconds(), 3), lib.wrong(),
      lib.keeps_errno(), lib.through_python(again), once.__file__.endswith("/once.so"),
      lib.thread() != 0, flush=True)
"""


def test_each_rank_has_its_own_libraries_and_stack(libraries: Path) -> None:
    code, out, error = run(libraries, ALL)
    lines = sorted(out.splitlines())
    for rank, line in enumerate(lines):
        extension, shown = "[3013, 5015]", "[2, 2, 1, 1]"
        wrong = line.split(" 3600.0 ")[1].split()[0]
        assert line == (
            f"{rank} {extension} [0, 0, 0, 0, 0] {shown} 2 3600.0 {wrong} 77 3 True True"
        )
        assert int(wrong) & 0xFF == 6  # ERR_RANK, which the program gets as mpi4py has set it
    assert (code, len(lines)) == (0, 3), error
    assert error.count("a thread that is not the main one called MPI") == 3


@pytest.mark.parametrize(
    ("text", "status", "report"),
    [
        ("lib.wait_for(rank)", 3, "PSM101 deadlock"),
        ("if rank == 1: raise ValueError('mine')\nlib.wait_for(1)", 1, "ValueError: mine"),
        ("if rank == 1: lib.leave(5)\nlib.wait_for(1)", 3, "PSM101 deadlock"),
        ("lib.leave(5 if rank else 0)", 5, ""),
        ("if rank == 1: lib.stop()\nlib.wait_for(1)", 7, "rank 1 called MPI_Abort"),
        ("if rank == 1: lib.crash()\nlib.wait_for(1)", 134, "rank 1 called abort"),
        ("lib.window()", 2, "MPI_Win_create: the memory of the window is on the stack"),
    ],
)
def test_c_code_never_goes_on_after_the_end_of_its_rank(
    built: Path, text: str, status: int, report: str
) -> None:
    code, out, error = run(built, text)
    assert (code, out) == (status, ""), error
    assert report in error, error


def test_a_library_may_call_mpi_without_a_name_of_its_library(tmp_path: Path) -> None:
    """Functions of MPI that it defines itself are no such calls."""
    calls = {
        "calls": "int n, MPI_Barrier(int); int next(void) { MPI_Barrier(0); return ++n; }",
        "defines": "int MPI_Barrier(int c) { return c; } int f(void) { return MPI_Barrier(0); }",
        "others": "int other(void); int f(void) { return other(); }",
    }
    for name, text in calls.items():
        (tmp_path / "source.c").write_text(text.replace("Barrier(0)", "Barrier(0x44000000)"))
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "source.c", "-o", f"lib{name}.so"],
            cwd=tmp_path, check=True, timeout=100,
        )  # fmt: skip
        library = elf.read_library(str(tmp_path / f"lib{name}.so"))
        assert library is not None and library.calls_mpi == (name == "calls")
    (tmp_path / "prog.py").write_text(
        "import ctypes\nfrom mpi4py import MPI\nprint(ctypes.CDLL('./libcalls.so').next())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "2", "prog.py"],
        capture_output=True, text=True, timeout=100, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "1\n1\n"), done.stderr  # each has its own


def test_all_extension_modules_of_a_package_with_mpi_are_of_the_rank(built: Path) -> None:
    code, out, error = run(
        built,
        "from package.inner import plain\n"
        "from package.inner.plain import count\n"
        "assert plain.__file__.endswith('/package/inner/plain.so')\n"
        "print(count(), plain.count())",
    )
    assert (code, out) == (0, "1 2\n" * 3), error


CONSTANTS = """
import handles
equal, alone, kind, most = handles.same(
    MPI.COMM_WORLD, MPI.COMM_NULL, MPI.DOUBLE, MPI.SUM, MPI.Info())
assert equal == 1 and (alone, kind, most) == (MPI.COMM_SELF, MPI.INT, MPI.MAX)
for other in (None, 3, MPI.INT):
    try:
        handles.both(other)
    except TypeError as error:
        assert str(error).endswith(" to mpi4py.MPI.Comm"), error
    else:
        raise AssertionError(other)
half = MPI.COMM_WORLD.Split(rank % 2)
for comm in (MPI.COMM_WORLD, MPI.COMM_SELF, half, MPI.Comm(half)):
    n, k, copy = handles.both(comm)
    assert n == k == comm.size == copy.allreduce(1), (n, k)
    assert handles.both(copy)[1] == n and type(copy) is MPI.Intracomm
    assert MPI.Intracomm.fromhandle(copy.handle) == copy == MPI.Intracomm.f2py(copy.py2f())
    copy.Free()
    assert copy == MPI.COMM_NULL and not copy
new = MPI.Intracomm()
handles.fill(new)
assert new != MPI.COMM_NULL and new.allreduce(1) == MPI.COMM_WORLD.size
new.Free()
assert new == MPI.COMM_NULL
row = MPI.INT.Create_contiguous(4).Commit()
assert ctypes.c_void_p.from_address(MPI._addressof(MPI.INT)).value & 0xFFFFFFFF
row.Free()
assert row == MPI.DATATYPE_NULL
assert MPI.Intracomm.f2py(MPI.COMM_WORLD.py2f()) == MPI.COMM_WORLD
assert MPI._handleof(MPI.COMM_WORLD) == MPI.COMM_WORLD.handle
print(MPI._sizeof(MPI.Comm), flush=True)
"""


def test_c_code_understands_handles_of_mpi4py(libraries: Path) -> None:
    code, out, error = run(libraries, CONSTANTS)
    size = 4 if "mpich" in libraries.name else 8
    assert (code, out) == (0, f"{size}\n" * 3), error


def test_a_library_without_a_version_is_the_one_in_use(libraries: Path) -> None:
    code, out, error = run(
        libraries,
        "library, size = ctypes.CDLL('libmpi.so', ctypes.RTLD_GLOBAL), ctypes.c_int()\n"
        "half = MPI.COMM_WORLD.Split(rank % 2)\n"
        "library.MPI_Comm_size(ctypes.c_void_p(MPI._handleof(half)), ctypes.byref(size))\n"
        "print(size.value == half.size)",
    )
    assert (code, out) == (0, "True\n" * 3), error


def test_the_library_of_mpi4py_has_its_handles(built: Path) -> None:
    code, out, error = run(
        built,
        "half = MPI.COMM_WORLD.Split(rank % 2)\n"
        "library, size = ctypes.CDLL(MPI.__file__), ctypes.c_int()\n"
        "library.MPI_Comm_size(ctypes.c_int(half.handle), ctypes.byref(size))\n"
        "print(size.value == half.size)",
    )
    assert (code, out) == (0, "True\n" * 3), error


def test_a_program_uses_the_libraries_of_one_interface(
    built: Path, folders: Callable[[str], Path]
) -> None:
    other = folders("openmpi") / "libouter.so"
    code, out, error = run(built, f"ctypes.CDLL({str(other)!r})")
    (line,) = [line for line in error.splitlines() if line.startswith("pysmpi: error")]
    assert (code, out) == (2, ""), error
    assert "a program can use one MPI library only" in line
    assert "MPICH (libouter.so) is in use" in line


# A library without MPI, which makes its symbols global, and opens MPI and a library that was
# compiled for it, where both are found only by their names or beside it.
OPENER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int of_opener = 40;
int start(int n)
{
    Dl_info own;
    char path[500];
    if (dlopen("libmpi.so", RTLD_NOW | RTLD_GLOBAL) == NULL)
        return -1;
    if (!dladdr((void *)start, &own) || !dlopen(own.dli_fname, RTLD_NOW | RTLD_GLOBAL))
        return -2;
    strcpy(path, own.dli_fname);
    strcpy(strrchr(path, '/') + 1, "plug_mpi.so");
    void *plug = dlopen(path, RTLD_NOW);
    int (*function)(int) = plug ? dlsym(plug, "of_plug") : NULL;
    of_opener += n;
    return function ? function(n) : (puts(dlerror()), -3);
}
"""
PLUG = """
#include <stdlib.h>
extern int of_opener, MPI_Comm_rank(int, int *);
int of_plug(int n)
{
    int rank;
    MPI_Comm_rank(0x44000000, &rank);
    return getenv("PATH") != NULL ? of_opener * 100 + rank : -4;
}
"""
# As pybind11 does: what it has registered once for an interpreter is an error the second time.
REGISTERS = """
#include <Python.h>
int MPI_Initialized(int *);
static int fill(PyObject *module)
{
    PyObject *all = PyInterpreterState_GetDict(PyInterpreterState_Get());
    if (PyDict_GetItemString(all, "__pybind11_test__") != NULL) {
        PyErr_SetString(PyExc_ImportError, "the class is already registered!");
        return -1;
    }
    PyImport_AddModule("registers.inner");
    return PyDict_SetItemString(all, "__pybind11_test__", module);
}
static PyObject *found(PyObject *m, PyObject *n)
{
    int flag;
    MPI_Initialized(&flag);
    PyObject *all = PyInterpreterState_GetDict(PyInterpreterState_Get());
    return PyBool_FromLong(PyDict_GetItemString(all, "__pybind11_test__") == m);
}
static PyMethodDef methods[] = {{"found", found, METH_NOARGS}, {0}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "registers", 0, 0, methods, slots};
PyMODINIT_FUNC PyInit_registers(void) { return PyModuleDef_Init(&definition); }
"""


def test_libraries_open_mpi_and_modules_register_classes(tmp_path: Path) -> None:
    for name, source in (("libopener", OPENER), ("plug_mpi", PLUG), ("registers", REGISTERS)):
        (tmp_path / "source.c").write_text(source)
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-I", sysconfig.get_paths()["include"], "source.c",
             f"-Wl,-soname,{name}.so", "-o", f"{name}.so"],
            cwd=tmp_path, check=True, timeout=100,
        )  # fmt: skip
    (tmp_path / "prog.py").write_text(
        "import ctypes, sys\nfrom mpi4py import MPI\n"
        "lib = ctypes.CDLL('./libopener.so')\nMPI.COMM_WORLD.Barrier()\n"
        "import registers\nMPI.COMM_WORLD.Barrier()\n"
        "assert registers.found() and 'registers.inner' in sys.modules\n"
        "assert MPI.get_vendor()[0] == 'MPICH'\n"
        "print(lib.start(2 + MPI.COMM_WORLD.rank), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", "prog.py"],
        capture_output=True, text=True, timeout=100, cwd=tmp_path,
    )  # fmt: skip
    assert sorted(done.stdout.split()) == ["4200", "4301", "4402"], done.stdout + done.stderr


def test_the_real_library_in_the_process_is_not_called(built: Path) -> None:
    """Symbols of a library that was loaded first, for all, would win."""
    (built / "real.c").write_text("int MPI_Allreduce() { __builtin_trap(); }")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", "libmpi.so.40", "real.c"],
        cwd=built, check=True, timeout=100,
    )  # fmt: skip
    (built / "first.py").write_text(
        "import ctypes\nctypes.CDLL('./libmpi.so.40', ctypes.RTLD_GLOBAL)\n"
        "import pysmpi\n"
        "def main():\n"
        "    import ctypes\n    from mpi4py import MPI\n"
        "    lib = ctypes.CDLL('./libouter.so')\n    print(lib.begin(1))\n"
        "print([rank.value for rank in pysmpi.run(main, 2).ranks])"
    )
    done = subprocess.run(
        [sys.executable, "first.py"], capture_output=True, text=True, timeout=100, cwd=built
    )
    assert done.stdout == "2012\n2012\n", done.stderr
