/* The extension module: compiled MPI programs and libraries in the processes of Python. */

#include "process.h"
#include <dlfcn.h>

/* stack(): the addresses of the stack of the thread, from the caller's frame to its end. */
static PyObject *
stack_of_thread(PyObject *module, PyObject *Py_UNUSED(args))
{
    extern void *__libc_stack_end;
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    uintptr_t high = (uintptr_t)low + size, begin = (uintptr_t)__libc_stack_end;
    if (begin > (uintptr_t)low && begin < high) /* above are arguments and variables */
        high = begin;
    return Py_BuildValue("KK", (unsigned long long)(uintptr_t)low, (unsigned long long)high);
}

/* Keep the dictionaries `untimed` and `timed` of handlers that have them. */
static int
keep_places(PyObject *list)
{
    static const char *const names[2] = {"untimed", "timed"};
    for (int i = 0; i < 2; i++) {
        PyObject **made = PyMem_Calloc((size_t)PSM_FUNCTIONS, sizeof *made);
        if (made == NULL)
            return -1;
        for (int j = 0; j < PSM_FUNCTIONS; j++) {
            made[j] = PyObject_GetAttrString(PyList_GET_ITEM(list, j), names[i]);
            if (made[j] == NULL)
                PyErr_Clear();
            else if (!PyDict_Check(made[j]))
                Py_CLEAR(made[j]);
        }
        places[i] = made;
    }
    return 0;
}

/* start(handlers, refusals, direct, callbacks): connect the functions with those of Python. */
static PyObject *
start(PyObject *module, PyObject *args)
{
    PyObject *lists[3], *finder;
    if (!PyArg_ParseTuple(args, "O!O!O!O", &PyList_Type, &lists[0], &PyList_Type, &lists[1],
                          &PyList_Type, &lists[2], &finder))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (PyList_GET_SIZE(lists[i]) != PSM_FUNCTIONS) {
            PyErr_SetString(PyExc_ValueError, "expected a handler for each function");
            return NULL;
        }
    if (keep_places(lists[0]) < 0)
        return PyErr_NoMemory();
    Py_XSETREF(handlers, Py_NewRef(lists[0]));
    Py_XSETREF(refusals, Py_NewRef(lists[1]));
    Py_XSETREF(direct, Py_NewRef(lists[2]));
    Py_XSETREF(missing, Py_NewRef(finder));
    Py_XSETREF(arrive, PyUnicode_InternFromString("arrive"));
    Py_XSETREF(leave_name, PyUnicode_InternFromString("leave"));
    thread = pthread_self();
    for (int i = 0; i < 3; i++)
        ours[i] = *usual[i];
    Py_RETURN_NONE;
}

/* stop(): no function of Python can be called any more, though libraries may call at their end. */
static PyObject *
stop(PyObject *module, PyObject *Py_UNUSED(args))
{
    missing = NULL;
    Py_RETURN_NONE;
}

static PyObject *
functions(PyObject *module, PyObject *Py_UNUSED(args))
{
    PyObject *made = PyList_New(PSM_FUNCTIONS);
    for (int i = 0; made != NULL && i < PSM_FUNCTIONS; i++) {
        PyObject *name = PyUnicode_FromString(psm_functions[i].name);
        if (name == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, i, name);
    }
    return made;
}

extern int *const MPI_UNWEIGHTED, *const MPI_WEIGHTS_EMPTY;

static PyObject *
constants(PyObject *module, PyObject *Py_UNUSED(args))
{
    return Py_BuildValue("KK", (unsigned long long)(uintptr_t)MPI_UNWEIGHTED,
                         (unsigned long long)(uintptr_t)MPI_WEIGHTS_EMPTY);
}

static void **
slot(int number)
{
    Process *process = caller();
    if (process == NULL)
        process = process_of_library();
    return process != NULL ? &process->slots[number] : NULL;
}

static void *
program(void)
{
    return running != NULL && running->images_count > 0 ? running->images[0].handle : NULL;
}

/* core(): the address of what libraries of other binary interfaces need. */
static PyObject *
core(PyObject *module, PyObject *Py_UNUSED(args))
{
    static psm_core functions = {psm_call, psm_real, slot, program, psm_closure_of, NULL, NULL};
    functions.unweighted = (void *)MPI_UNWEIGHTED;
    functions.empty = (void *)MPI_WEIGHTS_EMPTY;
    return PyLong_FromVoidPtr(&functions);
}

/* adopt_cxx_streams(): let the streams of C++ write to those of the rank that runs. */
static PyObject *
adopt_cxx(PyObject *module, PyObject *Py_UNUSED(args))
{
    adopt_cxx_streams();
    Py_RETURN_NONE;
}

static void stop_watching(PyObject *Py_UNUSED(guard)) { ignore_faults(); }

/* watch(): an object during whose life faults of libraries end the rank that has called them. */
static PyObject *
watch(PyObject *module, PyObject *Py_UNUSED(args))
{
    PyObject *guard = PyCapsule_New((void *)&running, "watch", stop_watching);
    if (guard != NULL)
        watch_faults();
    return guard;
}

static PyMethodDef methods[] = {
    {"adopt_cxx_streams", adopt_cxx, METH_NOARGS, NULL},
    {"handle", handle_of, METH_VARARGS, NULL},
    {"core", core, METH_NOARGS, NULL},
    {"constants", constants, METH_NOARGS, NULL},
    {"open", open_library, METH_VARARGS, NULL},
    {"share", share, METH_VARARGS, NULL},
    {"export", export_functions, METH_NOARGS, NULL},
    {"stack", stack_of_thread, METH_NOARGS, NULL},
    {"start", start, METH_VARARGS, NULL},
    {"watch", watch, METH_NOARGS, NULL},
    {"stop", stop, METH_NOARGS, NULL},
    {"functions", functions, METH_NOARGS, NULL},
    {NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "engine", NULL, -1, methods};

PyMODINIT_FUNC
PyInit_engine(void)
{
    PyObject *made;
    if (PyType_Ready(&ProcessType) < 0 || (made = PyModule_Create(&module)) == NULL)
        return NULL;
    if (PyModule_AddFunctions(made, memory_methods) < 0
        || PyModule_AddObjectRef(made, "Process", (PyObject *)&ProcessType) < 0)
        Py_CLEAR(made);
    return made;
}
