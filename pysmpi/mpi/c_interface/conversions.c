/* The functions of mpi4py's interface for C (`MPI_api.h`). Each calls a function of Python, and lets
   its exception through to the caller, as the functions of mpi4py do. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Classes whose objects C code turns into handles, and those that it makes of handles. */
#define TO_HANDLE(X) X(Datatype) X(Request) X(Message) X(Op) X(Group) X(Info) X(Errhandler) \
    X(Session) X(Comm) X(Win) X(File) X(Status)
#define TO_OBJECT(X) X(Datatype, MPI_Datatype) X(Request, MPI_Request) X(Prequest, MPI_Request) \
    X(Grequest, MPI_Request) X(Message, MPI_Message) X(Op, MPI_Op) X(Group, MPI_Group) \
    X(Info, MPI_Info) X(Errhandler, MPI_Errhandler) X(Session, MPI_Session) X(Comm, MPI_Comm) \
    X(Win, MPI_Win) X(File, MPI_File) X(Status, MPI_Status *)

static void *
to_address(PyObject *function, PyObject *object)
{
    PyObject *number = PyObject_CallOneArg(function, object);
    if (number == NULL)
        return NULL;
    void *address = PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    return address;
}

static PyObject *
to_object(PyObject *function, uintptr_t handle)
{
    return PyObject_CallFunction(function, "K", (unsigned long long)handle);
}

#define DEFINE_TO_HANDLE(name) \
    static PyObject *address_of_##name; \
    static void *get_##name(PyObject *object) { return to_address(address_of_##name, object); }
#define DEFINE_TO_OBJECT(name, type) \
    static PyObject *object_of_##name; \
    static PyObject *new_##name(uintptr_t handle) { return to_object(object_of_##name, handle); }
TO_HANDLE(DEFINE_TO_HANDLE)
TO_OBJECT(DEFINE_TO_OBJECT)

#define ROW_TO_HANDLE(name) \
    {"PyMPI" #name "_Get", "MPI_" #name " *(PyObject *)", (void *)get_##name, &address_of_##name},
#define ROW_TO_OBJECT(name, type) \
    {"PyMPI" #name "_New", "PyObject *(" #type ")", (void *)new_##name, &object_of_##name},
static const struct {
    const char *name, *signature;
    void *code;
    PyObject **function;
} table[] = {TO_HANDLE(ROW_TO_HANDLE) TO_OBJECT(ROW_TO_OBJECT)};

/* capsule(name, function): the capsule of a function of the interface, which calls this function. */
static PyObject *
capsule(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *function;
    if (!PyArg_ParseTuple(args, "sO", &name, &function))
        return NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
        if (strcmp(table[i].name, name))
            continue;
        Py_XSETREF(*table[i].function, Py_NewRef(function));
        return PyCapsule_New(table[i].code, table[i].signature, NULL);
    }
    return PyErr_Format(PyExc_KeyError, "mpi4py has no function %s", name);
}

static PyMethodDef methods[] = {{"capsule", capsule, METH_VARARGS, NULL}, {NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "conversions", NULL, -1, methods};

PyMODINIT_FUNC
PyInit_conversions(void)
{
    return PyModule_Create(&definition);
}
