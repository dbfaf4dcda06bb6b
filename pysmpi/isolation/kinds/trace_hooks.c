/* The tracing and the profiling function of the running thread.

   The interpreter has functions in C to set them (`PyEval_SetTrace`, `PyEval_SetProfile`), but none
   to get them: `sys.gettrace` returns the argument of the function in C, not the function. A tool in
   C, such as a tracer of coverage, needs both.

   A hook is a tuple of the function's address, 0 for none, and its argument. All functions are called
   with the interpreter's lock. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *hook_of(Py_tracefunc function, PyObject *argument)
{
    return Py_BuildValue("NO", PyLong_FromVoidPtr((void *)function),
                         argument == NULL ? Py_None : argument);
}

static PyObject *get(PyObject *module, PyObject *nothing)
{
    PyThreadState *state = PyThreadState_Get();
    return Py_BuildValue("NN", hook_of(state->c_profilefunc, state->c_profileobj),
                         hook_of(state->c_tracefunc, state->c_traceobj));
}

static int set(PyObject *hook, void (*function)(Py_tracefunc, PyObject *))
{
    PyObject *address, *argument;
    if (!PyArg_ParseTuple(hook, "O!O", &PyLong_Type, &address, &argument))
        return -1;
    void *pointer = PyLong_AsVoidPtr(address);
    if (pointer == NULL && PyErr_Occurred())
        return -1;
    function((Py_tracefunc)pointer, pointer == NULL ? NULL : argument);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *put(PyObject *module, PyObject *args)
{
    PyObject *profile, *trace;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &profile, &PyTuple_Type, &trace)
        || set(profile, PyEval_SetProfile) < 0 || set(trace, PyEval_SetTrace) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"get", get, METH_NOARGS,
     "get(): the hook for profiles and the one for traces.\n\n"
     "A hook is the address of a function in C, 0 for none, and its argument."},
    {"put", put, METH_VARARGS, "put(profile, trace): set both hooks, as `get` has returned them."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "trace_hooks", "The tracing and the profiling function of a thread.", -1,
    methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_trace_hooks(void)
{
    return PyModule_Create(&definition);
}
