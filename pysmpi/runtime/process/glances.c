/* Quick exchanges of the state of ranks, most of which does not change between two switches.

   CPython gives each dictionary a number that changes whenever the dictionary does (PEP 509, until
   3.12). Python reads it through a view, which takes as long as ten comparisons of names. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef struct {
    PyObject_HEAD
    PyObject *spaces;   /* a list of dictionaries; the first is the table of modules */
    uint64_t *seen;     /* their numbers when they were noted */
    PyObject *lists;    /* a list of lists */
    PyObject *contents; /* their contents, a list of tuples */
    /* Lists of an Exchange, which says what they hold. */
    PyObject *homes, *names, *now, *numbers;
    PyObject *missing;
} Glance;

static uint64_t version_of(PyObject *space)
{
#if PY_VERSION_HEX < 0x030D0000 /* other interpreters have no glances, see versions.py */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return ((PyDictObject *)space)->ma_version_tag;
#pragma GCC diagnostic pop
#else
    return 0;
#endif
}

static int holds(PyObject *list, PyObject *content)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    if (count != PyTuple_GET_SIZE(content))
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyList_GET_ITEM(list, i) != PyTuple_GET_ITEM(content, i))
            return 0;
    return 1;
}

static PyObject *glance_watch(Glance *self, PyObject *space)
{
    if (!PyDict_Check(space)) {
        PyErr_SetString(PyExc_TypeError, "a glance watches dictionaries");
        return NULL;
    }
    size_t count = (size_t)PyList_GET_SIZE(self->spaces) + 1;
    uint64_t *seen = PyMem_Realloc(self->seen, count * sizeof(uint64_t));
    if (seen == NULL)
        return PyErr_NoMemory();
    self->seen = seen;
    seen[count - 1] = 0; /* no dictionary has this number */
    if (PyList_Append(self->spaces, space) < 0)
        return NULL;
    return PyLong_FromSize_t(count - 1);
}

static PyObject *glance_watch_lists(Glance *self, PyObject *lists)
{
    if (!PyList_Check(lists)) {
        PyErr_SetString(PyExc_TypeError, "a glance watches a list of lists");
        return NULL;
    }
    PyObject *contents = PyList_New(0);
    if (contents == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lists); i++) {
        PyObject *list = PyList_GET_ITEM(lists, i);
        PyObject *content = PyList_Check(list) ? PyList_AsTuple(list) : NULL;
        if (content == NULL || PyList_Append(contents, content) < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a glance watches a list of lists");
            Py_XDECREF(content);
            Py_DECREF(contents);
            return NULL;
        }
        Py_DECREF(content);
    }
    Py_INCREF(lists);
    Py_XSETREF(self->lists, lists);
    Py_XSETREF(self->contents, contents);
    Py_RETURN_NONE;
}

static PyObject *glance_changed(Glance *self, PyObject *number)
{
    Py_ssize_t i = PyLong_AsSsize_t(number);
    if (i == -1 && PyErr_Occurred())
        return NULL;
    if (i < 0 || i >= PyList_GET_SIZE(self->spaces)) {
        PyErr_SetString(PyExc_IndexError, "no such dictionary");
        return NULL;
    }
    return PyBool_FromLong(version_of(PyList_GET_ITEM(self->spaces, i)) != self->seen[i]);
}

static int is_same(Glance *self)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(self->spaces); i++)
        if (version_of(PyList_GET_ITEM(self->spaces, i)) != self->seen[i])
            return 0;
    if (self->lists != NULL)
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(self->contents); i++)
            if (!holds(PyList_GET_ITEM(self->lists, i), PyList_GET_ITEM(self->contents, i)))
                return 0;
    return 1;
}

static PyObject *glance_same(Glance *self, PyObject *unused)
{
    return PyBool_FromLong(is_same(self));
}

static PyObject *glance_note(Glance *self, PyObject *unused)
{
    Py_ssize_t count = PyList_GET_SIZE(self->spaces);
    for (Py_ssize_t i = 0; i < count; i++)
        self->seen[i] = version_of(PyList_GET_ITEM(self->spaces, i));
    return PyLong_FromUnsignedLongLong(count > 0 ? self->seen[0] : 0);
}

static int same_name(PyObject *one, PyObject *other)
{
    return one == other || (PyUnicode_Check(one) && PyUnicode_Check(other)
                            && PyUnicode_Compare(one, other) == 0);
}

/* Whether two dictionaries have the same names, in the same order, and the second all values. */
static int has_all(PyObject *last, PyObject *incoming, PyObject *missing)
{
    PyObject *before, *name, *value;
    Py_ssize_t i = 0, j = 0;
    if (PyDict_GET_SIZE(last) != PyDict_GET_SIZE(incoming))
        return 0;
    while (PyDict_Next(incoming, &j, &name, &value))
        if (value == missing || !PyDict_Next(last, &i, &before, NULL) || !same_name(before, name))
            return 0;
    return 1;
}

/* The number of a name that is to be put; -1 if there is none or if it would be added. */
static Py_ssize_t number_of(Glance *self, Py_ssize_t i, PyObject *value)
{
    Py_ssize_t number = PyLong_AsSsize_t(PyList_GET_ITEM(self->numbers, i));
    if (number < 0 || number >= PyList_GET_SIZE(self->now) || value == self->missing
        || number >= PyList_GET_SIZE(self->homes) || number >= PyList_GET_SIZE(self->names)
        || PyList_GET_ITEM(self->now, number) == self->missing)
        return -1;
    return number;
}

