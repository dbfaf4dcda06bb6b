/* Assignments to attributes of modules and classes, seen where CPython executes them.

   `observe` replaces the slot `tp_setattro` of the types of modules and classes, and the slot
   wrappers `__setattr__` and `__delattr__` of these types, which hold the same function. An
   assignment to a module or class of a shared module is reported after it. CPython 3.13 has no such
   wrappers for modules, which inherit those of `object`; they are added. All functions are called
   with the interpreter's lock. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>

static PyObject *observer; /* called with the object, the name and the old value */
static PyObject *shared;   /* the shared modules, by name */
static PyObject *missing;  /* the old value of a new name */
static PyObject *dunder_name, *dunder_module;
static setattrofunc of_modules, of_classes;
static int reporting;
static const char *names_of_wrappers[] = {"__setattr__", "__delattr__"};
static int added[2]; /* wrappers of the type of modules */

/* The dictionary of a type (borrowed). CPython 3.12 keeps those of its own types in another place. */
static PyObject *dictionary_of(PyTypeObject *type)
{
#if PY_VERSION_HEX < 0x030C0000
    return type->tp_dict;
#else
    PyObject *dictionary = PyType_GetDict(type);
    Py_XDECREF(dictionary); /* the type holds it */
    return dictionary;
#endif
}

/* The names of an object, and the module to which it belongs (both borrowed). */
static PyObject *space_of(PyObject *self, PyObject **home)
{
    PyObject *space;
    if (PyType_Check(self)) {
        space = dictionary_of((PyTypeObject *)self);
        *home = space == NULL ? NULL : PyDict_GetItemWithError(space, dunder_module);
    } else {
        space = PyModule_GetDict(self);
        *home = space == NULL ? NULL : PyDict_GetItemWithError(space, dunder_name);
    }
    return space;
}

static int set(PyObject *self, PyObject *name, PyObject *value, setattrofunc real)
{
    PyObject *home = NULL, *space, *old, *owner, *answer;
    int status;
    if (observer == NULL || reporting)
        return real(self, name, value);
    space = space_of(self, &home);
    owner = home == NULL || !PyUnicode_Check(home) ? NULL : PyDict_GetItemWithError(shared, home);
    /* A program may make a module with the name of another one. */
    if (owner == NULL || (owner != self && !PyType_Check(self))) {
        PyErr_Clear();
        return real(self, name, value);
    }
    old = PyDict_GetItemWithError(space, name);
    if (old == NULL) {
        PyErr_Clear();
        old = missing;
    }
    Py_INCREF(old);
    status = real(self, name, value);
    if (status == 0) {
        reporting = 1;
        answer = PyObject_CallFunctionObjArgs(observer, self, name, old, NULL);
        reporting = 0;
        if (answer == NULL)
            status = -1;
        Py_XDECREF(answer);
    }
    Py_DECREF(old);
    return status;
}

static int set_in_module(PyObject *self, PyObject *name, PyObject *value)
{
    return set(self, name, value, of_modules);
}

static int set_in_class(PyObject *self, PyObject *name, PyObject *value)
{
    return set(self, name, value, of_classes);
}

/* Replace a slot in a type and in the types that have inherited it. */
static int replace(PyTypeObject *type, setattrofunc old, setattrofunc new)
{
    PyObject *inheriting, *wrapper, *space;
    if (type->tp_setattro != old)
        return 0;
    type->tp_setattro = new;
    space = dictionary_of(type);
    for (int i = 0; i < 2; i++) {
        wrapper = space ? PyDict_GetItemString(space, names_of_wrappers[i]) : NULL;
        if (wrapper != NULL && Py_TYPE(wrapper) == &PyWrapperDescr_Type
            && ((PyWrapperDescrObject *)wrapper)->d_wrapped == (void *)old)
            ((PyWrapperDescrObject *)wrapper)->d_wrapped = (void *)new;
    }
    inheriting = PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", type);
    if (inheriting == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inheriting); i++)
        if (replace((PyTypeObject *)PyList_GET_ITEM(inheriting, i), old, new) < 0) {
            Py_DECREF(inheriting);
            return -1;
        }
    Py_DECREF(inheriting);
    return 0;
}

