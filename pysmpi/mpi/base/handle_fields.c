/* What C code that knows the objects of mpi4py reads in them: the integer of a handle, and flags. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    PyObject_HEAD
    unsigned int number; /* `ob_mpi` of mpi4py; a file's is of 64 bits, the flags are its upper half */
    unsigned int flags;
} HandleFields;

static PyTypeObject HandleFieldsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pysmpi.mpi.base.handle_fields.HandleFields",
    .tp_basicsize = sizeof(HandleFields),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
};

/* write_number(handle, number): store the integer that C code finds. */
static PyObject *
write_number(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyObject_TypeCheck(args[0], &HandleFieldsType)) {
        PyErr_SetString(PyExc_TypeError, "expected a handle and an integer");
        return NULL;
    }
    unsigned long number = PyLong_AsUnsignedLongMask(args[1]);
    if (PyErr_Occurred())
        return NULL;
    ((HandleFields *)args[0])->number = (unsigned int)number;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"write_number", (PyCFunction)(void (*)(void))write_number, METH_FASTCALL, NULL},
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
