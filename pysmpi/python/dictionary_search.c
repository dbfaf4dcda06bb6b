/* Where many dictionaries hold some objects, and whether two hold the same ones.

   A run looks through the names of all loaded modules several times. Python takes 50 ns for each of
   the values, and a process with large packages has hundreds of thousands of them. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

static PyObject *name_key, *module_key; /* "__name__", "__module__" */

/* A set of objects, by identity. */
typedef struct {
    PyObject **slots;
    size_t mask;
} Objects;

static size_t slot_of(PyObject *object)
{
    return (size_t)(((uintptr_t)object >> 4) * (uintptr_t)0x9E3779B1u);
}

static int contains(const Objects *objects, PyObject *object)
{
    for (size_t i = slot_of(object) & objects->mask;; i = (i + 1) & objects->mask) {
        if (objects->slots[i] == object)
            return 1;
        if (objects->slots[i] == NULL)
            return 0;
    }
}

static int fill(Objects *objects, PyObject *list)
{
    size_t size = 8;
    while (size < 4 * (size_t)PyList_GET_SIZE(list))
        size *= 2;
    objects->mask = size - 1;
    objects->slots = PyMem_Calloc(size, sizeof *objects->slots);
    if (objects->slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(list); n++) {
        PyObject *object = PyList_GET_ITEM(list, n);
        size_t i = slot_of(object) & objects->mask;
        while (objects->slots[i] != NULL && objects->slots[i] != object)
            i = (i + 1) & objects->mask;
        objects->slots[i] = object;
    }
    return 0;
}

/* A new reference to the dictionary of a class. */
static PyObject *dictionary_of(PyTypeObject *class)
{
#if PY_VERSION_HEX < 0x030C0000
    return Py_XNewRef(class->tp_dict);
#else
    return PyType_GetDict(class);
#endif
}

/* Add the entries of a dictionary; `holder` is the dictionary or its class. A new object can start
   the collector, which can run any code: what is used afterwards has references. */
static int search(PyObject *result, PyObject *holder, PyObject *dictionary, const Objects *objects,
                  PyObject *kind)
{
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(dictionary, &position, &key, &value)) {
        if ((PyObject *)Py_TYPE(value) != kind && !contains(objects, value))
            continue;
        Py_INCREF(key);
        Py_INCREF(value);
        PyObject *entry = PyTuple_Pack(3, holder, key, value);
        Py_DECREF(key);
        Py_DECREF(value);
        if (entry == NULL)
            return -1;
        int failed = PyList_Append(result, entry);
        Py_DECREF(entry);
        if (failed)
            return -1;
    }
    return 0;
}

/* Search the dictionaries of the classes that the module with these names has defined. */
static int search_classes(PyObject *result, PyObject *names, const Objects *objects, PyObject *kind)
{
    PyObject *module = PyDict_GetItemWithError(names, name_key);
    if (module == NULL || !PyUnicode_Check(module))
        return 0;
    Py_INCREF(module);
    int failed = 0;
    Py_ssize_t position = 0;
    PyObject *key, *class;
    while (!failed && PyDict_Next(names, &position, &key, &class)) {
        if (!Py_IS_TYPE(class, &PyType_Type))
            continue;
        Py_INCREF(class);
        PyObject *dictionary = dictionary_of((PyTypeObject *)class);
        if (dictionary != NULL) {
            PyObject *home = PyDict_GetItemWithError(dictionary, module_key);
            if (home != NULL && PyUnicode_Check(home) && PyUnicode_Compare(home, module) == 0)
                failed = search(result, class, dictionary, objects, kind);
            Py_DECREF(dictionary);
        }
        Py_DECREF(class);
    }
    Py_DECREF(module);
    return failed;
}

static PyObject *find(PyObject *self, PyObject *args)
{
    PyObject *spaces, *list, *kind = Py_None;
    if (!PyArg_ParseTuple(args, "O!O!|O:find", &PyList_Type, &spaces, &PyList_Type, &list, &kind))
        return NULL;
    Objects objects;
    if (fill(&objects, list) < 0)
        return NULL;
    PyObject *result = PyList_New(0);
    for (Py_ssize_t i = 0; result != NULL && i < PyList_GET_SIZE(spaces); i++) {
        PyObject *space = Py_NewRef(PyList_GET_ITEM(spaces, i));
        int failed = 0;
        if (PyDict_Check(space)) {
            failed = search(result, space, space, &objects, kind);
            if (!failed && kind != Py_None)
                failed = search_classes(result, space, &objects, kind);
        } else {
            PyErr_Format(PyExc_TypeError, "expected dictionaries, got %s", Py_TYPE(space)->tp_name);
            failed = -1;
        }
        Py_DECREF(space);
        if (failed)
            Py_CLEAR(result);
    }
    PyMem_Free(objects.slots);
    return result;
}

static PyObject *same(PyObject *self, PyObject *args)
{
    PyObject *now, *before;
    if (!PyArg_ParseTuple(args, "OO!:same", &now, &PyDict_Type, &before))
        return NULL;
    PyObject *dictionary = PyType_Check(now) ? dictionary_of((PyTypeObject *)now) : Py_NewRef(now);
    if (dictionary == NULL || !PyDict_Check(dictionary)) {
        Py_XDECREF(dictionary);
        PyErr_Format(PyExc_TypeError, "expected a dictionary or a class, got %s",
                     Py_TYPE(now)->tp_name);
        return NULL;
    }
    int equal = PyDict_GET_SIZE(dictionary) == PyDict_GET_SIZE(before);
    Py_ssize_t here = 0, there = 0;
    PyObject *key, *value, *old_key, *old_value;
    while (equal && PyDict_Next(dictionary, &here, &key, &value))
        equal = PyDict_Next(before, &there, &old_key, &old_value) && key == old_key
                && value == old_value;
    Py_DECREF(dictionary);
    return PyBool_FromLong(equal);
}

static PyMethodDef methods[] = {
    {"find", find, METH_VARARGS,
     "find(spaces, objects, kind=None): the entries of dictionaries that hold one of the objects, or\n"
     "an object of class `kind`; with `kind`, also those of the classes that these modules define."},
    {"same", same, METH_VARARGS,
     "same(now, before): whether a dictionary, or that of a class, has the objects of another."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "dictionary_search", "Where dictionaries hold some objects.", 0, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_dictionary_search(void)
{
    if (name_key == NULL) {
        name_key = PyUnicode_InternFromString("__name__");
        module_key = PyUnicode_InternFromString("__module__");
    }
    return name_key == NULL || module_key == NULL ? NULL : PyModule_Create(&definition);
}