PyDoc_STRVAR(switch_doc,
"switch(last, incoming, values): put a state in place of another if nothing has changed.\n\n"
"`last` and `incoming` are their modules, `values` those of the names that are always separate.\n"
"Returns the number of the table; -1, without an effect, if more is to be done.");

static PyObject *glance_switch(Glance *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyDict_Check(args[0]) || !PyDict_Check(args[1]) || !PyList_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "switch takes two dictionaries and a list");
        return NULL;
    }
    PyObject *table = PyList_GET_ITEM(self->spaces, 0), *values = args[2], *name, *value;
    Py_ssize_t separate = PyList_GET_SIZE(self->numbers), place = 0;
    if (!is_same(self) || PyList_GET_SIZE(values) != separate
        || !has_all(args[0], args[1], self->missing))
        return PyLong_FromLong(-1);
    for (Py_ssize_t i = 0; i < separate; i++)
        if (number_of(self, i, PyList_GET_ITEM(values, i)) < 0)
            return PyErr_Occurred() ? NULL : PyLong_FromLong(-1);
    for (Py_ssize_t i = 0; i < separate; i++) {
        value = PyList_GET_ITEM(values, i);
        Py_ssize_t number = number_of(self, i, value);
        if (PyList_GET_ITEM(self->now, number) != value) {
            PyObject *home = PyList_GET_ITEM(self->homes, number);
            if (PyObject_SetItem(home, PyList_GET_ITEM(self->names, number), value) < 0)
                return NULL;
            Py_INCREF(value);
            PyList_SetItem(self->now, number, value);
        }
    }
    while (PyDict_Next(args[1], &place, &name, &value))
        if (PyDict_SetItem(table, name, value) < 0)
            return NULL;
    return glance_note(self, NULL);
}

static PyObject *glance_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *table, *homes, *names, *now, *numbers, *missing;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O:Glance", &PyDict_Type, &table, &PyList_Type, &homes,
                          &PyList_Type, &names, &PyList_Type, &now, &PyList_Type, &numbers,
                          &missing))
        return NULL;
    Glance *self = (Glance *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->homes = Py_NewRef(homes);
    self->names = Py_NewRef(names);
    self->now = Py_NewRef(now);
    self->numbers = Py_NewRef(numbers);
    self->missing = Py_NewRef(missing);
    self->spaces = PyList_New(0);
    PyObject *first = self->spaces == NULL ? NULL : glance_watch(self, table);
    if (first == NULL)
        Py_CLEAR(self);
    Py_XDECREF(first);
    return (PyObject *)self;
}

static int glance_traverse(Glance *self, visitproc visit, void *arg)
{
    Py_VISIT(self->spaces);
    Py_VISIT(self->lists);
    Py_VISIT(self->contents);
    Py_VISIT(self->homes);
    Py_VISIT(self->names);
    Py_VISIT(self->now);
    Py_VISIT(self->numbers);
    Py_VISIT(self->missing);
    return 0;
}

static int glance_clear(Glance *self)
{
    Py_CLEAR(self->spaces);
    Py_CLEAR(self->lists);
    Py_CLEAR(self->contents);
    Py_CLEAR(self->homes);
    Py_CLEAR(self->names);
    Py_CLEAR(self->now);
    Py_CLEAR(self->numbers);
    Py_CLEAR(self->missing);
    return 0;
}

static void glance_dealloc(Glance *self)
{
    PyObject_GC_UnTrack(self);
    glance_clear(self);
    PyMem_Free(self->seen);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef glance_methods[] = {
    {"watch", (PyCFunction)glance_watch, METH_O, "watch(space): watch a dictionary; its number."},
    {"changed", (PyCFunction)glance_changed, METH_O,
     "changed(number): whether a dictionary has changed since `note`."},
    {"watch_lists", (PyCFunction)glance_watch_lists, METH_O,
     "watch_lists(lists): watch these lists, with their present contents, and no others."},
    {"same", (PyCFunction)glance_same, METH_NOARGS,
     "same(): whether no dictionary has changed since `note`, and no list since `watch_lists`."},
    {"note", (PyCFunction)glance_note, METH_NOARGS,
     "note(): note the dictionaries as they are; the number of the table."},
    {"switch", (PyCFunction)(void (*)(void))glance_switch, METH_FASTCALL, switch_doc},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject glance_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pysmpi.runtime.process.glances.Glance",
    .tp_doc = "Glance(table, homes, names, now, numbers, missing): the state of an Exchange.",
    .tp_basicsize = sizeof(Glance),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = glance_new,
    .tp_dealloc = (destructor)glance_dealloc,
    .tp_traverse = (traverseproc)glance_traverse,
    .tp_clear = (inquiry)glance_clear,
    .tp_methods = glance_methods,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "glances", "Quick looks at the state that is exchanged.", -1, NULL,
};

PyMODINIT_FUNC PyInit_glances(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddType(module, &glance_type) < 0)
        Py_CLEAR(module);
    return module;
}
