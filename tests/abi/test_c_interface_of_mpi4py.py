"""The C interface of mpi4py for extension modules of each binary interface: all its functions."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import mpi4py
import pytest

pytest.importorskip(
    "pysmpi.abi.engine", reason="pysmpi was installed without a C compiler, or not on Linux"
)
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler", allow_module_level=True)

EXTENSION = r"""
#include <mpi.h>
#include <mpi4py/mpi4py.h>
#define EACH(X) \
    X(Datatype, DOUBLE, DATATYPE_NULL) X(Op, SUM, OP_NULL) X(Group, GROUP_EMPTY, GROUP_NULL) \
    X(Info, INFO_ENV, INFO_NULL) X(Errhandler, ERRORS_RETURN, ERRHANDLER_NULL) \
    X(Comm, COMM_SELF, COMM_NULL) X(Message, MESSAGE_NO_PROC, MESSAGE_NULL) \
    X(Request, REQUEST_NULL, REQUEST_NULL) X(Win, WIN_NULL, WIN_NULL) \
    X(File, FILE_NULL, FILE_NULL) X(Session, SESSION_NULL, SESSION_NULL)
/* For each class: a constant, the null handle and an object; the names of what differs, and new
   objects of the constant and of the handle of the object. */
static PyObject *handles(PyObject *m, PyObject *args)
{
    PyObject *wrong = PyList_New(0), *made = PyList_New(0);
    Py_ssize_t i = 0;
#define CHECK(name, constant, null) { \
    PyObject *c = PyTuple_GET_ITEM(args, i++), *n = PyTuple_GET_ITEM(args, i++); \
    MPI_##name *own = PyMPI##name##_Get(PyTuple_GET_ITEM(args, i++)); \
    if (own == NULL || *PyMPI##name##_Get(c) != MPI_##constant \
        || *PyMPI##name##_Get(n) != MPI_##null) \
        PyList_Append(wrong, PyUnicode_FromString(#name)); \
    PyList_Append(made, PyMPI##name##_New(MPI_##constant)); \
    PyList_Append(made, PyMPI##name##_New(*own)); }
    EACH(CHECK)
    PyList_Append(made, PyMPIPrequest_New(MPI_REQUEST_NULL));
    PyList_Append(made, PyMPIGrequest_New(MPI_REQUEST_NULL));
    return Py_BuildValue("NN", wrong, made);
}
static PyObject *refused(PyObject *m, PyObject *o) /* the names of functions that take an object */
{
    PyObject *took = PyList_New(0);
#define TAKE(name, constant, null) if (PyMPI##name##_Get(o) != NULL) \
    PyList_Append(took, PyUnicode_FromString(#name)); else PyErr_Clear();
    EACH(TAKE)
    TAKE(Status, , )
    return took;
}
static PyObject *receive(PyObject *m, PyObject *args)
{
    PyObject *comm, *status;
    int values[4] = {0};
    if (!PyArg_ParseTuple(args, "OO", &comm, &status))
        return NULL;
    MPI_Status *own = PyMPIStatus_Get(status);
    if (own == NULL && PyErr_Occurred())
        return NULL;
    MPI_Recv(values, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, *PyMPIComm_Get(comm), own);
    if (own == MPI_STATUS_IGNORE)
        return Py_BuildValue("O", PyMPIStatus_New(own));
    return Py_BuildValue("iiiN", values[1], own->MPI_SOURCE, own->MPI_TAG, PyMPIStatus_New(own));
}
static PyObject *complete(PyObject *m, PyObject *args)
{
    PyObject *request, *status;
    if (!PyArg_ParseTuple(args, "OO", &request, &status))
        return NULL;
    MPI_Wait(PyMPIRequest_Get(request), PyMPIStatus_Get(status));
    return PyBool_FromLong(*PyMPIRequest_Get(request) == MPI_REQUEST_NULL);
}
static PyObject *change(PyObject *m, PyObject *status)
{
    MPI_Status *own = PyMPIStatus_Get(status);
    MPI_Count count = 0;
    int flag = 0;
    MPI_Get_elements_x(own, MPI_BYTE, &count);
    MPI_Test_cancelled(own, &flag);
    MPI_Status_set_elements_x(own, MPI_BYTE, count + ((MPI_Count)1 << 33));
    MPI_Status_set_cancelled(own, 1);
    own->MPI_TAG += 1;
    own->MPI_ERROR = 3;
    return Py_BuildValue("Li", (long long)count, flag);
}
static PyObject *size(PyObject *m, PyObject *a) { return PyLong_FromLong(sizeof(MPI_Status)); }
static PyMethodDef methods[] = {{"handles", handles, METH_VARARGS},
    {"receive", receive, METH_VARARGS}, {"complete", complete, METH_VARARGS},
    {"change", change, METH_O}, {"refused", refused, METH_O},
    {"size", size, METH_NOARGS}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "extension", NULL, -1, methods};
PyMODINIT_FUNC PyInit_extension(void)
{
    return import_mpi4py() < 0 ? NULL : PyModule_Create(&definition);
}
"""

PROGRAM = """
import extension
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
own = [
    ("Datatype", MPI.DOUBLE, MPI.DATATYPE_NULL, MPI.INT.Create_vector(2, 1, 3)),
    ("Op", MPI.SUM, MPI.OP_NULL, MPI.Op.Create(lambda a, b, t: None)),
    ("Group", MPI.GROUP_EMPTY, MPI.GROUP_NULL, world.group),
    ("Info", MPI.INFO_ENV, MPI.INFO_NULL, MPI.Info.Create()),
    ("Errhandler", MPI.ERRORS_RETURN, MPI.ERRHANDLER_NULL,
     MPI.Comm.Create_errhandler(lambda c, e: None)),
    ("Comm", MPI.COMM_SELF, MPI.COMM_NULL, world.Split(rank % 2)),
    ("Message", MPI.MESSAGE_NO_PROC, MPI.MESSAGE_NULL, MPI.MESSAGE_NO_PROC),
    ("Request", MPI.REQUEST_NULL, MPI.REQUEST_NULL, world.Send_init([bytes(4), MPI.INT], 0)),
    ("Win", MPI.WIN_NULL, MPI.WIN_NULL, MPI.Win.Create(bytearray(8), comm=world)),
    ("File", MPI.FILE_NULL, MPI.FILE_NULL,
     MPI.File.Open(MPI.COMM_SELF, f"file{rank}", MPI.MODE_CREATE | MPI.MODE_RDWR)),
    ("Session", MPI.SESSION_NULL, MPI.SESSION_NULL, MPI.Session.Init()),
]
wrong, made = extension.handles(*[each for _, *three in own for each in three])
assert wrong == [], wrong
for name, constant, null, object in own:
    first, second = made.pop(0), made.pop(0)
    assert first == constant and second == object, name
    assert isinstance(second, getattr(MPI, name)), name
    assert extension.refused(object) == [name], (name, extension.refused(object))
    # None is a status that is ignored, and nothing else.
assert [type(each) for each in made] == [MPI.Prequest, MPI.Grequest]
assert extension.refused(MPI.Status()) == ["Status"] and extension.refused(1) == []
assert made == [MPI.REQUEST_NULL, MPI.REQUEST_NULL]

assert MPI._sizeof(MPI.Status) == extension.size() == MPI.Status().tomemory().nbytes
before, after = (rank - 1) % size, (rank + 1) % size
status = MPI.Status()
request = world.Isend([bytes(12), MPI.INT], after, 5)
value, source, tag, copy = extension.receive(world, status)
assert (value, source, tag) == (0, before, 5)
for each in status, copy, MPI.Status(status), MPI.Status.f2py(status.py2f()):
    assert (each.source, each.tag, each.Get_count(MPI.INT)) == (before, 5, 3)
    assert not each.Is_cancelled()
assert copy == status == MPI.Status(copy)
assert extension.complete(request, status) and request == MPI.REQUEST_NULL
assert status.tomemory().nbytes == extension.size() == MPI._sizeof(status)

# What either side changes, the other one reads.
status.source, status.tag, status.error = 4, 40, 0
status.Set_elements(MPI.BYTE, (1 << 31) + 9)
status.Set_cancelled(False)
assert extension.change(status) == ((1 << 31) + 9, 0)
assert (status.source, status.tag, status.error) == (4, 41, 3)
assert status.Get_elements(MPI.BYTE) == (1 << 31) + 9 + (1 << 33) and status.Is_cancelled()
status.Set_elements(MPI.BYTE, 3)
assert extension.change(status) == (3, 1) and status.count == 3 + (1 << 33)
assert (copy.tag, copy.count) == (5, 12)

# Python completes with a status that C code knows.
receive = world.Irecv([bytearray(8), MPI.INT], before, 6)
world.Send([bytes(8), MPI.INT], after, 6)
receive.Wait(status)
assert (status.source, status.tag, status.count) == (before, 6, 8)

# None is MPI_STATUS_IGNORE.
world.Isend([bytes(4), MPI.INT], after, 7).Free()
assert extension.receive(world, None) == MPI.Status()
own[8][3].Free()
own[9][3].Close()
print("right")
"""


@pytest.mark.parametrize("interface", ["mpich", "openmpi", "standard"])
def test_objects_in_c_and_back(interface: str, tmp_path: Path) -> None:
    (tmp_path / "extension.c").write_text(EXTENSION)
    headers = Path(mpi4py.get_include())
    subprocess.run(
        [sys.executable, "-m", "pysmpi", "cc", "--abi", interface, "-shared", "-fPIC", "-w",
         "extension.c", "-o", "extension.so", "-I", sysconfig.get_paths()["include"],
         "-I", str(headers), "-I", str(headers.parent.parent)],
        cwd=tmp_path, check=True, timeout=100,
    )  # fmt: skip
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "3", "--compute", "none", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "right\n" * 3), done.stderr
