/* The base of classes whose instances export a buffer: that of their attribute `_exporter`.

   Only C can fill the buffer slot of a type in all versions of Python. `__buffer__`, from 3.12 on,
   puts a wrapper between the buffer and its exporter, and cannot export one without an owner. */

#include <Python.h>

static PyObject *attribute;

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *exporter = PyObject_GetAttr(self, attribute);
    int failed;
    if (exporter == NULL) {
        view->obj = NULL;
        return -1;
    }
    if (exporter == Py_None)
        failed = PyBuffer_FillInfo(view, NULL, NULL, 0, 0, flags);
    else
        failed = PyObject_GetBuffer(exporter, view, flags);
    Py_DECREF(exporter);
    return failed;
}

static PyType_Slot slots[] = {
    {Py_bf_getbuffer, get_buffer},
    {Py_tp_doc, "A class whose instances export the buffer of their attribute `_exporter`.\n\n"
                "None is an empty buffer without an owner."},
    {0, NULL},
};

static PyType_Spec specification = {
    .name = "pysmpi.mpi.base.exporter.Exporter",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

static PyMethodDef methods[] = {{NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "exporter", "The base of classes that export a buffer.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_exporter(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyObject *type = PyType_FromSpec(&specification);
    attribute = PyUnicode_InternFromString("_exporter");
    if (module == NULL || type == NULL || attribute == NULL
        || PyModule_AddObjectRef(module, "Exporter", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(module);
        return NULL;
    }
    Py_DECREF(type);
    return module;
}
