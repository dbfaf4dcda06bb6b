/* Calls of MPI by programs and libraries continue in Python.

A program runs on a stack of its own, so its buffers keep their addresses while other ranks run. Its
MPI calls continue on the stack of the thread, which greenlets exchange; Python runs there. A rank
that ends inside a call leaves its own stack as it is.

Libraries that Python code calls run on the stack of the thread, under its frames. Their MPI calls
continue in Python directly, and a rank that ends inside such a call is never resumed.

All functions but the calls of libraries are called with the interpreter's lock. */

#include "process.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ARGUMENTS 16

Process *running;
pthread_t thread;
Process *processes;
pthread_mutex_t processes_lock = PTHREAD_MUTEX_INITIALIZER;
PyObject *handlers, *refusals, *direct, *missing;
PyObject **places[2];
PyObject *arrive, *leave_name;

/* The process whose program calls, NULL if a library does. */
Process *
caller(void)
{
    return running != NULL && running->on_own ? running : NULL;
}

int elsewhere(void) { return !pthread_equal(pthread_self(), thread); }

Process *
owner_of(uintptr_t address)
{
    pthread_mutex_lock(&processes_lock);
    Process *each = processes;
    while (each != NULL && image_at(each, address) == NULL)
        each = each->next;
    pthread_mutex_unlock(&processes_lock);
    return each;
}

void
leave(Process *process)
{
    process->on_own = 0;
    _longjmp(process->frames->leave, 1);
}

/* End the functions of the program that MPI has called and that the program, whose stack is now at
   `here`, has left with longjmp. The calls of MPI in between end with an exception. */
void
settle(Process *process, uintptr_t here)
{
    if (process->frames == NULL || here < process->frames->top)
        return;
    jmp_buf resume;
    if (_setjmp(resume) == 0) {
        process->jumping = 1;
        process->landed = here;
        process->resume = &resume;
        leave(process);
    }
    process->on_own = 1;
}

typedef struct {
    Process *process;
    int number;
    const long long *arguments;
    long long result;
    double real;
    int failed;
} call;

/* The value of an argument for Python, a new reference; NULL without an error for a handle that no
   object has. */
PyObject *
argument(Process *process, char kind, long long value)
{
    switch (kind) {
    case 'i':
        return PyLong_FromLongLong(value);
    case 'p':
        return PyLong_FromUnsignedLongLong((unsigned long long)value);
    case '4':
    case '8': /* bytes of a count */
        return PyLong_FromLong(kind - '0');
    default: { /* a handle */
        PyObject *key = PyLong_FromUnsignedLong((uint32_t)value);
        if (key == NULL)
            return NULL;
        PyObject *object = PyDict_GetItemWithError(process->objects, key);
        Py_XINCREF(object);
        if (object == NULL && !PyErr_Occurred()) {
            object = PyObject_CallFunction(missing, "CO", kind, key);
            if (object == Py_None)
                Py_CLEAR(object);
        }
        Py_DECREF(key);
        return object;
    }
    }
}

/* The result of a call from a place; NULL with an exception. `values` has the place first. */
static PyObject *
call_from_place(PyObject *handler, PyObject *known, PyObject *const *values, size_t count)
{
    PyObject *function = known != NULL ? PyDict_GetItemWithError(known, values[0]) : NULL;
    if (function == NULL)
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(handler, values, count, NULL);
    PyObject *result = PyObject_Vectorcall(function, values + 1, count - 1, NULL);
    if (result != NULL || !PyErr_ExceptionMatches(PyExc_Exception))
        return result;
    PyObject *type, *error, *trace, *arguments = PyTuple_New((Py_ssize_t)count - 1);
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace != NULL)
        PyException_SetTraceback(error, trace);
    for (size_t i = 1; arguments != NULL && i < count; i++)
        PyTuple_SET_ITEM(arguments, (Py_ssize_t)i - 1, Py_NewRef(values[i]));
    if (arguments != NULL)
        result = PyObject_CallMethod(handler, "failed", "OOO", error, values[0], arguments);
    Py_XDECREF(arguments);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return result;
}