/* Let modules of classes with a `__setattr__` of their own be seen, which calls that of modules. */
static int add_wrappers(void)
{
    PyObject *space = dictionary_of(&PyModule_Type), *inherited, *wrapper;
    for (int i = 0; i < 2; i++) {
        if (PyDict_GetItemString(space, names_of_wrappers[i]) != NULL)
            continue;
        inherited = PyDict_GetItemString(dictionary_of(&PyBaseObject_Type), names_of_wrappers[i]);
        if (inherited == NULL || Py_TYPE(inherited) != &PyWrapperDescr_Type)
            continue;
        wrapper = PyDescr_NewWrapper(&PyModule_Type, ((PyWrapperDescrObject *)inherited)->d_base,
                                     (void *)set_in_module);
        if (wrapper == NULL || PyDict_SetItemString(space, names_of_wrappers[i], wrapper) < 0) {
            Py_XDECREF(wrapper);
            return -1;
        }
        Py_DECREF(wrapper);
        added[i] = 1;
    }
    PyType_Modified(&PyModule_Type);
    return 0;
}

static int remove_wrappers(void)
{
    PyObject *space = dictionary_of(&PyModule_Type);
    for (int i = 0; i < 2; i++)
        if (added[i]) {
            added[i] = 0;
            if (PyDict_DelItemString(space, names_of_wrappers[i]) < 0)
                return -1;
        }
    PyType_Modified(&PyModule_Type);
    return 0;
}

PyDoc_STRVAR(observe_doc,
"observe(function, shared, missing): call a function after assignments in shared modules.\n\n"
"`shared` has the shared modules by name. The function is called with the module or class, the\n"
"name and its old value, which is `missing` for a new name. Its own assignments are not reported.");

static PyObject *observe(PyObject *module, PyObject *args)
{
    PyObject *function, *modules, *none;
    if (!PyArg_ParseTuple(args, "OO!O", &function, &PyDict_Type, &modules, &none))
        return NULL;
    if (observer != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "assignments are observed already");
        return NULL;
    }
    of_modules = PyModule_Type.tp_setattro;
    of_classes = PyType_Type.tp_setattro;
    observer = Py_NewRef(function);
    shared = Py_NewRef(modules);
    missing = Py_NewRef(none);
    if (replace(&PyModule_Type, of_modules, set_in_module) < 0
        || replace(&PyType_Type, of_classes, set_in_class) < 0 || add_wrappers() < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *end(PyObject *module, PyObject *unused)
{
    if (observer == NULL)
        Py_RETURN_NONE;
    if (remove_wrappers() < 0 || replace(&PyModule_Type, set_in_module, of_modules) < 0
        || replace(&PyType_Type, set_in_class, of_classes) < 0)
        return NULL;
    Py_CLEAR(observer);
    Py_CLEAR(shared);
    Py_CLEAR(missing);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(put_doc,
"put(thing, name, value): set an attribute of a module or class without a report.\n\n"
"The name is deleted if the value is the one that stands for a missing value.");

static PyObject *put(PyObject *module, PyObject *args)
{
    PyObject *self, *name, *value;
    int status;
    if (!PyArg_ParseTuple(args, "OOO", &self, &name, &value))
        return NULL;
    reporting++;
    status = PyObject_SetAttr(self, name, value == missing ? NULL : value);
    reporting--;
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"observe", observe, METH_VARARGS, observe_doc},
    {"end", end, METH_NOARGS, "end(): report no more assignments."},
    {"put", put, METH_VARARGS, put_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "attribute_hooks", "Assignments to attributes of shared modules.", -1,
    methods,
};

PyMODINIT_FUNC PyInit_attribute_hooks(void)
{
    dunder_name = PyUnicode_InternFromString("__name__");
    dunder_module = PyUnicode_InternFromString("__module__");
    if (dunder_name == NULL || dunder_module == NULL)
        return NULL;
    return PyModule_Create(&definition);
}
