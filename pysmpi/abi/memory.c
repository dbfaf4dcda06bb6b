/* Reading and writing the memory of programs. */

#include "process.h"

/* Whether there can be no such elements, for which an error is set. */
static int
refused(const void *address, Py_ssize_t number)
{
    if (number < 0)
        PyErr_Format(PyExc_ValueError, "the number of elements is %zd", number);
    else if (number > 0 && address == NULL)
        PyErr_SetString(PyExc_ValueError, "the address of an argument is NULL");
    else
        return 0;
    return 1;
}

static PyObject *
view(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    void *address = PyLong_AsVoidPtr(args[0]);
    Py_ssize_t size = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred() || refused(address, size))
        return NULL;
    return PyMemoryView_FromMemory(address, size, PyBUF_WRITE);
}

/* The bytes of an element without gaps of a datatype's record, which is released; -1 if it is not
   committed, or has gaps. */
static Py_ssize_t
bytes_of(PyObject *record)
{
    static PyObject *element, *dense, *size, *predefined;
    static PyObject *last; /* programs use few datatypes at a time */
    static Py_ssize_t bytes_of_last;
    if (size == NULL) {
        element = PyUnicode_InternFromString("element");
        dense = PyUnicode_InternFromString("dense");
        size = PyUnicode_InternFromString("size");
        predefined = PyUnicode_InternFromString("predefined");
    }
    if (record == NULL || record == last) {
        Py_XDECREF(record);
        return record == NULL ? -1 : bytes_of_last;
    }
    Py_ssize_t bytes = -1;
    PyObject *layout = PyObject_GetAttr(record, element);
    PyObject *whole = layout == NULL ? NULL : PyObject_GetAttr(layout, dense);
    if (whole == Py_True) {
        PyObject *value = PyObject_GetAttr(layout, size);
        bytes = value == NULL ? -1 : PyLong_AsSsize_t(value);
        Py_XDECREF(value);
    }
    Py_XDECREF(layout);
    Py_XDECREF(whole);
    PyObject *stays = bytes > 0 ? PyObject_GetAttr(record, predefined) : NULL;
    if (stays == Py_True) { /* those of programs end with them */
        Py_XSETREF(last, Py_NewRef(record));
        bytes_of_last = bytes;
    }
    Py_XDECREF(stays);
    Py_DECREF(record);
    return bytes;
}

/* message(address, count, datatype): a list of memory, count and datatype if these are elements of a
   committed datatype without gaps; else None. */
static PyObject *
message(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    static PyObject *impl;
    if (impl == NULL)
        impl = PyUnicode_InternFromString("_impl");
    char *address = PyLong_AsVoidPtr(args[0]);
    const Py_ssize_t number = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t bytes = -1;
    if (number > 0 && address != NULL && address != (char *)-1) { /* no MPI_IN_PLACE */
        bytes = bytes_of(PyObject_GetAttr(args[2], impl));
        if (bytes < 0)
            PyErr_Clear();
    }
    if (bytes <= 0 || number > PY_SSIZE_T_MAX / bytes)
        Py_RETURN_NONE;
    PyObject *view = PyMemoryView_FromMemory(address, bytes * number, PyBUF_WRITE);
    PyObject *result = view == NULL ? NULL : PyList_New(3);
    if (result == NULL) {
        Py_XDECREF(view);
        return NULL;
    }
    PyList_SET_ITEM(result, 0, view);
    PyList_SET_ITEM(result, 1, Py_NewRef(args[1]));
    PyList_SET_ITEM(result, 2, Py_NewRef(args[2]));
    return result;
}

static PyObject *
write_integer(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    void *address = PyLong_AsVoidPtr(args[0]);
    long long value = (long long)PyLong_AsUnsignedLongLongMask(args[1]);
    long size = count > 2 ? PyLong_AsLong(args[2]) : 4;
    if (PyErr_Occurred())
        return NULL;
    if (running != NULL && running->jumping) /* the memory may be in use again */
        Py_RETURN_NONE;
    if (refused(address, 1))
        return NULL;
    if (size == 4)
        *(int32_t *)address = (int32_t)value;
    else
        *(int64_t *)address = value;
    Py_RETURN_NONE;
}

static PyObject *
write_integers(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    char *address = PyLong_AsVoidPtr(args[0]);
    PyObject *values = PySequence_Fast(args[1], "expected a sequence");
    long size = count > 2 ? PyLong_AsLong(args[2]) : 4;
    if (values == NULL)
        return NULL;
    Py_ssize_t number = running != NULL && running->jumping ? 0 : PySequence_Fast_GET_SIZE(values);
    if (refused(address, number))
        number = 0;
    for (Py_ssize_t i = 0; i < number; i++) {
        long long value = (long long)PyLong_AsUnsignedLongLongMask(PySequence_Fast_GET_ITEM(values, i));
        if (size == 4)
            ((int32_t *)address)[i] = (int32_t)value;
        else
            ((int64_t *)address)[i] = value;
    }
    Py_DECREF(values);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
read_integers(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    const char *address = PyLong_AsVoidPtr(args[0]);
    Py_ssize_t number = PyLong_AsSsize_t(args[1]);
    long size = count > 2 ? PyLong_AsLong(args[2]) : 4;
    if (PyErr_Occurred() || refused(address, number))
        return NULL;
    PyObject *made = PyList_New(number);
    for (Py_ssize_t i = 0; made != NULL && i < number; i++) {
        long long value = size == 4 ? ((const int32_t *)address)[i] : ((const int64_t *)address)[i];
        PyObject *item = PyLong_FromLongLong(value);
        if (item == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, i, item);
    }
    return made;
}

static PyObject *
read_handles(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    const uint32_t *address = PyLong_AsVoidPtr(args[0]);
    Py_ssize_t number = PyLong_AsSsize_t(args[1]);
    long kind = PyLong_AsLong(args[2]);
    if (PyErr_Occurred() || refused(address, number))
        return NULL;
    PyObject *process = PyObject_CallMethod(missing, "process", NULL);
    if (process == NULL)
        return NULL;
    PyObject *made = PyList_New(number);
    for (Py_ssize_t i = 0; made != NULL && i < number; i++) {
        PyObject *item = argument((Process *)process, (char)kind, address[i]);
        if (item == NULL && !PyErr_Occurred())
            item = PyObject_CallMethod(missing, "fail", "CI", (int)kind, address[i]);
        if (item == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, i, item);
    }
    Py_DECREF(process);
    return made;
}

static PyObject *
read_text(PyObject *module, PyObject *value)
{
    const char *address = PyLong_AsVoidPtr(value);
    if (PyErr_Occurred())
        return NULL;
    return PyBytes_FromString(address == NULL ? "" : address);
}

PyMethodDef memory_methods[] = {
    {"view", (PyCFunction)(void (*)(void))view, METH_FASTCALL, NULL},
    {"message", (PyCFunction)(void (*)(void))message, METH_FASTCALL, NULL},
    {"write_integer", (PyCFunction)(void (*)(void))write_integer, METH_FASTCALL, NULL},
    {"write_integers", (PyCFunction)(void (*)(void))write_integers, METH_FASTCALL, NULL},
    {"read_integers", (PyCFunction)(void (*)(void))read_integers, METH_FASTCALL, NULL},
    {"read_handles", (PyCFunction)(void (*)(void))read_handles, METH_FASTCALL, NULL},
    {"read_text", read_text, METH_O, NULL},
    {NULL},
};