static void
serve(call *self, PyObject *handler, PyObject *known)
{
    Process *process = self->process;
    const psm_function *function = &psm_functions[self->number];
    const char *kinds = function->kinds;
    PyObject *values[MOST_ARGUMENTS + 4], *result = NULL;
    Py_ssize_t count = 0;
    PyObject *timer = process->timer == Py_None ? NULL : process->timer;
    if (timer != NULL)
        Py_XDECREF(PyObject_CallMethodNoArgs(timer, arrive));
    const uintptr_t offset = (uintptr_t)process->site - process->base;
    if (offset < process->size)
        values[0] = PyLong_FromSsize_t((Py_ssize_t)offset | process->number);
    else {
        const image *code = image_at(process, (uintptr_t)process->site);
        values[0] = PyLong_FromSsize_t(
            code != NULL ? (Py_ssize_t)((uintptr_t)process->site - code->base) | code->number : 0);
    }
    if (process->refused)
        Py_XDECREF(PyObject_CallMethod(missing, "thread", NULL));
    else if (values[0] != NULL) {
        count = 1;
        for (; *kinds; kinds++, count++) {
            values[count] = argument(process, *kinds, self->arguments[count - 1]);
            if (values[count] == NULL)
                break;
        }
        if (!*kinds)
            result = call_from_place(handler, known, values, (size_t)count);
        else if (!PyErr_Occurred()) /* a handle is not valid: an error of MPI */
            result = PyObject_CallMethod(missing, "refuse", "iOCI", self->number, values[0], *kinds,
                                         (unsigned)self->arguments[count - 1]);
    }
    while (count > 0)
        Py_DECREF(values[--count]);
    if (timer != NULL) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        Py_XDECREF(PyObject_CallMethodNoArgs(timer, leave_name));
        PyErr_Restore(type, value, trace);
    }
    if (result == NULL) {
        self->failed = 1;
        return;
    }
    if (result == Py_None)
        self->result = 0;
    else if (PyFloat_CheckExact(result))
        self->real = PyFloat_AS_DOUBLE(result);
    else {
        self->result = PyLong_AsLongLong(result);
        if (self->result == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            self->result = (long long)PyLong_AsUnsignedLongLong(result);
        }
    }
    Py_DECREF(result);
    self->failed = PyErr_Occurred() != NULL;
}

static void
dispatch(void *pointer)
{
    call *self = pointer;
    Process *process = self->process;
    call own = *self;
    if (process->crash) /* of another thread */
        leave(process);
    const int timed = process->timer != NULL && process->timer != Py_None;
    uninstall(process);
    if (process->outside)
        serve(&own, PyList_GET_ITEM(refusals, own.number), NULL);
    else
        serve(&own, PyList_GET_ITEM(handlers, own.number), places[timed][own.number]);
    if (!own.failed) {
        *self = own;
        return;
    }
    /* The stack of the program, with `self`, may be in use again. */
    if (process->jumping && process->landed < process->frames->top) {
        PyErr_Clear();
        process->jumping = 0;
        install(process);
        _longjmp(*process->resume, 1);
    }
    leave(process);
}

static void
say(const char *text)
{
    if (write(2, text, strlen(text)) < 0)
        abort();
}

void
end_rank(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL)
        PyException_SetTraceback(value, trace);
    PyObject *result = PyObject_CallMethod(missing, "end", "O", value); /* does not return */
    if (result == NULL)
        PyErr_Print();
    say("pysmpi: a library called MPI outside of a rank\n");
    abort();
}

/* The process of the rank whose library calls; NULL if there is none. The rank keeps it. */
Process *
process_of_library(void)
{
    if (missing == NULL || elsewhere() || !Py_IsInitialized())
        return NULL;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *process = PyObject_CallMethod(missing, "process", NULL);
    Py_XDECREF(process);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(lock);
    return process == Py_None ? NULL : (Process *)process;
}

/* Serve a call of a library, which runs below frames of Python. */
static void
enter_directly(call *self)
{
    self->result = self->number < PSM_FIRST ? -1 : 16; /* ERR_OTHER */
    if (missing == NULL || !Py_IsInitialized())
        return;
    PyGILState_STATE lock = PyGILState_Ensure();
    int error = errno;
    PyObject *type, *value, *trace, *process;
    PyErr_Fetch(&type, &value, &trace);
    process = PyObject_CallMethod(missing, "process", NULL);
    if (process == NULL) /* at the end of Python */
        PyErr_Clear();
    else if (process != Py_None) {
        self->process = (Process *)process;
        serve(self, PyList_GET_ITEM(direct, self->number), NULL);
        if (self->failed)
            end_rank();
    }
    Py_XDECREF(process);
    PyErr_Restore(type, value, trace);
    errno = error;
    PyGILState_Release(lock);
}

static void
enter(call *self, void *site)
{
    if (elsewhere()) {
        Process *owner = owner_of((uintptr_t)site);
        if (owner != NULL) {
            owner->refused = 1; /* the main thread ends the rank, also while it waits for this one */
            park();
        }
        if (!refused_here++)
            say("pysmpi: a thread that is not the main one called MPI, which only the main thread of "
                "a rank can do here\n");
        self->result = 16; /* ERR_OTHER */
        return;
    }
    Process *process = caller();
    if (process == NULL) {
        enter_directly(self);
        return;
    }
    settle(process, (uintptr_t)__builtin_frame_address(0));
    self->process = process;
    process->site = site;
    process->on_own = 0;
    /* Switches of ranks copy the stack of the thread, so there is no gap. */
    void *top = (void *)((uintptr_t)process->threads & ~(uintptr_t)15);
    psm_on_stack(top, dispatch, self, &process->own);
    process->on_own = 1;
    install(process);
}

long long
psm_call(int number, const long long *arguments, void *site)
{
    call self = {NULL, number, arguments, 0, 0.0, 0};
    enter(&self, site);
    return self.result;
}

double
psm_real(int number, const long long *arguments, void *site)
{
    call self = {NULL, number, arguments, 0, 0.0, 0};
    enter(&self, site);
    return self.real;
}
