/* A quick test whether dictionaries have changed.

   CPython before 3.12 gives every dictionary a number that changes whenever the dictionary does (PEP
   509), and that Python code cannot read. Later, CPython calls a watcher of the dictionary instead,
   which counts here. Both take a few instructions; to compare the values of the names that are
   exchanged at a switch of ranks takes hundreds. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef struct {
    PyObject *dictionary;
    uint64_t noted;
    uint64_t events; /* that a watcher has counted */
} Entry;

typedef struct Versions {
    PyObject_HEAD
    Py_ssize_t count;
    Entry *entries;
    struct Versions *previous, *next;
} Versions;

/* All objects with entries, so that a watcher finds the entries of a dictionary. */
static Versions *all;

#if PY_VERSION_HEX < 0x030C0000
static uint64_t version_of(Entry *entry)
{
    return ((PyDictObject *)entry->dictionary)->ma_version_tag;
}

static int begin_watching(void)
{
    return 0;
}

static int watch(PyObject *dictionary)
{
    return 0;
}

static void unwatch(PyObject *dictionary)
{
}
#else
static int watcher = -1;

static uint64_t version_of(Entry *entry)
{
    /* CPython 3.13 does not tell of an assignment to an attribute whose value is in the object. */
    if (((PyDictObject *)entry->dictionary)->ma_values != NULL)
        entry->events++;
    return entry->events;
}

static int count_event(PyDict_WatchEvent event, PyObject *dictionary, PyObject *key, PyObject *value)
{
    for (Versions *each = all; each != NULL; each = each->next)
        for (Py_ssize_t i = 0; i < each->count; i++)
            if (each->entries[i].dictionary == dictionary)
                each->entries[i].events++;
    return 0;
}

static int begin_watching(void)
{
    if (watcher < 0)
        watcher = PyDict_AddWatcher(count_event);
    return watcher < 0 ? -1 : 0;
}

static int watch(PyObject *dictionary)
{
    return PyDict_Watch(watcher, dictionary);
}

/* Stop watching a dictionary, unless another entry needs it. */
static void unwatch(PyObject *dictionary)
{
    for (Versions *each = all; each != NULL; each = each->next)
        for (Py_ssize_t i = 0; i < each->count; i++)
            if (each->entries[i].dictionary == dictionary)
                return;
    if (PyDict_Unwatch(watcher, dictionary) < 0)
        PyErr_WriteUnraisable(dictionary);
}
#endif

static PyObject *add(Versions *self, PyObject *dictionary)
{
    if (!PyDict_Check(dictionary)) {
        PyErr_Format(PyExc_TypeError, "expected a dictionary, got %s", Py_TYPE(dictionary)->tp_name);
        return NULL;
    }
    Entry *entries = PyMem_Resize(self->entries, Entry, self->count + 1);
    if (entries == NULL)
        return PyErr_NoMemory();
    self->entries = entries;
    if (watch(dictionary) < 0)
        return NULL;
    /* No version is 0: the dictionary has changed since before it was added. */
    entries[self->count] = (Entry){Py_NewRef(dictionary), 0, 1};
    if (self->count++ == 0) {
        self->next = all;
        if (all != NULL)
            all->previous = self;
        all = self;
    }
    return PyLong_FromSsize_t(self->count - 1);
}

/* The entry with a number, NULL with an error if there is none. */
static Entry *entry_of(Versions *self, PyObject *number)
{
    Py_ssize_t i = PyLong_AsSsize_t(number);
    if (i >= 0 && i < self->count)
        return &self->entries[i];
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_IndexError, "no dictionary %zd", i);
    return NULL;
}

static PyObject *next_changed(Versions *self, PyObject *first)
{
    Py_ssize_t i = PyLong_AsSsize_t(first);
    if (i < 0) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_IndexError, "no dictionary %zd", i);
        return NULL;
    }
    for (; i < self->count; i++) {
        uint64_t version = version_of(&self->entries[i]);
        if (version != self->entries[i].noted) {
            self->entries[i].noted = version;
            return PyLong_FromSsize_t(i);
        }
    }
    return PyLong_FromLong(-1);
}

static PyObject *differs(Versions *self, PyObject *number)
{
    Entry *entry = entry_of(self, number);
    return entry == NULL ? NULL : PyBool_FromLong(version_of(entry) != entry->noted);
}

static PyObject *note(Versions *self, PyObject *number)
{
    Entry *entry = entry_of(self, number);
    if (entry == NULL)
        return NULL;
    entry->noted = version_of(entry);
    Py_RETURN_NONE;
}

static int traverse(Versions *self, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < self->count; i++)
        Py_VISIT(self->entries[i].dictionary);
    return 0;
}

static int clear(Versions *self)
{
    while (self->count > 0) {
        PyObject *dictionary = self->entries[--self->count].dictionary;
        if (self->count == 0) {
            if (self->previous != NULL)
                self->previous->next = self->next;
            else
                all = self->next;
            if (self->next != NULL)
                self->next->previous = self->previous;
            self->previous = self->next = NULL;
        }
        unwatch(dictionary);
        Py_DECREF(dictionary);
    }
    return 0;
}

static void destroy(Versions *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    PyMem_Free(self->entries);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef methods[] = {
    {"add", (PyCFunction)add, METH_O,
     "add(dictionary): watch a dictionary; returns its number. It counts as changed."},
    {"next_changed", (PyCFunction)next_changed, METH_O,
     "next_changed(first): the first dictionary from number `first` on that has changed.\n\n"
     "Its version is noted. The number is -1 if none has changed."},
    {"differs", (PyCFunction)differs, METH_O,
     "differs(number): whether a dictionary has changed since its version was noted."},
    {"note", (PyCFunction)note, METH_O, "note(number): note the version of a dictionary."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject versions_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pysmpi.isolation.dict_versions.Versions",
    .tp_doc = "Numbers of dictionaries that have changed since their versions were noted.",
    .tp_basicsize = sizeof(Versions),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_methods = methods,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)destroy,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "dict_versions", "A quick test whether dictionaries have changed.", -1,
    NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_dict_versions(void)
{
    if (begin_watching() < 0 || PyType_Ready(&versions_type) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddObjectRef(module, "Versions", (PyObject *)&versions_type) < 0)
        Py_CLEAR(module);
    return module;
}
