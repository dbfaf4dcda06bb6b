/* What C code that knows the objects of mpi4py reads in them: the handle in C, and flags. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    PyObject_HEAD
    /* `ob_mpi` of mpi4py: of 64 bits if handles are pointers; of 32 bits, with flags behind it, if they
       are integers, except for files. */
    unsigned long long number;
} HandleFields;

static PyTypeObject HandleFieldsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pysmpi.mpi.base.handle_fields.HandleFields",
    .tp_basicsize = sizeof(HandleFields),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
};

/* write_number(handle, number): store the handle that C code reads. */
static PyObject *
write_number(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyObject_TypeCheck(args[0], &HandleFieldsType)) {
        PyErr_SetString(PyExc_TypeError, "expected a handle and an integer");
        return NULL;
    }
    unsigned long long number = PyLong_AsUnsignedLongLongMask(args[1]);
    if (PyErr_Occurred())
        return NULL;
    ((HandleFields *)args[0])->number = number;
    Py_RETURN_NONE;
}

/* read_number(handle): what C code has stored. */
static PyObject *
read_number(PyObject *module, PyObject *handle)
{
    if (!PyObject_TypeCheck(handle, &HandleFieldsType)) {
        PyErr_SetString(PyExc_TypeError, "expected a handle");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(((HandleFields *)handle)->number);
}

static PyMethodDef methods[] = {
    {"write_number", (PyCFunction)(void (*)(void))write_number, METH_FASTCALL, NULL},
    {"read_number", read_number, METH_O, NULL},
    {NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "handle_fields", NULL, -1, methods};

PyMODINIT_FUNC
PyInit_handle_fields(void)
{
    PyObject *made;
    HandleFieldsType.tp_new = PyBaseObject_Type.tp_new;
    if (PyType_Ready(&HandleFieldsType) < 0 || (made = PyModule_Create(&module)) == NULL)
        return NULL;
    if (PyModule_AddObjectRef(made, "HandleFields", (PyObject *)&HandleFieldsType) < 0)
        Py_CLEAR(made);
    return made;
}
