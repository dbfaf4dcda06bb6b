/* Views of the contiguous memory of a message, made with one look at the buffer.

   A compiled Python function asks a memoryview for each of its properties, as an object of its own,
   and needs a second view of bytes: this takes four times as long. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

static PyObject *bytes_format; /* "B" */

static int has(PyObject *view, int flag) { return ((PyMemoryViewObject *)view)->flags & flag; }

static PyObject *none(PyObject *view)
{
    Py_XDECREF(view);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)
            && !PyErr_ExceptionMatches(PyExc_BufferError))
            return NULL;
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}

/* The view, which nothing else refers to, as one of bytes: what its method `cast` returns. */
static PyObject *as_bytes(PyObject *view)
{
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(view);
#if PY_VERSION_HEX < 0x030D0000
    if (buffer->ndim > 0 && buffer->len > 0 && has(view, _Py_MEMORYVIEW_C)) {
        buffer->format = "B";
        buffer->itemsize = 1;
        buffer->ndim = 1;
        buffer->shape[0] = buffer->len;
        buffer->strides[0] = 1;
        buffer->suboffsets = NULL;
        ((PyMemoryViewObject *)view)->flags |= _Py_MEMORYVIEW_C | _Py_MEMORYVIEW_FORTRAN;
        return view;
    }
#endif
    PyObject *made = PyObject_CallMethod(view, "cast", "O", bytes_format);
    Py_DECREF(view);
    return made;
}

PyDoc_STRVAR(flat_doc,
"flat(spec, writable, formats): a view of the bytes of contiguous memory, and what `formats` has\n"
"for its format; None if there is none of both, or if it must be writable and is not.");

static PyObject *flat(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyDict_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "flat takes memory, a bool and a dictionary");
        return NULL;
    }
    PyObject *view = PyMemoryView_FromObject(args[0]);
    if (view == NULL)
        return none(NULL);
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(view);
    const char *format = buffer->format == NULL ? "B" : buffer->format;
    if (buffer->readonly && args[1] == Py_True)
        return none(view);
    PyObject *key = PyUnicode_FromString(format);
    if (key == NULL)
        return none(view);
    PyObject *entry = PyDict_GetItemWithError(args[2], key);
    Py_DECREF(key);
    if (entry == NULL)
        return none(view);
    if (strcmp(format, "B") != 0 || buffer->ndim != 1 || !has(view, _Py_MEMORYVIEW_C)) {
        view = as_bytes(view);
        if (view == NULL)
            return none(NULL);
    }
    PyObject *found = PyTuple_Pack(2, view, entry);
    Py_DECREF(view);
    return found;
}

static int is_flat(PyObject *view)
{
    if (!PyMemoryView_Check(view))
        return 0;
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(view);
    return !has(view, _Py_MEMORYVIEW_RELEASED) && has(view, _Py_MEMORYVIEW_C) && buffer->ndim == 1
           && buffer->format != NULL && strcmp(buffer->format, "B") == 0;
}

static PyObject *copy(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "copy takes two views");
        return NULL;
    }
    if (!is_flat(args[0]) || !is_flat(args[1]))
        Py_RETURN_FALSE;
    Py_buffer *source = PyMemoryView_GET_BUFFER(args[0]);
    Py_buffer *target = PyMemoryView_GET_BUFFER(args[1]);
    if (source->len != target->len || target->readonly)
        Py_RETURN_FALSE;
    memmove(target->buf, source->buf, (size_t)source->len);
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"flat", (PyCFunction)(void (*)(void))flat, METH_FASTCALL, flat_doc},
    {"copy", (PyCFunction)(void (*)(void))copy, METH_FASTCALL,
     "copy(source, target): copy between two views of equally many bytes; False if they are not."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "flat_views", "Views of the contiguous memory of a message.", -1,
    methods,
};

PyMODINIT_FUNC PyInit_flat_views(void)
{
    if (bytes_format == NULL && (bytes_format = PyUnicode_FromString("B")) == NULL)
        return NULL;
    return PyModule_Create(&definition);
}
